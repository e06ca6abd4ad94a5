//go:build !linux

package pgtest

import (
	"errors"
	"os/exec"
)

// command reports that tests start servers on Linux only; elsewhere AGENTSITE_TEST_POSTGRES names one.
func command(string, ...string) (*exec.Cmd, error) {
	return nil, errors.New("tests start PostgreSQL on Linux only")
}

func asUser(string) error { return nil }

func hasEnded(int) bool { return false }

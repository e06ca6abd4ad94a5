//go:build !linux

package sandbox

import (
	"os"
	"os/exec"
)

// prepareCommand has nothing to prepare: this system has no namespaces.
func prepareCommand(*exec.Cmd, bool) {}

// startLow starts a command; its priority is not changed on this system.
func startLow(cmd *exec.Cmd) error { return cmd.Start() }

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may be gone already
	}
}

// residentBytes is not known on this system; the bounds of WebAssembly's own memory hold.
func residentBytes(int) int64 { return 0 }

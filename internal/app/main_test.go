package app_test

import (
	"context"
	"os"
	"testing"

	"agentsite/internal/cli"
	"agentsite/internal/testing/apptest"
)

// asCommand is the variable that makes the test binary run as the command line, for scripts of the manual.
const asCommand = "AGENTSITE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(apptest.Main(m))
}

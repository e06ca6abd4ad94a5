package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/cli"
	"agentsite/internal/testing/racetest"
)

// asPortal is the name by which TestMain runs this program as a portal.
const asPortal = "agentsite"

// TestMain makes the test binary act as agentsite when it is started by that
// name, so that the short form needs no other program to be linked.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == asPortal {
		os.Exit(cli.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestNets runs four portals, each in a network namespace of its own: they find
// each other's agents, one is killed and restarted, one lies. With
// AGENTSITE_TEST_FULL=1 there are ten, and a partition and a rolling restart
// besides; those wait for timeouts of the product. The log has what is measured.
func TestNets(t *testing.T) {
	if why := able(); why != "" {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "netns") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	if testing.Short() || racetest.Enabled {
		t.Skip("its processes are built without the race detector")
	}
	binary, p := "", plan{portals: 10, register: 5, changes: 3}
	if os.Getenv("AGENTSITE_TEST_FULL") == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		binary, p = filepath.Join(t.TempDir(), asPortal), plan{portals: 4, register: 2, short: true}
		if err := os.Symlink(self, binary); err != nil {
			t.Fatal(err)
		}
	}
	if err := measure(t.Context(), binary, "info", p, t.Output()); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"os"
	"strings"
	"testing"
)

// TestNets is the network of ten portals, each with a network of its own, that
// the issue "One network" asks for. What it measures is in its log.
func TestNets(t *testing.T) {
	if why := able(); why != "" {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "netns") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	if testing.Short() || raced {
		t.Skip("it takes more than a minute, and its processes are built without the race detector")
	}
	if err := measure(t.Context(), "", "info", plan{portals: 10, register: 5, changes: 3}, t.Output()); err != nil {
		t.Fatal(err)
	}
}

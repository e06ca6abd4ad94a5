package replication_test

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a quarter of the tests' processor time went into collections
	os.Exit(m.Run())
}

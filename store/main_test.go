package store_test

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"

	"agentsite/internal/testing/faultdisk"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a tenth of the tests' processor time went into collections
	faultdisk.Install()
	goleak.VerifyTestMain(m)
}

package replica

import (
	"os"
	"testing"

	"agentsite/internal/testing/faultdisk"
)

func TestMain(m *testing.M) {
	faultdisk.Install()
	os.Exit(m.Run())
}

package replica

import (
	"os"
	"testing"

	"agentsite/internal/testing/faultdisk"
	"agentsite/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	faultdisk.Install()
	os.Exit(pgtest.Run(m))
}

package app_test

import (
	"os"
	"testing"

	"agentsite/internal/testing/apptest"
)

func TestMain(m *testing.M) { os.Exit(apptest.Main(m)) }

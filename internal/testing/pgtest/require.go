package pgtest

import (
	"os"
	"strings"
	"testing"
)

// skip ends a test for which there is no server. It fails the test if AGENTSITE_TEST_REQUIRE names
// postgres.
func skip(t testing.TB, err error) {
	t.Helper()
	if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "postgres") {
		t.Fatalf("no PostgreSQL server: %v", err)
	}
	t.Skipf("no PostgreSQL server: %v", err)
}

// NewStopped creates the data of a server for one test, which may start it. The test is skipped without
// the programs of a server.
func NewStopped(t testing.TB) *Server {
	t.Helper()
	if err := Find(); err != nil {
		skip(t, err)
	}
	s, err := NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

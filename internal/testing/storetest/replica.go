package storetest

import (
	"context"
	"log/slog"
	"testing"

	"agentsite/internal/record"
	"agentsite/store/replica"
)

// Replica opens the replica of a portal in dir and closes it when the test ends. The test may close it
// earlier.
func Replica(t testing.TB, dir string, own record.PortalID, network string) *replica.Replica {
	t.Helper()
	r, err := replica.Open(context.Background(), replica.Config{Dir: dir, Database: DatabaseOf(t, dir),
		Own: own, Network: network, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

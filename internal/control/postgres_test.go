package control_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"agentsite/internal/control"
	"agentsite/internal/doctor"
	"agentsite/internal/testing/pgtest"
	"agentsite/store"
)

// The operator of a server may change its settings while the portal runs.
func TestCheckState_NoticesAServerThatCanLoseWrites(t *testing.T) {
	t.Parallel()
	server := pgtest.NewStopped(t)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := store.OpenWith(t.Context(), t.TempDir(), store.Config{Database: server.URL("postgres")},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	faults := func() (list []string) {
		var r doctor.Report
		control.Databases{DB: db}.CheckState(t.Context(), &r)
		for _, f := range r.Findings {
			if f.Level == doctor.Fault {
				list = append(list, f.Text)
			}
		}
		return list
	}
	if list := faults(); len(list) > 0 {
		t.Fatal(list)
	}
	c, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for _, q := range []string{`ALTER SYSTEM SET fsync = off`, `SELECT pg_reload_conf()`} {
		if _, err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	for { // until the server has read its settings
		if list := faults(); len(list) > 0 {
			if !strings.Contains(list[0], "fsync=off") {
				t.Error(list)
			}
			return
		}
	}
}

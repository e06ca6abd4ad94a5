package replica

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/record"
	"agentsite/internal/testing/pgtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/store/engine"
	"agentsite/store/postgres"
)

// serverConfig returns the Config of a replica in a new database on a server.
func serverConfig(t *testing.T) Config {
	t.Helper()
	return Config{Dir: t.TempDir(), Database: pgtest.NewDatabase(t), Own: recordtest.NewPortal("own").ID,
		Network: recordtest.Network, Log: slog.New(slog.DiscardHandler)}
}

func TestOpenPostgres_NeverFailsAStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ says, query string }{
		"of a newer binary": {"newer", `UPDATE process SET version = 99`},
		"another portal's":  {"belongs to the portal p1other", `UPDATE owner SET portal = 'p1other'`},
		"another network's": {"belongs to the network elsewhere", `UPDATE owner SET network = 'elsewhere'`},
		"without a table":   {"owner", `DROP TABLE owner`},
		"without a column":  {"network", `ALTER TABLE owner DROP COLUMN network`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := serverConfig(t)
			var log bytes.Buffer
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			for range 2 { // the one aside is replaced
				log.Reset()
				r, err := Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				p, _, own := stock(t, r)
				err = r.Write(t.Context(), func(t engine.Tx) error { _, err := t.Exec(c.query); return err })
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if r, err = Open(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(log.String(), c.says) || !strings.Contains(log.String(), "moved aside") {
					t.Errorf("the log says %s", log.String())
				}
				if s, err := r.Standing(t.Context(), p.ID); err != nil || s.Ring != nil {
					t.Error("the old one is used", err)
				}
				if w, err := r.Head(t.Context(), own.ID); err != nil || w != nil {
					t.Error("it seems to be of the old epoch", err)
				}
				var aside int
				err = r.Get(t.Context(), &aside, `SELECT COUNT(*) FROM agentsite_replica_aside.agents`)
				if err != nil || aside != 4 {
					t.Error(aside, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if err := postgres.MoveAside(t.Context(), cfg.Database, postgres.Replica(), cfg.Log); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A replica that another process uses is neither opened nor moved aside, even for another portal.
func TestOpenPostgres_LeavesAHealthyOne(t *testing.T) {
	t.Parallel()
	cfg := serverConfig(t)
	r, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, _, _ := stock(t, r)
	other := cfg
	other.Own = "p1other"
	if r, err := Open(t.Context(), other); err == nil {
		r.Close()
		t.Error("it was opened twice")
	}
	if err := postgres.MoveAside(t.Context(), cfg.Database, postgres.Replica(), cfg.Log); err == nil {
		t.Error("it was moved aside")
	}
	take(t, r, p, p.Agent("new"))
	sound(t, r)
}

// A copy of a replica in use passes from one engine to the other and back.
func TestCopy_IsTheSameOnBothEngines(t *testing.T) {
	t.Parallel()
	cfg := serverConfig(t)
	file := Config{Dir: t.TempDir(), Own: cfg.Own, Network: cfg.Network, Log: cfg.Log}
	first, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	p, liar, _ := stock(t, first)
	if there, err := Copy(t.Context(), cfg, t.TempDir()); there || err != nil {
		t.Error("without a replica:", there, err)
	}
	if there, err := Copy(t.Context(), file, cfg.Dir); !there || err != nil {
		t.Fatal(there, err)
	}
	if err := Load(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), cfg); !fault.Is(err, fault.Conflict) {
		t.Error("it is loaded twice:", err)
	}
	second, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	last := Config{Dir: t.TempDir(), Own: cfg.Own, Network: cfg.Network, Log: cfg.Log}
	if there, err := Copy(t.Context(), cfg, last.Dir); !there || err != nil {
		t.Fatal(there, err)
	}
	third, err := Open(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	for _, r := range []*Replica{second, third} {
		sound(t, r)
		for _, id := range []record.PortalID{p.ID, liar.ID, cfg.Own} {
			want, err := first.Standing(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Standing(t.Context(), id)
			if err != nil || got.Head != want.Head || got.Quarantined != want.Quarantined || got.Ring == nil {
				t.Errorf("%s: %+v instead of %+v, %v", id, got, want, err)
			}
		}
		if c, err := r.Quarantined(t.Context(), liar.ID); err != nil || c == nil || c.Proof() == nil {
			t.Error("the proof is lost", err)
		}
		// New portals and records get numbers that no copied row has.
		q := recordtest.NewPortal("two")
		take(t, r, q, q.Card())
		take(t, r, q, q.Agent("x"))
		sound(t, r)
	}
}

package store

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/pgtest"
	"agentsite/store/engine"
)

// Every table arrives on the other engine and back, whatever is added later, and numbers of deleted rows are
// not given out again.
func TestMove_HasEveryTable(t *testing.T) {
	pgtest.Skip(t)
	t.Parallel()
	url, dir, log := pgtest.NewDatabase(t), t.TempDir(), slog.New(slog.DiscardHandler)
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	d := openTest(t, dir)
	seedAll(t, d)
	numbered := map[string]string{
		"outbox":       `INSERT INTO outbox (topic, ref, created_at) VALUES ('x', 'x', 1) RETURNING id`,
		"peer_changes": `INSERT INTO peer_changes (peer, state, reason, at) VALUES ('x', 'x', 'x', 1) RETURNING id`,
	}
	if err := d.Write(t.Context(), func(w engine.Tx) error {
		for _, insert := range numbered {
			var id int64
			if err := w.Get(&id, insert); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	before := make(map[string]int)
	var tables []string
	if err := d.List(t.Context(), &tables, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'said%' ORDER BY name`); err != nil {
		t.Fatal(err)
	}
	last := make(map[string]int64)
	err := d.Write(t.Context(), func(w engine.Tx) error {
		for name := range numbered {
			var n int64
			if err := w.Get(&n, `SELECT MAX(id) FROM `+name); err != nil {
				return err
			}
			last[name] = n
			if _, err := w.Exec(`DELETE FROM `+name+` WHERE id = ?`, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func(db *DB, table string) (n int) {
		t.Helper()
		if err := db.Get(t.Context(), &n, `SELECT COUNT(*) FROM `+table); err != nil {
			t.Fatal(table, err)
		}
		return n
	}
	for _, name := range tables {
		if before[name] = count(d.DB, name); before[name] == 0 && !slices.Contains(unseeded, name) {
			t.Errorf("table %s is empty", name)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(db *DB) {
		t.Helper()
		for _, name := range tables {
			if name == "goose_db_version" || slices.Contains(unseeded, name) {
				continue
			}
			if n := count(db, name); n != before[name] {
				t.Errorf("table %s has %d rows, moved %d", name, n, before[name])
			}
		}
		undo := errors.New("undo")
		for name, insert := range numbered {
			var id int64
			err := db.Write(t.Context(), func(w engine.Tx) error {
				if err := w.Get(&id, insert); err != nil {
					return err
				}
				return undo
			})
			if !errors.Is(err, undo) || id <= last[name] {
				t.Errorf("%s gives out the number %d, after %d: %v", name, id, last[name], err)
			}
		}
		wrong, err := db.Quotas.FindWrong(t.Context())
		if err != nil || len(wrong) > 0 {
			t.Errorf("%v %v", wrong, err)
		}
	}
	keys := ident.KeyFiles{Dir: dir}
	if _, err := (Move{Keys: keys, To: url, Log: log}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	server, err := OpenWith(t.Context(), dir, Config{Database: url}, log)
	if err != nil {
		t.Fatal(err)
	}
	check(server)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := (Move{Keys: keys, Database: url, ToDir: dir, Log: log}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	check(again)
	r, err := again.Backups.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Faults {
		t.Error(f)
	}
}

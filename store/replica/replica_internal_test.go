package replica

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/pgtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/store/engine"
	"agentsite/store/postgres"
	"agentsite/store/sqlite"
)

// ownConfig returns the Config of the replica in dir, or in its database on PostgreSQL.
func ownConfig(t *testing.T, dir string) Config {
	t.Helper()
	return Config{Dir: dir, Database: pgtest.DatabaseOf(t, dir, &emptyReplica), Own: recordtest.NewPortal("own").ID,
		Network: recordtest.Network, Log: slog.New(slog.DiscardHandler)}
}

func openOwn(t *testing.T, dir string) *Replica {
	t.Helper()
	r, err := Open(t.Context(), ownConfig(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// take admits a record that must be new.
func take(t *testing.T, r *Replica, p *recordtest.Portal, body record.Body) *record.Record {
	t.Helper()
	g, err := record.NewGate(recordtest.Network, r)
	if err != nil {
		t.Fatal(err)
	}
	rec := p.Sign(t, body)
	if _, fresh, err := g.Admit(t.Context(), rec.Wire, time.UnixMilli(p.Now)); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	return rec
}

// stock fills a replica: a portal with three agents, one of them gone, a head
// and a word, one that is quarantined, and the portal's own agent and head.
func stock(t *testing.T, r *Replica) (p, liar, own *recordtest.Portal) {
	t.Helper()
	p, liar, own = recordtest.NewPortal("one"), recordtest.NewPortal("liar"), recordtest.NewPortal("own")
	for _, p := range []*recordtest.Portal{p, liar, own} {
		take(t, r, p, p.Card())
	}
	for _, id := range []string{"x", "y", "z"} {
		take(t, r, p, p.Agent(id))
	}
	take(t, r, p, p.Gone("z"))
	take(t, r, p, &record.Attest{Header: p.Header(recordtest.Day), Subject: liar.ID, Verdict: record.Warn})
	take(t, r, own, own.Agent("mine"))
	take(t, r, own, own.Head(new(record.Tree)))
	take(t, r, p, p.Head(new(record.Tree)))
	a := take(t, r, liar, liar.Head(new(record.Tree)))
	liar.Seq--
	h := liar.Head(new(record.Tree))
	h.Prev = record.Hash{1}
	b := liar.Sign(t, h)
	if err := r.Quarantine(t.Context(), record.Conflict{Slot: a.Slot(), Version: a.Version(), Lower: a.Wire, Higher: b.Wire}); err != nil {
		t.Fatal(err)
	}
	return p, liar, own
}

// sound fails the test unless a verification mends nothing.
func sound(t *testing.T, r *Replica) Report {
	t.Helper()
	report, err := r.Verify(t.Context())
	if err != nil || len(report.Mended) > 0 {
		t.Error(report.Mended, err)
	}
	return report
}

func TestReplica_IsThereAfterACrash(t *testing.T) {
	t.Parallel()
	dir, after := t.TempDir(), t.TempDir()
	r := openOwn(t, dir)
	p, liar, own := stock(t, r)
	at := record.Version{Epoch: 5, Seq: 6}
	if err := r.SetPosition(t.Context(), p.ID, at); err != nil {
		t.Fatal(err)
	}
	if pgtest.Enabled() {
		after = dir
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// What is on disk while it runs is what a crash leaves.
	for _, end := range []string{"", "-wal"} {
		if pgtest.Enabled() {
			break
		}
		b, err := os.ReadFile(filepath.Join(dir, FileName+end))
		if err == nil {
			err = os.WriteFile(filepath.Join(after, FileName+end), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again := openOwn(t, after)
	if got := sound(t, again); got.Portals != 3 || got.Records != 12-1 {
		t.Errorf("%+v", got)
	}
	if n, _, err := again.Holding(t.Context(), p.ID); err != nil || n != 2 {
		t.Error(n, err)
	}
	if got, err := again.Position(t.Context(), p.ID); err != nil || got != at {
		t.Error(got, err)
	}
	if s, err := again.Standing(t.Context(), liar.ID); err != nil || !s.Quarantined || s.Ring == nil {
		t.Error(s, err)
	}
	if w, err := again.Head(t.Context(), own.ID); err != nil || w == nil {
		t.Error("its own head is gone", err)
	}
	// New records do not take the places of those that are there.
	take(t, again, p, p.Agent("new"))
	sound(t, again)
	if n, _, err := again.Holding(t.Context(), p.ID); err != nil || n != 3 {
		t.Error(n, err)
	}
}

func TestOpenReplica_NeverFailsAStart(t *testing.T) {
	t.Parallel()
	pgtest.Skip(t)
	spoil := func(change func(b []byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	exec := func(query string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			pool, err := sqlite.Connect(path, "file:"+path, 1)
			if err == nil {
				_, err = pool.Exec(query)
				pool.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		says string
		do   func(*testing.T, string)
	}{
		"empty":             {"is empty", spoil(func([]byte) []byte { return nil })},
		"text":              {"not an SQLite database", spoil(func([]byte) []byte { return []byte("not a database at all, but of some length") })},
		"cut short":         {"", spoil(func(b []byte) []byte { return b[:2*replicaPageBytes] })},
		"another program's": {"not a database of agentsite", exec("PRAGMA application_id = 7")},
		"a portal's":        {"not a database of agentsite", exec(fmt.Sprintf("PRAGMA application_id = %d", sqlite.ApplicationID))},
		"of a newer binary": {"has schema 99", exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")},
		"another portal's":  {"belongs to the portal p1other", exec("UPDATE owner SET portal = 'p1other'")},
		"another network's": {"belongs to the network elsewhere", exec("UPDATE owner SET network = 'elsewhere'")},
		"without a table":   {"", exec("DROP TABLE owner")},
		"marked":            {"seen to be damaged", func(t *testing.T, path string) { os.WriteFile(path+damagedSuffix, nil, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, FileName)
			r := openOwn(t, dir)
			p, _, own := stock(t, r)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			c.do(t, path)
			for range 2 { // the one aside is replaced
				var log bytes.Buffer
				cfg := ownConfig(t, dir)
				cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
				r, err := Open(t.Context(), cfg)
				if err != nil {
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
				take(t, r, p, p.Card())
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(path + asideSuffix); err != nil {
					t.Error(err)
				}
				if err := os.WriteFile(path, []byte("damaged again, which happens to be text of some length"), 0o600); err != nil {
					t.Fatal(err)
				}
				c.says = "not an SQLite database"
			}
		})
	}
}

// A replica that cannot be opened for a reason that passes is neither moved aside nor, at the next start,
// deleted there. Here a folder in place of the write-ahead log stands for a lack of descriptors.
func TestOpenReplica_LeavesAHealthyOne(t *testing.T) {
	t.Parallel()
	pgtest.Skip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	r := openOwn(t, dir)
	p, _, _ := stock(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+"-wal", 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := Open(t.Context(), ownConfig(t, dir))
		if err == nil {
			r.Close()
			t.Fatal("it was opened")
		}
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	again := openOwn(t, dir)
	if s, err := again.Standing(t.Context(), p.ID); err != nil || s.Ring == nil {
		t.Error("the records are gone", err)
	}
	if _, err := os.Stat(path + asideSuffix); err == nil {
		t.Error("it was moved aside")
	}
}

func TestReplica_ChecksItsOwnSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openOwn(t, dir)
	if err := r.CheckSettings(t.Context()); err != nil {
		t.Error(err)
	}
	if pgtest.Enabled() {
		return
	}
	var page int
	if err := r.Get(t.Context(), &page, "PRAGMA page_size"); err != nil || page != replicaPageBytes {
		t.Error(page, err)
	}
	if st, err := os.Stat(filepath.Join(dir, FileName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st.Mode(), err)
	}
}

// What is counted, cached and held stays true whatever is done at once.
func TestReplica_StaysTrueUnderEverythingAtOnce(t *testing.T) {
	t.Parallel()
	r := openOwn(t, t.TempDir())
	g, err := record.NewGate(recordtest.Network, r)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	var wg sync.WaitGroup
	for n := range 4 {
		rnd := rand.New(rand.NewPCG(seed, uint64(n/2))) // two ways for each portal
		name := fmt.Sprint("portal-", n/2)
		wg.Go(func() {
			p := recordtest.NewPortal(name)
			for step := range 40 {
				var wires [][]byte
				add := func(b record.Body) { wires = append(wires, p.Sign(t, b).Wire) }
				if step == 0 || rnd.IntN(12) == 0 {
					p.Op = recordtest.Key(fmt.Sprint(name, " op ", rnd.IntN(2)))
					add(p.Card())
				}
				for range rnd.IntN(12) {
					id := fmt.Sprint("a", rnd.IntN(9))
					if rnd.IntN(4) == 0 {
						add(p.Gone(id))
					} else {
						add(p.Agent(id))
					}
				}
				if rnd.IntN(3) == 0 {
					add(p.Head(new(record.Tree)))
				}
				if rnd.IntN(15) == 0 {
					p.Epoch++
					p.Seq = 0
				}
				if _, err := g.AdmitAll(context.Background(), wires, time.UnixMilli(p.Now)); err != nil {
					t.Error(err)
				}
				var err error
				switch rnd.IntN(10) {
				case 0:
					err = r.Drop(context.Background(), p.ID)
				case 1:
					err = r.Omit(context.Background(), p.ID, []record.Hash{record.AgentKey(string(p.ID) + "/a1"), record.AgentKey(string(p.ID) + "/a2")})
				case 2:
					err = r.Sweep(context.Background(), time.UnixMilli(p.Now+int64(rnd.IntN(40))*recordtest.Day))
				case 3:
					err = r.Release(context.Background(), p.ID)
				}
				if err != nil {
					t.Error(err)
				}
			}
			agents, _, err := r.Holding(context.Background(), p.ID)
			if err != nil || agents > 9 {
				t.Error(agents, err)
			}
		})
	}
	wg.Wait()
	sound(t, r)
	for n := range 2 {
		id := recordtest.NewPortal(fmt.Sprint("portal-", n)).ID
		cached, err := r.Standing(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		r.known.Set(func(rows map[string]known) { clear(rows) })
		stored, err := r.Standing(t.Context(), id)
		if err != nil || cached.Head != stored.Head || cached.Quarantined != stored.Quarantined || fmt.Sprint(cached.Ring) != fmt.Sprint(stored.Ring) {
			t.Error("what is remembered is not what is stored", err)
		}
		agents, _, err := r.Holding(t.Context(), id)
		listed := 0
		if err := r.Agents(t.Context(), id, func([]byte) bool { listed++; return true }); err != nil || listed != agents {
			t.Error(listed, agents, err)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestReplica_VerifyMendsWhatIsDamaged(t *testing.T) {
	t.Parallel()
	key := record.AgentKey(string(recordtest.NewPortal("one").ID) + "/x")
	for name, c := range map[string]struct {
		says, query string
		args        []any
		agents      int
	}{
		"a bit of a record":    {"an agent of", `UPDATE wires SET wire = ? WHERE n = (SELECT n FROM agents WHERE akey = ?)`, nil, 1},
		"another's record":     {"an agent of", `UPDATE agents SET hash = ? WHERE akey = ?`, []any{make([]byte, 32), key[:]}, 1},
		"another version":      {"an agent of", `UPDATE agents SET seq = 900 WHERE akey = ?`, []any{key[:]}, 1},
		"no record":            {"an agent of", `DELETE FROM wires WHERE n = (SELECT n FROM agents WHERE akey = ?)`, []any{key[:]}, 1},
		"a record of nobody":   {"of no agent", `INSERT INTO wires (n, gone, wire) VALUES (999, 0, ?)`, []any{[]byte("x")}, 2},
		"wrong counts":         {"counted wrong", `UPDATE portals SET agents = 70, bytes = 3`, nil, 2},
		"a word of its own":    {"attest/1", `UPDATE said SET wire = ? WHERE type = 'attest/1'`, []any{[]byte("x")}, 2},
		"a card":               {"portal/1", `UPDATE said SET wire = ? WHERE type = 'portal/1'`, []any{[]byte("x")}, 2},
		"somebody else's head": {"head/1", `UPDATE said SET signer = 'x' WHERE type = 'head/1'`, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := openOwn(t, dir)
			p, _, _ := stock(t, r)
			before := sound(t, r)
			if before.Records != 11 {
				t.Errorf("%d records", before.Records)
			}
			if name == "a bit of a record" {
				wire, err := r.Agent(t.Context(), p.ID, key)
				if err != nil {
					t.Fatal(err)
				}
				c.args = []any{bytes.Replace(wire, []byte(`"p":"eyJ`), []byte(`"p":"eyK`), 1), key[:]}
			}
			if err := r.Write(t.Context(), func(t engine.Tx) error { _, err := t.Exec(c.query, c.args...); return err }); err != nil {
				t.Fatal(err)
			}
			r.known.Set(func(rows map[string]known) { clear(rows) })
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			report, err := Verify(t.Context(), ownConfig(t, dir))
			if err != nil || len(report.Mended) == 0 || !strings.Contains(strings.Join(report.Mended, " "), c.says) {
				t.Fatal(report.Mended, err)
			}
			r = openOwn(t, dir)
			sound(t, r)
			if n, _, err := r.Holding(t.Context(), p.ID); err != nil || n != c.agents {
				t.Error(n, err)
			}
			if s, err := r.Seen(t.Context(), record.Slot{Type: record.TypeHead, Portal: p.ID}); err != nil || s.Version == (record.Version{}) {
				t.Error("the version of the head is forgotten", err)
			}
		})
	}
}

func TestReplica_VerifyBeginsAnewWhenAnOwnRecordIsDamaged(t *testing.T) {
	t.Parallel()
	r := openOwn(t, t.TempDir())
	_, _, own := stock(t, r)
	if err := r.Write(t.Context(), func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE agents SET hash = ? WHERE portal = (SELECT id FROM portals WHERE portal = ?)`, make([]byte, 32), own.ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if report, err := r.Verify(t.Context()); err != nil || len(report.Mended) != 1 {
		t.Fatal(report, err)
	}
	if w, err := r.Head(t.Context(), own.ID); err != nil || w != nil {
		t.Error("it holds a head that its log does not add up to", err)
	}
}

func TestVerifyReplica_HasAnotherBegunWhenTheFileIsDamaged(t *testing.T) {
	t.Parallel()
	pgtest.Skip(t)
	dir := t.TempDir()
	if got, err := Verify(t.Context(), ownConfig(t, dir)); err != nil || got.Portals != 0 || len(got.Mended) != 0 {
		t.Error("without a replica: ", got, err)
	}
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, []byte("no database, but a text of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(t.Context(), ownConfig(t, dir)); err != nil || len(got.Mended) != 1 {
		t.Error(got, err)
	}
	if marked(path) == nil {
		t.Error("it is not marked")
	}
}

// A page that cannot be read does not stop the next start either.
func TestReplica_DamageSeenInUseHasAnotherBegun(t *testing.T) {
	t.Parallel()
	pgtest.Skip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	r := openOwn(t, dir)
	p, _, _ := stock(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * replicaPageBytes; i < len(b); i += replicaPageBytes { // all but the schema's
		copy(b[i:i+16], "0123456789abcdef")
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // opening sees it, or asking does
		r, err := Open(t.Context(), ownConfig(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		r.Standing(t.Context(), p.ID)
		r.Agents(t.Context(), "", func([]byte) bool { return true })
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	r = openOwn(t, dir)
	take(t, r, p, p.Card())
	sound(t, r)
}

func TestCopyReplica_KeepsWhatCannotBeFetched(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	r := openOwn(t, dir)
	p, liar, own := stock(t, r)
	if there, err := Copy(t.Context(), ownConfig(t, dir), to); err != nil || !there {
		t.Fatal(there, err)
	}
	if pgtest.Enabled() {
		if err := Load(t.Context(), ownConfig(t, to)); err != nil {
			t.Fatal(err)
		}
	}
	again := openOwn(t, to)
	if got := sound(t, again); got.Records != 3 { // cards
		t.Errorf("%+v", got)
	}
	for _, p := range []*recordtest.Portal{p, liar, own} {
		was, err := r.Standing(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		is, err := again.Standing(t.Context(), p.ID)
		if err != nil || is.Head != was.Head || is.Quarantined != was.Quarantined || is.Ring == nil {
			t.Errorf("%s: %+v instead of %+v, %v", p.Name, is, was, err)
		}
		if w, err := again.Head(t.Context(), p.ID); err != nil || w != nil {
			t.Error("holds a head of ", p.Name, err)
		}
		if n, _, err := again.Holding(t.Context(), p.ID); err != nil || n != 0 {
			t.Error(n, err)
		}
	}
	c, err := again.Quarantined(t.Context(), liar.ID)
	if err != nil || c == nil || c.Proof() == nil {
		t.Error("the proof is lost", err)
	}
	// What was there comes back, and nothing older.
	g, err := record.NewGate(recordtest.Network, again)
	if err != nil {
		t.Fatal(err)
	}
	head, err := r.Head(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, fresh, err := g.Admit(t.Context(), head, time.UnixMilli(p.Now)); err != nil || !fresh {
		t.Error(fresh, err)
	}
	p.Seq = 1
	if _, _, err := g.Admit(t.Context(), p.Sign(t, p.Head(new(record.Tree))).Wire, time.UnixMilli(p.Now)); record.ReasonOf(err) != record.Stale {
		t.Error("an older head: ", err)
	}
}

// Who asked for what came after a number misses nothing when the replica is
// lost.
func TestReplica_NumbersGoOnAfterALoss(t *testing.T) {
	t.Parallel()
	types := []record.Type{record.TypeAttest}
	numbers := func(dir string) int64 {
		r := openOwn(t, dir)
		stock(t, r)
		list, err := r.Others(t.Context(), types, 0, 10)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return list[0].Number
	}
	if a, b := numbers(t.TempDir()), numbers(t.TempDir()); b < a {
		t.Errorf("number %d follows %d", b, a)
	}
}

// emptyReplica is a database with the tables of a replica and nothing in them.
var emptyReplica = pgtest.Template{Fill: func(url string) error {
	db, err := postgres.Open(context.Background(), url, postgres.Replica(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return db.Close()
}}

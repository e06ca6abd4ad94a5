package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pressly/goose/v3"

	"agentsite/internal/fault"
	"agentsite/internal/testing/faultdisk"
	"agentsite/internal/testing/racetest"
	"agentsite/migrations"
	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

// rowsOfVersion are rows that a portal of a schema version could have written in tables and columns
// which the migration to that version made.
var rowsOfVersion = map[int64]string{
	2: `INSERT INTO agent_offers VALUES ('g1', 'p1', 5);
		INSERT INTO account_domains VALUES ('p1', 'ada.example', 5, 6, 0);
		INSERT INTO reports VALUES ('r1', 'g1', 'person', 'p1', 'ada', 'spam', 'It is.', 5, 0, '', '');
		INSERT INTO notices VALUES ('n1', 'p1', 'offer', 'Offer', 'Somebody offers an agent.', '/agents/edited', 5, 0)`,
	3: `UPDATE members SET pinned_at = 7 WHERE member_id = 'p1';
		INSERT INTO chat_prefs VALUES ('p1', 'mentions', 1, 2, 'UTC');
		INSERT INTO disclosures VALUES ('person', 'p1', 'g1', 'agent.example', 'own', 9);
		INSERT INTO room_links VALUES ('l1', 'h1', 'c1', 'read', 'member', 3, 0, 'person', 'p1', 'ada', 0, 0, 5, 9)`,
	4: `INSERT INTO hooks (id, kind, owner_kind, owner_id, url, host, secret, created_at, updated_at) VALUES ('h1', 'webhook', 'person', 'p1', 'https://ada.example/', 'ada.example', x'01', 1, 1);
		INSERT INTO hook_events (hook_id, event_id, type, facts, created_at) VALUES ('h1', 'e1', 'task', '{}', 1)`,
	6: `INSERT INTO first_asks VALUES ('p1', 'g1', 'once', 'c1')`,
	7: `UPDATE tasks SET via = 'g1 g2' WHERE id = 't0'`,
	8: `INSERT INTO peer_nonces VALUES (x'000102030405060708090a0b0c0d0e0f', 99);
		INSERT INTO own_cards VALUES ('main', 1, 2, x'0102')`,
	9:  `UPDATE agents SET held = 1 WHERE id = 'g4'`,
	10: `UPDATE tasks SET budget = '5' WHERE id = 't1'`,
	11: `INSERT INTO peers VALUES ('https://b.example', '{}', 5);
		INSERT INTO peer_changes (peer, state, reason, at) VALUES ('https://b.example', 'reachable', '', 5)`,
}

// databaseOf makes a portal's data folder as an older version of the portal left it: the database has
// the schema version, made by the migrations one after another, each on rows of the versions before. If
// killed is true, rows are in the write-ahead log.
func databaseOf(t *testing.T, version int64, killed bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	olderDatabase(t, dir)
	path := filepath.Join(dir, sqlite.FileName)
	pool, err := sqlite.Connect(path, sqlite.WriteDSN(path), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	p, err := goose.NewProvider(goose.DialectSQLite3, pool.DB, migrations.SQLite())
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(2); v <= version; v++ {
		if _, err := p.UpTo(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.ExecContext(t.Context(), rowsOfVersion[v]); err != nil {
			t.Fatalf("rows of version %d: %v", v, err)
		}
	}
	if killed {
		return faultdisk.CopyFolder(t, dir)
	}
	return dir
}

func openAndClose(ctx context.Context, dir string) error {
	d, err := Open(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return d.Close()
}

func testsReduced() bool { return os.Getenv("AGENTSITE_TEST_FULL") == "" }

// upgradePoints is the number of moments at which the upgrade from one version is interrupted.
func upgradePoints() int {
	if testsReduced() {
		return 3
	}
	return 50
}

// upgradeOf is the upgrade of a database from one version.
type upgradeOf struct {
	from        int64
	dir         string // the data folder before
	old, newest string // content before and after
}

// eachUpgrade calls fn with the upgrade from every version before the present one, in parallel tests.
func eachUpgrade(t *testing.T, fn func(*testing.T, upgradeOf)) {
	for from := int64(1); from < sqlite.SchemaVersion(); from++ {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			t.Parallel()
			dir := databaseOf(t, from, from%2 == 0)
			whole := faultdisk.CopyFolder(t, dir)
			if err := openAndClose(t.Context(), whole); err != nil {
				t.Fatal(err)
			}
			u := upgradeOf{from: from, dir: dir}
			var have int64
			if have, u.old = faultdisk.Content(t, filepath.Join(faultdisk.CopyFolder(t, dir), sqlite.FileName)); have != from {
				t.Fatalf("made version %d", have)
			}
			if have, u.newest = faultdisk.Content(t, filepath.Join(whole, sqlite.FileName)); have != sqlite.SchemaVersion() {
				t.Fatalf("upgraded to %d", have)
			}
			fn(t, u)
		})
	}
}

// isOldOrNew checks that the database in dir is wholly the old or wholly the new one, and that the copy
// made before, if it is there, is wholly the old one. It reports whether the database is the new one.
func (u *upgradeOf) isOldOrNew(t *testing.T, dir string) (upgraded bool) {
	t.Helper()
	version, content := faultdisk.Content(t, filepath.Join(dir, sqlite.FileName))
	switch {
	case version == u.from && content == u.old:
	case version == sqlite.SchemaVersion() && content == u.newest:
		upgraded = true
	default:
		t.Errorf("version %d, neither the old nor the new content", version)
	}
	saved := sqlite.SchemaCopy(filepath.Join(dir, sqlite.FileName), u.from)
	if _, err := os.Stat(saved); errors.Is(err, fs.ErrNotExist) {
		if upgraded {
			t.Error("upgraded without a copy")
		}
		return upgraded
	}
	if version, content := faultdisk.Content(t, saved); version != u.from || content != u.old {
		t.Errorf("the copy has version %d and not the old content", version)
	}
	return upgraded
}

// completes checks that the next start upgrades the database in dir and leaves nothing behind.
func (u *upgradeOf) completes(t *testing.T, dir string) {
	t.Helper()
	if err := openAndClose(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if !u.isOldOrNew(t, dir) {
		t.Error("not upgraded by the next start")
	}
	if r, err := Verify(t.Context(), dir); err != nil || !r.OK() || r.Messages != 9 || r.Tasks != 5 {
		t.Errorf("%+v %v", r, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, sqlite.ScratchPrefix+"*")); len(left) > 0 {
		t.Errorf("%v were left", left)
	}
}

// A kill at any moment of an upgrade leaves the old database or the new one, from every version of the
// schema, and the next start completes it.
func TestUpgrade_KilledAnywhere(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgradeOf) {
		old, upgraded := 0, 0
		for _, left := range faultdisk.Kills(t, u.dir, upgradePoints(), func(dir string) {
			if err := openAndClose(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
		}) {
			if u.isOldOrNew(t, faultdisk.CopyFolder(t, left)) {
				upgraded++
			} else {
				old++
			}
			u.completes(t, left)
		}
		if old == 0 || upgraded == 0 {
			t.Errorf("%d moments before the end of the upgrade and %d after it", old, upgraded)
		}
	})
}

// A disk that is full, or broken, from any moment of an upgrade on leaves the old database or the new
// one and a sentence that says so, and the upgrade completes when the disk is well again.
func TestUpgrade_DiskFailsAnywhere(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	eachUpgrade(t, func(t *testing.T, u upgradeOf) {
		if testsReduced() && u.from > 1 && u.from < sqlite.SchemaVersion()-1 {
			t.Skip("AGENTSITE_TEST_FULL tries every version")
		}
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
			changes := faultdisk.Count(t, u.dir, func(dir string) {
				if err := openAndClose(t.Context(), dir); err != nil {
					t.Fatal(err)
				}
			})
			points := min(upgradePoints(), 10)
			for i := range points {
				dir, n, failed := faultdisk.CopyFolder(t, u.dir), 0, false
				stop := faultdisk.Watch(dir, func(c faultdisk.Change) syscall.Errno {
					// SQLite calls a full disk an I/O error for -shm, which it needs before all else.
					if n++; n <= i*changes/points || errno == syscall.ENOSPC && strings.HasSuffix(c.Path, "-shm") {
						return 0
					}
					failed = true
					return errno
				})
				err := openAndClose(t.Context(), dir)
				stop()
				if err == nil && failed && !u.isOldOrNew(t, faultdisk.CopyFolder(t, dir)) {
					t.Error("opened without an upgrade")
				}
				if f, ok := errors.AsType[*fault.Error](err); errno == syscall.ENOSPC && err != nil && (!ok || !strings.Contains(f.Safe, "make room")) {
					t.Errorf("a full disk at change %d: %v", n, err)
				}
				u.isOldOrNew(t, faultdisk.CopyFolder(t, dir))
				u.completes(t, dir)
			}
		}
	})
}

// A disk that fails under a write refuses it as Unavailable, and each write after it, although the disk is well again,
// because only a restart shows what is stored.
func TestWrite_DiskFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTest(t, dir)
	write := func() error {
		return d.DB.file.Write(t.Context(), func(tx engine.Tx) error {
			_, err := tx.Exec(`INSERT INTO names VALUES ('ada', 'account', 'p1', 1)`)
			return err
		})
	}
	stop := faultdisk.Watch(dir, func(c faultdisk.Change) syscall.Errno {
		if strings.HasSuffix(c.Path, "-wal") {
			return syscall.EIO
		}
		return 0
	})
	for _, when := range []string{"while the disk fails", "after that"} {
		if err := write(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", when, err)
		}
		stop()
	}
	var n int
	if err := d.DB.file.Get(t.Context(), &n, `SELECT COUNT(*) FROM names`); err != nil || n != 0 {
		t.Errorf("reading: %d names, %v", n, err)
	}
}

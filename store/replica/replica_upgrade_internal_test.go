package replica

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"agentsite/internal/testing/faultdisk"
	"agentsite/store/sqlite"
)

// replicaOf makes a replica as an older version of the portal left it: it has the schema version.
func replicaOf(t *testing.T, version int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, FileName)
	if err := createReplica(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	pool, err := sqlite.Connect(path, "file:"+sqlite.EscapePath(path)+"?_journal_mode=WAL", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	p, err := goose.NewProvider(goose.DialectSQLite3, pool.DB, replicaFile().Migrations)
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(1); v <= version; v++ {
		if _, err := p.UpTo(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if v > 1 {
			continue
		}
		if _, err := pool.ExecContext(t.Context(), `INSERT INTO owner VALUES (1, 'own', 'main');
			INSERT INTO portals (id, portal, head_epoch, head_seq, at_epoch, at_seq, agents, slots) VALUES (1, 'p', 1, 2, 1, 2, 1, 1);
			INSERT INTO agents VALUES (1, x'01', 1, 2, x'02', 0, 0, 's', 0, 1, 1);
			INSERT INTO wires VALUES (1, 0, x'03');
			INSERT INTO said (portal, type, about, epoch, seq, hash, until, expires, signer, wire) VALUES (1, 'head/1', '', 1, 2, x'04', 0, 0, 's', x'05');
			INSERT INTO conflicts VALUES (1, 'head/1', '', 1, 1, x'06', x'07', 0)`); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A kill at any moment of the upgrade of a replica leaves the old one or the new one, and the next start
// goes on with it instead of a new one, because versions and conflicts in it cannot be fetched again.
func TestUpgrade_KilledAnywhere(t *testing.T) {
	t.Parallel()
	points := 5
	if os.Getenv("AGENTSITE_TEST_FULL") != "" {
		points = 50
	}
	files, err := fs.Glob(replicaFile().Migrations, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for from := int64(1); from < int64(len(files)); from++ {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			t.Parallel()
			open := func(dir string) {
				r, err := Open(t.Context(), Config{Dir: dir, Own: "own", Network: "main", Log: slog.New(slog.DiscardHandler)})
				if err == nil {
					err = r.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			dir := replicaOf(t, from)
			whole := faultdisk.CopyFolder(t, dir)
			open(whole)
			_, old := faultdisk.Content(t, filepath.Join(faultdisk.CopyFolder(t, dir), FileName))
			newest, upgraded := faultdisk.Content(t, filepath.Join(whole, FileName))
			for _, left := range faultdisk.Kills(t, dir, points, open) {
				version, content := faultdisk.Content(t, filepath.Join(faultdisk.CopyFolder(t, left), FileName))
				if !(version == from && content == old || version == newest && content == upgraded) {
					t.Errorf("version %d, neither the old nor the new content", version)
				}
				open(left)
				if version, content := faultdisk.Content(t, filepath.Join(left, FileName)); version != newest || content != upgraded {
					t.Errorf("after the next start: version %d and another content", version)
				}
			}
		})
	}
}

package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"agentsite/store/sqlite"
)

// Copy writes the part of the replica that a backup contains, from the folder data to a new database in
// dir: the portals, the highest versions of their records, and the conflicts of quarantined portals.
// Other records are fetched again from the other portals. It leaves out the portal's own head, because
// numbers of its log were used since, so that a restored portal begins a new epoch. there is false if
// there is no usable replica.
func Copy(ctx context.Context, data, dir string) (there bool, err error) {
	from, to := filepath.Join(data, FileName), filepath.Join(dir, FileName)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) || err == nil && marked(from) != nil {
		return false, nil
	}
	if err := createReplica(ctx, to); err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			os.Remove(to)
		}
	}()
	pool, err := sqlite.Connect(to, "file:"+sqlite.EscapePath(to), 1)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	p, err := goose.NewProvider(goose.DialectSQLite3, pool.DB, replicaFile().Migrations)
	if err != nil {
		return false, err
	}
	if _, err := p.Up(ctx); err != nil {
		return false, err
	}
	c, err := pool.Connx(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, `ATTACH ? AS live`, "file:"+sqlite.EscapePath(from)+"?mode=ro"); err != nil {
		return false, err
	}
	// One transaction makes all rows be from one moment.
	if _, err := c.ExecContext(ctx, `BEGIN;
		INSERT INTO owner SELECT id, portal, network FROM live.owner;
		INSERT INTO said (number, portal, type, about, epoch, seq, hash, until, expires, signer, wire)
			SELECT number, portal, type, about, epoch, seq, hash, until, expires, signer, CASE type WHEN 'portal/1' THEN wire END FROM live.said;
		INSERT INTO portals (id, portal, quarantined, head_epoch, head_seq, bytes)
			SELECT id, portal, quarantined, head_epoch, head_seq,
				(SELECT COALESCE(SUM(COALESCE(length(s.wire), 0) + `+fmt.Sprint(slotBytes)+
		`), 0) FROM main.said s WHERE s.portal = p.id) FROM live.portals p;
		INSERT INTO conflicts (portal, type, about, epoch, seq, lower, higher, released)
			SELECT portal, type, about, epoch, seq, lower, higher, released FROM live.conflicts;
		COMMIT`); err != nil {
		return false, err
	}
	if _, err := c.ExecContext(ctx, `DETACH live`); err != nil {
		return false, err
	}
	var sound string
	if err := c.GetContext(ctx, &sound, `PRAGMA integrity_check(1)`); err != nil || sound != "ok" {
		return false, errors.Join(err, errors.New(sound))
	}
	if err := errors.Join(c.Close(), pool.Close()); err != nil {
		return false, err
	}
	f, err := os.Open(to)
	if err != nil {
		return false, err
	}
	return true, errors.Join(f.Sync(), f.Close(), sqlite.SyncDir(dir))
}

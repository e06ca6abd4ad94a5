// Package replica keeps the records that portals signed in a database of its
// own, replica.db: all in it but versions and proofs can be fetched again.
package replica

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/migrations"
	"agentsite/store/sqlite"
)

// FileName is the replica's database inside the data folder.
const FileName = "replica.db"

// replicaID marks replicas: "AGSR" in ASCII.
const replicaID = 0x41475352

const (
	// asideSuffix is added to a replica that cannot be used; one is kept.
	asideSuffix = ".aside"
	// damagedSuffix marks a replica that was seen to be damaged: the next start
	// begins another.
	damagedSuffix = ".damaged"
	// replicaPageBytes lets five records of usual size share a page.
	replicaPageBytes = 8 << 10
	// replicaCacheKB is for the one writer.
	replicaCacheKB = 8 << 10
	// replicaCheckpointPages bounds the WAL in a first sync: 64 MiB.
	replicaCheckpointPages = 8 << 10
	// maxKnown bounds the portals with a cached standing, at about 1 KiB each.
	maxKnown = 16 << 10
)

// Replica keeps the signed records of portals in a database of its own. It implements
// federation.Replica. It is safe for concurrent use; its opener closes it, which waits for queued
// writes.
type Replica struct {
	*sqlite.DB
	own     record.PortalID
	network string
	// known is the standing of portals, true to the disk.
	known *sqlite.Cache[known]
	next  int64 // of wires; owned by the writer goroutine
	open  openPortals
}

var _ federation.Replica = (*Replica)(nil)

// known is the cached part of a portal's stored state.
type known struct {
	id       int64
	standing record.Standing
	// fresh is true while no agent of it was ever seen: then no lookup of earlier versions is needed.
	fresh bool
}

// Open opens or creates the replica in the folder dir, of the portal and
// network given. One that is damaged, of a newer binary, of another portal or
// of another network is moved aside with a line in the log, and a new one
// begun: all in it can be fetched again but the versions and proofs that a
// backup holds. Only a folder that cannot be written fails.
func Open(ctx context.Context, dir string, own record.PortalID, network string, log *slog.Logger) (*Replica, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err == nil {
		why := marked(path)
		if why == nil {
			r, err := openFile(ctx, path, log)
			if err == nil {
				if why = r.claimReplica(ctx, own, network); why == nil {
					return r, nil
				}
				err = r.Close()
			}
			why = errors.Join(why, err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		log.Warn("the replica cannot be used: it is moved aside and a new one begun, which is filled from the other portals", "file", path, "aside", path+asideSuffix, "reason", why)
	}
	if err := moveAside(path); err != nil {
		return nil, fmt.Errorf("move the replica aside: %w", err)
	}
	if err := createReplica(ctx, path); err != nil {
		return nil, fmt.Errorf("create the replica: %w", err)
	}
	r, err := openFile(ctx, path, log)
	if err != nil {
		return nil, err
	}
	if err := r.claimReplica(ctx, own, network); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// marked says that damage was seen in the replica before.
func marked(path string) error {
	if _, err := os.Stat(path + damagedSuffix); err == nil {
		return errors.New("it was seen to be damaged")
	}
	return nil
}

// moveAside takes the files of a replica, if there are any, out of the way.
func moveAside(path string) error {
	for _, end := range []string{"", "-wal", "-shm"} {
		aside := path + asideSuffix + end
		if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Rename(path+end, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(path + damagedSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return sqlite.SyncDir(filepath.Dir(path))
}

// createReplica makes the file, private from its first byte, with the settings that must precede any
// content. A crash leaves a file that cannot be used.
func createReplica(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	pool, err := sqlite.Connect(path, "file:"+sqlite.EscapePath(path), 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	for _, q := range []string{fmt.Sprintf("PRAGMA page_size = %d", replicaPageBytes),
		fmt.Sprintf("PRAGMA application_id = %d", replicaID), "VACUUM"} {
		if _, err := pool.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), sqlite.SyncDir(filepath.Dir(path)))
}

// replicaFile describes a replica's database.
func replicaFile() sqlite.Kind {
	return sqlite.Kind{ID: replicaID, Migrations: migrations.Replica(), Schema: migrations.Schema("replica"),
		WriterOptions: fmt.Sprintf("_pragma=cache_size(-%d)&_pragma=wal_autocheckpoint(%d)", replicaCacheKB,
			replicaCheckpointPages),
		// The next start begins a new replica.
		DamagedSuffix: damagedSuffix}
}

// openFile opens the file of a replica, whoever it belongs to.
func openFile(ctx context.Context, path string, log *slog.Logger) (*Replica, error) {
	if err := sqlite.CheckFile(path); err != nil {
		return nil, err
	}
	if _, err := replicaFile().SchemaIn(ctx, path); err != nil {
		return nil, err
	}
	f, err := sqlite.Open(ctx, path, replicaFile(), log)
	if err != nil {
		return nil, err
	}
	r := &Replica{DB: f, known: sqlite.NewCache[known](maxKnown),
		open: openPortals{make(map[record.PortalID]*portalRow)}}
	if err := r.Get(ctx, &r.next, `SELECT COALESCE(MAX(n), 0) FROM wires`); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// claimReplica makes a new replica the portal's and refuses another's.
func (r *Replica) claimReplica(ctx context.Context, own record.PortalID, network string) error {
	var owner struct{ Portal, Network string }
	switch err := r.Get(ctx, &owner, `SELECT portal, network FROM owner WHERE id = 1`); {
	case errors.Is(err, sql.ErrNoRows):
		err := r.Write(ctx, func(t *sqlite.Tx) error {
			_, err := t.Exec(`INSERT INTO owner (id, portal, network) VALUES (1, ?, ?)`, own, network)
			return err
		})
		if err != nil {
			return err
		}
	case err != nil:
		return err
	case owner.Portal != string(own):
		return fmt.Errorf("it belongs to the portal %s", owner.Portal)
	case owner.Network != network:
		return fmt.Errorf("it belongs to the network %s", owner.Network)
	}
	r.own, r.network = own, network
	return startNumbers(ctx, r.DB)
}

// startNumbers makes the numbers of arrival continue from the present time in milliseconds, or from
// their current value if that is more: a reader that continues after a number of a lost or restored
// replica misses nothing.
func startNumbers(ctx context.Context, db *sqlite.DB) error {
	now := clock.Now().UnixMilli()
	return db.Write(ctx, func(t *sqlite.Tx) error {
		res, err := t.Exec(`UPDATE sqlite_sequence SET seq = MAX(seq, ?) WHERE name = 'said'`, now)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		_, err = t.Exec(`INSERT INTO sqlite_sequence (name, seq) VALUES ('said', ?)`, now)
		return err
	})
}

// lookUpPortal returns the cached or stored state of a portal; ok is false when there is none.
func (r *Replica) lookUpPortal(ctx context.Context, id record.PortalID) (known, bool, error) {
	k, generation, ok := r.known.Get(string(id))
	if ok {
		return k, true, nil
	}
	var row struct {
		portalRow
		Card []byte
	}
	err := r.Get(ctx, &row, `SELECT `+portalColumns+
		`, (SELECT wire FROM said WHERE portal = portals.id AND type = 'portal/1' AND about = '') AS card FROM portals WHERE portal = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return known{}, false, nil // not cached: a request can name any portal
	}
	if err != nil {
		return known{}, false, r.notedError(err)
	}
	k = known{id: row.ID, standing: row.standing(ringOf(r.network, row.Card)), fresh: row.Slots == 0}
	r.known.Put(string(id), k, generation)
	return k, true, nil
}

// ringOf returns the keys in a card that was admitted, nil without one. One
// that is damaged is none until Verify lets it go and it comes again.
func ringOf(network string, card []byte) *record.Ring {
	if card == nil {
		return nil
	}
	if c, err := record.Open(network, card); err == nil {
		if body, ok := c.Body.(*record.Card); ok {
			return body.Ring()
		}
	}
	return nil
}

// notedError gives an error of reading its kind, and has a damaged file replaced at
// the next start.
func (r *Replica) notedError(err error) error {
	if err != nil && sqlite.IsDamaged(err) {
		r.NoteError(err)
	}
	return sqlite.MapError(err)
}

// Standing implements record.Memory.
func (r *Replica) Standing(ctx context.Context, portal record.PortalID) (record.Standing, error) {
	k, _, err := r.lookUpPortal(ctx, portal)
	return k.standing, err
}

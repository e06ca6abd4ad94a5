// Package replica stores the records that portals signed, in a database of its own, replica.db.
// Everything in it can be fetched again from the other portals, except the versions of dropped records
// and the proofs of conflicts.
package replica

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/migrations"
	"agentsite/store/engine"
	"agentsite/store/space"
	"agentsite/store/sqlite"
)

// FileName is the name of the replica's database in the data folder.
const FileName = "replica.db"

// replicaID marks replicas in the file header: "AGSR" in ASCII.
const replicaID = 0x41475352

const (
	// asideSuffix ends the name of a replica that was moved aside because it cannot be used. One is
	// kept, for the operator.
	asideSuffix = ".aside"
	// damagedSuffix ends the name of an empty file that marks a damaged replica. The next start creates
	// a new replica then.
	damagedSuffix = ".damaged"
	// replicaPageBytes is the page size of the database, at which five records of usual size share a
	// page.
	replicaPageBytes = 8 << 10
	// replicaCacheKB is the page cache of the one writing connection.
	replicaCacheKB = 8 << 10
	// replicaCheckpointPages is the size of the WAL in pages from which it is written back: 64 MiB, so
	// that a first sync rarely waits for it.
	replicaCheckpointPages = 8 << 10
	// maxKnown bounds the portals with a cached state, at about 1 KiB each.
	maxKnown = 16 << 10
)

// Replica keeps the signed records of portals in a database of its own. It implements
// federation.Replica. It is safe for concurrent use; its opener closes it, which waits for queued
// writes.
type Replica struct {
	*sqlite.DB
	own     record.PortalID
	network string
	// known caches the state of portals by their id; it equals the state on disk.
	known *engine.Cache[known]
	open  openPortals
	disk  *space.Space // nil watches nothing
}

var _ federation.Replica = (*Replica)(nil)

// known is the cached state of a portal: its row id and its standing.
type known struct {
	id       int64
	standing record.Standing
	// fresh is true while the portal has no row in agents, so that earlier versions need no lookup.
	fresh bool
}

// Open opens or creates the replica of a portal and a network in the folder dir. A replica that is
// damaged, was written by a newer binary, or belongs to another portal or network is logged and moved
// aside, and a new one created, because its records can be fetched again. A folder that cannot be written is
// an error, and so is a replica that cannot be opened for the moment, for example without a descriptor. While the disk is nearly full, records are not kept; disk may be nil.
func Open(ctx context.Context, dir string, own record.PortalID, network string, disk *space.Space,
	log *slog.Logger) (*Replica, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err == nil {
		why := marked(path)
		if why == nil {
			r, err := openFile(ctx, path, disk, log)
			if err == nil {
				if why = r.claimReplica(ctx, own, network); why == nil {
					return r, nil
				}
				err = r.Close()
			}
			why = errors.Join(why, err)
		}
		if sqlite.IsFull(why) {
			return nil, fmt.Errorf("open the replica: the disk is full, make room: %w", why)
		}
		if sqlite.IsPassing(why) {
			return nil, fmt.Errorf("open the replica %s, which is left as it is; start again when the cause is gone: %w",
				path, why)
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
	r, err := openFile(ctx, path, disk, log)
	if err != nil {
		return nil, err
	}
	if err := r.claimReplica(ctx, own, network); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// marked returns an error if the file that marks a damaged replica exists, nil otherwise.
func marked(path string) error {
	if _, err := os.Stat(path + damagedSuffix); err == nil {
		return errors.New("it was seen to be damaged")
	}
	return nil
}

// moveAside renames the files of a replica, if there are any, in place of those moved earlier, and
// removes the mark of damage.
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

// createReplica creates the database file, readable by its owner only, with the settings that must
// precede any content. After a crash the next start moves the incomplete file aside.
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

// replicaFile returns the sqlite.Kind of a replica.
func replicaFile() sqlite.Kind {
	return sqlite.Kind{ID: replicaID, Migrations: migrations.Replica(), Schema: migrations.Schema("replica"),
		WriterOptions: fmt.Sprintf("_pragma=cache_size(-%d)&_pragma=wal_autocheckpoint(%d)", replicaCacheKB,
			replicaCheckpointPages),
		// The mark makes the next start create a new replica.
		DamagedSuffix: damagedSuffix}
}

// openFile opens the file of a replica without a check of its portal and network.
func openFile(ctx context.Context, path string, disk *space.Space, log *slog.Logger) (*Replica, error) {
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
	r := &Replica{DB: f, disk: disk, known: engine.NewCache[known](maxKnown),
		open: openPortals{make(map[record.PortalID]*portalRow)}}
	return r, nil
}

// claimReplica binds a new replica to a portal and a network. It returns an error for a replica that
// belongs to others.
func (r *Replica) claimReplica(ctx context.Context, own record.PortalID, network string) error {
	var owner struct{ Portal, Network string }
	switch err := r.Get(ctx, &owner, `SELECT portal, network FROM owner WHERE id = 1`); {
	case errors.Is(err, sql.ErrNoRows):
		err := r.Write(ctx, func(t engine.Tx) error {
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

// lookUpPortal returns the cached or stored state of a portal; false when the replica has none.
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
		return known{}, false, nil // Do not cache unknown portals, because a request can name any.
	}
	if err != nil {
		return known{}, false, r.notedError(err)
	}
	k = known{id: row.ID, standing: row.standing(ringOf(r.network, row.Card)), fresh: row.Slots == 0}
	r.known.Put(string(id), k, generation)
	return k, true, nil
}

// ringOf returns the keys in a stored card, nil without one. A damaged card counts as none until Verify
// has deleted it and it was fetched again.
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

// notedError maps the error of a read to a fault. If the error is damage, it also makes the next start
// create a new replica.
func (r *Replica) notedError(err error) error {
	if err != nil && sqlite.IsDamaged(err) {
		r.NoteError(err)
	}
	return engine.MapError(err)
}

// Standing implements record.Memory. It is cached, because a Gate asks for it for each record.
func (r *Replica) Standing(ctx context.Context, portal record.PortalID) (record.Standing, error) {
	k, _, err := r.lookUpPortal(ctx, portal)
	return k.standing, err
}

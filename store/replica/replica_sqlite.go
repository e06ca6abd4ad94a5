package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"agentsite/migrations"
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
)

// openSQLite is Open for the file in the data folder.
func openSQLite(ctx context.Context, cfg Config) (*Replica, error) {
	path := filepath.Join(cfg.Dir, FileName)
	if _, err := os.Stat(path); err == nil {
		why := marked(path)
		if why == nil {
			r, err := openFile(ctx, path, cfg.Disk, cfg.Log)
			if err == nil {
				if why = r.claimReplica(ctx, cfg.Own, cfg.Network); why == nil {
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
		cfg.Log.Warn("the replica cannot be used: it is moved aside and a new one begun, which is filled from the other portals", "file", path, "aside", path+asideSuffix, "reason", why)
	}
	if err := moveAside(path); err != nil {
		return nil, fmt.Errorf("move the replica aside: %w", err)
	}
	if err := createReplica(ctx, path); err != nil {
		return nil, fmt.Errorf("create the replica: %w", err)
	}
	r, err := openFile(ctx, path, cfg.Disk, cfg.Log)
	if err != nil {
		return nil, err
	}
	if err := r.claimReplica(ctx, cfg.Own, cfg.Network); err != nil {
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
	return newReplica(f, f, disk), nil
}

package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/diskuse"
	"agentsite/internal/fault"
	"agentsite/store/engine"
	"agentsite/store/space"
)

// ClaimPortal binds the database to the portal with that public key; a database of another key is
// refused. It stores url if that is not empty, and returns the URL that is stored then.
func (d *DB) ClaimPortal(ctx context.Context, publicKey []byte, url string) (string, error) {
	var out string
	err := d.Write(ctx, func(t engine.Tx) error {
		var r struct {
			Key []byte `db:"public_key"`
			URL string `db:"url"`
		}
		err := t.Get(&r, `SELECT public_key, url FROM portal WHERE id = 1`)
		if errors.Is(err, sql.ErrNoRows) {
			out = url
			_, err = t.Exec(`INSERT INTO portal (id, public_key, url, created_at) VALUES (1, ?, ?, ?)`, publicKey, url,
				clock.Milli(clock.Now()))
			return err
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(r.Key, publicKey) {
			return fmt.Errorf("the database belongs to another portal.key; put the key file back from a backup, or use another database")
		}
		out = r.URL
		if url == "" || url == r.URL {
			return nil
		}
		out = url
		_, err = t.Exec(`UPDATE portal SET url = ? WHERE id = 1`, url)
		return err
	})
	return out, err
}

// Stats returns the numbers of stored rows by name for the operator, and the size of the database in
// bytes as "bytes".
func (d *DB) Stats(ctx context.Context) (map[string]int64, error) {
	out := make(map[string]int64)
	for name, query := range map[string]string{
		"accounts":      `SELECT COUNT(*) FROM accounts WHERE disabled_at = 0`,
		"agents":        `SELECT COUNT(*) FROM agents WHERE deleted_at = 0 AND kind <> 'peer'`,
		"conversations": `SELECT COUNT(*) FROM conversations`,
		// The sums read one row for each conversation, instead of every message.
		"messages":      `SELECT COALESCE(SUM(last_seq), 0) FROM conversations`,
		"tasks_waiting": `SELECT COUNT(*) FROM outbox WHERE topic = 'task'`,
	} {
		var n int64
		if err := d.Get(ctx, &n, query); err != nil {
			return nil, engine.MapError(err)
		}
		out[name] = n
	}
	var err error
	out["bytes"], err = d.Size(ctx)
	return out, err
}

// DiskUse returns the bytes of each kind of data in the data folder, and of a database elsewhere.
func (d *DB) DiskUse(ctx context.Context) ([]diskuse.Kind, error) {
	list, err := diskuse.Measure(ctx, d.dir)
	if err != nil || d.file != nil {
		return list, err
	}
	size, err := d.Size(ctx)
	return append(list, diskuse.Kind{Name: d.Name(), Hint: "On its own disk.", Bytes: size}), err
}

// readyFor is how long an answer of Ping is reused, because the endpoint is public and a write costs a
// flush of the disk.
const readyFor = 2 * time.Second

// readiness is the last answer of Ping. turn has capacity 1: concurrent callers wait in it for one write.
type readiness struct {
	turn chan struct{}
	at   time.Time
	err  error
}

// Ping returns an error if the database does not answer, a write fails, or the disk is so full that only
// operators may write. The answer may be readyFor old.
func (d *DB) Ping(ctx context.Context) error {
	if err := d.Writable(); err != nil {
		return err
	}
	select {
	case d.ready.turn <- struct{}{}:
		defer func() { <-d.ready.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.ready.at.IsZero() || time.Since(d.ready.at) >= readyFor {
		err := d.tryWrite(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d.ready.at, d.ready.err = time.Now(), err
	}
	return d.ready.err
}

func (d *DB) tryWrite(ctx context.Context) error {
	if d.Space.Level() == space.Full {
		return fault.New(fault.Unavailable, "The disk is full: reading goes on, and only operators can write; see /docs/operate.")
	}
	var one int
	if err := d.Get(ctx, &one, `SELECT 1`); err != nil {
		return err
	}
	return d.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE portal SET created_at = created_at WHERE id = 1`)
		return err
	})
}

package sqlite

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jmoiron/sqlx"
)

// checkpoint empties the write-ahead log if it is larger than checkpointBytes. It does nothing while readers use
// the log, and does not wait for them, because all writes would wait with it.
func (f *DB) checkpoint() {
	st, err := os.Stat(f.path + "-wal")
	if err != nil || st.Size() < checkpointBytes || f.Err() != nil {
		return
	}
	ctx := context.Background()
	_, err = emptyLog(ctx, f.wconn, 0)
	if _, resetErr := f.wconn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout)); err == nil {
		err = resetErr
	}
	if err != nil {
		f.NoteError(err)
		f.log.Warn("checkpoint", "error", err)
	}
}

const (
	// purgeTries is how often PurgeLog tries to empty the log while readers use it, purgePause the time between.
	purgeTries = 50
	purgePause = 100 * time.Millisecond
	// purgeWait bounds the time in which one try keeps all writes waiting for readers.
	purgeWait = 100 * time.Millisecond
)

// PurgeLog empties the write-ahead log, so that it holds no erased data. It is false, without an error, if
// readers use the log for longer than all tries take, about ten seconds. Writes go on between the tries.
func (f *DB) PurgeLog(ctx context.Context) (done bool, err error) { return f.tryPurge(ctx, purgeTries) }

func (f *DB) tryPurge(ctx context.Context, tries int) (done bool, err error) {
	pool, err := Connect(f.path, f.kind.writeDSN(f.path), 1)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	conn, err := pool.Connx(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	for range tries {
		if done, err = emptyLog(ctx, conn, purgeWait); err != nil || done {
			return done, err
		}
		select {
		case <-time.After(purgePause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return false, nil
}

// emptyLog moves the content of the write-ahead log into the database and cuts the log to nothing. It is false if
// other connections use the log for longer than wait. It leaves the busy timeout of c at wait.
//
// SQLite lets no connection write while TRUNCATE waits for readers.
func emptyLog(ctx context.Context, c *sqlx.Conn, wait time.Duration) (done bool, err error) {
	if _, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds())); err != nil {
		return false, err
	}
	var busy, frames, moved int
	err = c.QueryRowxContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	return busy == 0, err
}

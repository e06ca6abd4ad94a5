package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"
)

// checkpoint empties the write-ahead log if it is larger than checkpointBytes. It does nothing while readers use
// the log, and does not wait for them, because all writes would wait with it.
func (f *DB) checkpoint() {
	st, err := os.Stat(f.path + "-wal")
	if err != nil || st.Size() < checkpointBytes || f.Err() != nil {
		return
	}
	if _, err := f.emptyLog(0); err != nil {
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
	for range tries {
		outcome := make(chan error, 1)
		select {
		case f.between <- func() {
			var emptyErr error
			done, emptyErr = f.emptyLog(purgeWait)
			outcome <- emptyErr
		}:
		case <-f.done:
			return false, errStopping()
		case <-ctx.Done():
			return false, ctx.Err()
		}
		if err := <-outcome; err != nil || done {
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
// readers use the log for longer than wait. It runs on the writer's goroutine: another connection would let writes
// fail as busy, because SQLite refuses all writes while TRUNCATE waits for readers.
func (f *DB) emptyLog(wait time.Duration) (done bool, err error) {
	ctx := context.Background()
	setTimeout := func(d time.Duration) error {
		_, err := f.wconn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
		return err
	}
	if err := setTimeout(wait); err != nil {
		return false, err
	}
	var busy, frames, moved int
	err = f.wconn.QueryRowxContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	err = cmp.Or(err, setTimeout(busyTimeout*time.Millisecond))
	f.NoteError(err)
	return err == nil && busy == 0, err
}

package sqlite

import (
	"fmt"
	"os"
	"testing"

	"agentsite/store/engine"
)

// readLong begins a transaction that reads the log as it is now, as a backup does, until the test ends it.
func readLong(t *testing.T, d *DB) (end func()) {
	t.Helper()
	tx, err := d.read.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_schema").Scan(&n); err != nil {
		t.Fatal(err)
	}
	end = func() { _ = tx.Rollback() }
	t.Cleanup(end)
	return end
}

func logSize(t *testing.T, d *DB) int64 {
	t.Helper()
	st, err := os.Stat(d.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

func writeBlob(t *testing.T, d *DB, size int) {
	t.Helper()
	if err := d.Write(t.Context(), func(tx engine.Tx) error {
		return tx.Send(fmt.Sprintf("CREATE TABLE blob_%d AS SELECT zeroblob(?) AS b", size), size)
	}); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint does not make all writes wait for a long read, such as a backup.
func TestCheckpoint_WaitsForNoReader(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	writeBlob(t, d, checkpointBytes)
	end := readLong(t, d)
	writeBlob(t, d, checkpointBytes+1)
	// One that waited would do so for longer than the test may take.
	if _, err := d.wconn.ExecContext(t.Context(), "PRAGMA busy_timeout = 3600000"); err != nil {
		t.Fatal(err)
	}
	d.checkpoint()
	if logSize(t, d) == 0 {
		t.Fatal("the log was emptied under a reader")
	}
	if err := checkPragmas(t.Context(), d.wconn, writerPragmas()); err != nil {
		t.Error(err)
	}
	end()
	d.checkpoint()
	if n := logSize(t, d); n != 0 {
		t.Errorf("the log has %d bytes after its reader has ended", n)
	}
}

// Writes go on while erased data is removed from a log that a long read uses.
func TestPurgeLog_BesideReaderAndWrites(t *testing.T) {
	t.Parallel()
	d := openTestFile(t, t.TempDir())
	writeBlob(t, d, 1)
	end := readLong(t, d)
	writeBlob(t, d, 2)
	type outcome struct {
		done bool
		err  error
	}
	purged := make(chan outcome, 1)
	go func() {
		done, err := d.tryPurge(t.Context(), 5)
		purged <- outcome{done, err}
	}()
	for n := 3; ; n++ {
		writeBlob(t, d, n)
		select {
		case o := <-purged:
			if o.done || o.err != nil {
				t.Errorf("purged under a reader: %+v", o)
			}
			end()
			if done, err := d.PurgeLog(t.Context()); !done || err != nil {
				t.Errorf("purged %v, error %v", done, err)
			}
			if n := logSize(t, d); n != 0 {
				t.Errorf("the log has %d bytes", n)
			}
			return
		default:
		}
	}
}

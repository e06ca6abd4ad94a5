package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jmoiron/sqlx"
)

// CheckFile returns an error for a file that is empty or not SQLite; a missing file is none. SQLite
// itself accepts an empty file, which would look like a new portal.
func CheckFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer f.Close()
	head := make([]byte, 16)
	if n, _ := f.Read(head); n < 16 || string(head) != "SQLite format 3\x00" {
		if st, err := f.Stat(); err == nil && st.Size() == 0 && !nonEmpty(path+"-wal") {
			return fmt.Errorf("%s is empty: it was a portal's database before. Restore a backup with `agentsite restore FILE`, or delete the file to start afresh", path)
		}
		if !nonEmpty(path + "-wal") {
			return fmt.Errorf("%s is not an SQLite database. Restore a backup with `agentsite restore FILE`", path)
		}
	}
	return nil
}

func nonEmpty(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Size() > 0
}

// CheckPortal returns an error for a database of another program or of a newer binary. It is called
// before the database is opened for writing, so that such a file stays unchanged.
func CheckPortal(ctx context.Context, path string) error {
	_, err := PortalSchema(ctx, path)
	return err
}

// PortalSchema returns the schema version of a portal's database; an error if this binary cannot use it.
func PortalSchema(ctx context.Context, path string) (int64, error) {
	return portalFile().SchemaIn(ctx, path)
}

// SchemaIn returns the schema version of a database file of this kind; an error if this binary cannot
// use it.
func (k Kind) SchemaIn(ctx context.Context, path string) (int64, error) {
	db, err := ConnectReadOnly(path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	c, err := db.Connx(ctx)
	if err != nil {
		return 0, fmt.Errorf("open database %s: %w", path, err)
	}
	defer c.Close()
	var app, tables int64
	err = c.GetContext(ctx, &app, "PRAGMA application_id")
	if err == nil {
		err = c.GetContext(ctx, &tables, "SELECT COUNT(*) FROM sqlite_master")
	}
	if err != nil {
		return 0, fmt.Errorf("read database %s: %w", path, err)
	}
	if app != k.ID && tables > 0 {
		return 0, fmt.Errorf("%s is not a database of agentsite (application id %#x)", path, app)
	}
	have, err := SchemaOf(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("read database %s: %w", path, err)
	}
	if newest := k.newestVersion(); have > newest {
		return 0, fmt.Errorf("the database has schema %d, this binary knows up to %d: run the newer agentsite, or restore a backup made before the upgrade", have, newest)
	}
	return have, nil
}

// SchemaOf returns the version of the last migration that was applied, 0 before the first.
func SchemaOf(ctx context.Context, c *sqlx.Conn) (int64, error) {
	var there int
	if err := c.GetContext(ctx, &there, "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'"); err != nil || there == 0 {
		return 0, err
	}
	var have int64
	err := c.GetContext(ctx, &have, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied = 1")
	return have, err
}

// quietDSN returns a data source name for reading a file without changing its folder. Without a WAL the
// file is opened as immutable, so that SQLite creates no files beside it, even on a read-only disk.
func quietDSN(path string) string {
	dsn := fmt.Sprintf("file:%s?mode=ro&_query_only=1&_busy_timeout=%d&_dqs=0", EscapePath(path), busyTimeout)
	if !nonEmpty(path + "-wal") {
		dsn += "&immutable=1"
	}
	return dsn
}

// ConnectReadOnly opens a database for reading, while no portal writes to it. The caller closes the
// pool.
func ConnectReadOnly(path string) (*sqlx.DB, error) { return Connect(path, quietDSN(path), 1) }

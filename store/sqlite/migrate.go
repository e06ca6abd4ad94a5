package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"agentsite/internal/fault"
)

// copySuffix and a schema version end the name of a copy of the database made before an upgrade.
const copySuffix = ".schema-"

// SchemaCopy returns the path of the copy of a database that an upgrade from a schema version leaves.
// The name has the version that the copy holds, so that a later upgrade keeps it.
func SchemaCopy(path string, version int64) string {
	return fmt.Sprint(path, copySuffix, version)
}

// SchemaCopies returns the paths of the copies that upgrades of a database left.
func SchemaCopies(path string) ([]string, error) {
	return filepath.Glob(EscapeGlob(path) + copySuffix + "*")
}

// listVersions returns the versions of the migrations in this binary, in order.
func (k Kind) listVersions() []int64 {
	sources, err := k.listSources()
	if err != nil {
		return []int64{0}
	}
	var list []int64
	for _, s := range sources {
		list = append(list, s.Version)
	}
	return list
}

// listSources returns the migrations in this binary, in the order of their versions.
func (k Kind) listSources() ([]*goose.Source, error) {
	p, err := goose.NewProvider(goose.DialectSQLite3, new(sql.DB), k.Migrations)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p.ListSources(), nil
}

// newestVersion returns the version of the last migration in this binary.
func (k Kind) newestVersion() int64 {
	list := k.listVersions()
	return list[len(list)-1]
}

// migrateSchema applies all pending migrations in one transaction, so that a crash leaves the old schema
// or the new one and none between. Before that it copies a database with content if its kind asks for a
// copy. mark sets the application id.
func (f *DB) migrateSchema(ctx context.Context, mark bool) error {
	have, err := SchemaOf(ctx, f.wconn)
	if err != nil {
		return fmt.Errorf("read database %s: %w", f.path, err)
	}
	pending, err := f.pendingMigrations(ctx, have)
	if err != nil || len(pending) == 0 {
		return err
	}
	var objects int64
	if err := f.wconn.GetContext(ctx, &objects, "SELECT COUNT(*) FROM sqlite_master"); err != nil {
		return fmt.Errorf("read database %s: %w", f.path, err)
	}
	if objects == 0 {
		return f.createSchema(ctx)
	}
	if have > 0 && f.kind.copied {
		if err := f.copyBeforeUpgrade(ctx, have); err != nil {
			return err
		}
	}
	tx, err := f.wconn.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("upgrade the database: %w", err)
	}
	defer tx.Rollback()
	if err = runMigrations(ctx, tx, f.kind, pending); err == nil && mark {
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", f.kind.ID))
	}
	if err == nil {
		err = tx.Commit()
	}
	if ErrorCode(err)&0xff == sqliteFull {
		return fault.Wrap(fault.Unavailable, err, "The disk of %s is too full to upgrade the database from schema %d to %d. The database is as it was: make room for about twice its size, and start again.",
			filepath.Dir(f.path), have, f.kind.newestVersion())
	}
	if err != nil {
		return fmt.Errorf("upgrade the database from schema %d, which is as it was: %w", have, err)
	}
	f.log.Info("upgraded the database", "file", f.path, "from", have, "to", f.kind.newestVersion())
	return nil
}

// pendingMigrations returns the migrations that the database of schema have lacks. A gap among those
// that were applied is an error, because a migration may rely on the ones before it.
func (f *DB) pendingMigrations(ctx context.Context, have int64) ([]*goose.Source, error) {
	sources, err := f.kind.listSources()
	if err != nil || have == 0 {
		return sources, err
	}
	var applied []int64
	if err := f.wconn.SelectContext(ctx, &applied, "SELECT version_id FROM goose_db_version WHERE is_applied = 1"); err != nil {
		return nil, fmt.Errorf("read database %s: %w", f.path, err)
	}
	var pending []*goose.Source
	for _, s := range sources {
		if slices.Contains(applied, s.Version) {
			continue
		}
		if s.Version < have {
			return nil, fmt.Errorf("the database %s has schema %d without the migration %d: restore a backup with `agentsite restore FILE`", f.path, have, s.Version)
		}
		pending = append(pending, s)
	}
	return pending, nil
}

// runMigrations runs migrations in a transaction and records them, in the table and form of goose, which
// applied them in older versions of the portal.
func runMigrations(ctx context.Context, tx *sqlx.Tx, k Kind, list []*goose.Source) error {
	if _, err := tx.ExecContext(ctx, createVersions); err != nil {
		return err
	}
	for _, s := range list {
		text, err := fs.ReadFile(k.Migrations, s.Path)
		if err != nil {
			return fmt.Errorf("read migration %d: %w", s.Version, err)
		}
		// The statements after Down are never run. Other lines of goose are comments of SQL.
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		if _, err := tx.ExecContext(ctx, up); err != nil {
			return fmt.Errorf("migration %d: %w", s.Version, err)
		}
		if _, err := tx.ExecContext(ctx, insertVersion, s.Version); err != nil {
			return fmt.Errorf("record migration %d: %w", s.Version, err)
		}
	}
	return nil
}

// createVersions creates goose's table of applied migrations, with its first row, if it is missing.
const createVersions = `CREATE TABLE IF NOT EXISTS goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
	INSERT INTO goose_db_version (version_id, is_applied)
	SELECT 0, 1 WHERE NOT EXISTS (SELECT 1 FROM goose_db_version)`

const insertVersion = `INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)`

// copyBeforeUpgrade copies the database, of schema have, to SchemaCopy. The copy is written under
// another name first, so that a crash leaves no incomplete copy, nor takes an earlier one away.
func (f *DB) copyBeforeUpgrade(ctx context.Context, have int64) error {
	dir := filepath.Dir(f.path)
	tmp, err := MakeScratch(dir)
	if err != nil {
		return fmt.Errorf("copy the database before its upgrade: %w", err)
	}
	defer tmp.Remove()
	name := filepath.Join(tmp.Path, "copy")
	if err = CopyInto(ctx, f.wconn, name); err == nil {
		err = errors.Join(os.Rename(name, SchemaCopy(f.path, have)), SyncDir(dir))
	}
	if ErrorCode(err)&0xff == sqliteFull {
		return fault.Wrap(fault.Unavailable, err, "The disk of %s has no room for a copy of the database, which is made before the upgrade from schema %d. Nothing was changed: make room for about twice the size of %s, and start again.",
			dir, have, filepath.Base(f.path))
	}
	if err != nil {
		return fmt.Errorf("copy the database before its upgrade, nothing was changed: %w", err)
	}
	return nil
}

// createSchema creates the tables of an empty database from the schema of all migrations, which is
// faster than running them. The result equals that of all migrations.
func (f *DB) createSchema(ctx context.Context) error {
	tx, err := f.wconn.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("create the schema: %w", err)
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d;\n%s", f.kind.ID, f.kind.Schema))
	for _, version := range append([]int64{0}, f.kind.listVersions()...) {
		if err == nil {
			_, err = tx.ExecContext(ctx, insertVersion, version)
		}
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("create the schema: %w", err)
	}
	return nil
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"

	"agentsite/internal/fault"
)

// migrate creates the schema, or runs the migrations that it lacks, all in one transaction. It refuses a
// schema of a newer binary. The caller holds the lock of the process.
func (d *DB) migrate(ctx context.Context) error {
	have, err := d.version(ctx)
	if err != nil {
		return err
	}
	list, err := readMigrations(d.kind.Migrations)
	if err != nil {
		return err
	}
	newest := list[len(list)-1].version
	switch {
	case have > newest:
		return fault.Wrap(fault.Conflict, errNewer, "The database %s was written by a newer agentsite (schema %d; this one knows %d). "+
			"Start the newer binary, or restore a backup that was made before.", d.place, have, newest)
	case have == newest:
		return nil
	}
	script := "BEGIN;\n"
	if have == 0 {
		script += fmt.Sprintf("CREATE SCHEMA IF NOT EXISTS %s;\n", d.kind.Schema)
		script += "CREATE TABLE process (epoch BIGINT NOT NULL, version BIGINT NOT NULL, turn BIGINT NOT NULL DEFAULT 0);\n" +
			"INSERT INTO process VALUES (0, 0);\n"
	}
	for _, m := range list {
		if m.version > have {
			script += m.text + "\n"
		}
	}
	script += fmt.Sprintf("UPDATE process SET version = %d;\nCOMMIT;\n", newest)
	if err := d.runScript(ctx, script); err != nil {
		return fmt.Errorf("migrate the database %s from schema %d to %d: %w", d.place, have, newest, err)
	}
	return nil
}

// errNewer is the cause of the refusal of a schema that a newer binary wrote.
var errNewer = errors.New("the schema is newer than this binary")

// runScript runs statements that begin and commit a transaction.
func (d *DB) runScript(ctx context.Context, script string) error {
	return d.conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().PgConn().Exec(ctx, script).ReadAll()
		if err != nil {
			// End the failed transaction; the error of the script is returned.
			_, _ = c.(*stdlib.Conn).Conn().PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		}
		return err
	})
}

// version returns the version of the schema, 0 if there is none.
func (d *DB) version(ctx context.Context) (int64, error) {
	var found bool
	if err := d.conn.GetContext(ctx, &found, `SELECT to_regclass($1) IS NOT NULL`, d.kind.Schema+".process"); err != nil || !found {
		return 0, err
	}
	var v int64
	err := d.conn.GetContext(ctx, &v, `SELECT version FROM process`)
	return v, err
}

type migration struct {
	version int64
	text    string
}

// readMigrations returns the migrations of a folder by their version, the number at the beginning of
// their name.
func readMigrations(dir fs.FS) ([]migration, error) {
	names, err := fs.Glob(dir, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var list []migration
	for _, name := range names {
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(path.Base(name), "_")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", name, err)
		}
		list = append(list, migration{v, string(b)})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no migrations")
	}
	return list, nil
}

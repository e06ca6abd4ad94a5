package replica

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"agentsite/internal/fault"
	"agentsite/store/engine"
	"agentsite/store/postgres"
	"agentsite/store/sqlite"
)

// backedUp are the rows that a backup contains: the portals, the highest versions of their records, and the
// conflicts of quarantined portals. Other records are fetched again from the other portals. The portal's own
// head is left out, because numbers of its log were used since, so that a restored portal begins a new
// epoch. All columns are of the first migration, so that the backup of an older binary can be read.
var backedUp = []struct{ insert, query string }{
	{`INSERT INTO owner (id, portal, network) VALUES`, `SELECT id, portal, network FROM owner`},
	{`INSERT INTO said (number, portal, type, about, epoch, seq, hash, until, expires, signer, wire) VALUES`,
		`SELECT number, portal, type, about, epoch, seq, hash, until, expires, signer,
			CASE type WHEN 'portal/1' THEN wire END FROM said`},
	{`INSERT INTO portals (id, portal, quarantined, head_epoch, head_seq, bytes) VALUES`,
		`SELECT id, portal, quarantined, head_epoch, head_seq, (SELECT
			CAST(COALESCE(SUM(COALESCE(CASE s.type WHEN 'portal/1' THEN length(s.wire) END, 0) + ` +
			fmt.Sprint(slotBytes) + `), 0) AS BIGINT)
			FROM said s WHERE s.portal = p.id) FROM portals p`},
	{`INSERT INTO conflicts (portal, type, about, epoch, seq, lower, higher, released) VALUES`,
		`SELECT portal, type, about, epoch, seq, lower, higher, released FROM conflicts`},
}

// copyStep is the number of rows in memory during a copy.
const copyStep = 64

// copyRows inserts the rows of a backup from a transaction that sees one moment.
func copyRows(ctx context.Context, from *sqlx.Tx, insertRows func(insert string, rows [][]any) error) error {
	for _, t := range backedUp {
		rows, err := from.QueryxContext(ctx, t.query)
		if err != nil {
			return err
		}
		if err := copyPages(rows, func(page [][]any) error { return insertRows(t.insert, page) }); err != nil {
			return err
		}
	}
	return nil
}

// copyPages calls insert with all rows, at most copyStep at once, and closes them.
func copyPages(rows *sqlx.Rows, insert func(page [][]any) error) error {
	defer rows.Close()
	var page [][]any
	for rows.Next() {
		row, err := rows.SliceScan()
		if err != nil {
			return err
		}
		if page = append(page, row); len(page) < copyStep {
			continue
		}
		if err := insert(page); err != nil {
			return err
		}
		page = nil
	}
	if err := rows.Err(); err != nil || len(page) == 0 {
		return err
	}
	return insert(page)
}

// Copy writes the part of the replica that a backup contains to a new SQLite database in dir, from the file
// or PostgreSQL database that cfg names; see backedUp. A portal may use the replica. there is false if there
// is no usable replica.
func Copy(ctx context.Context, cfg Config, dir string) (there bool, err error) {
	to := filepath.Join(dir, FileName)
	if cfg.Database != "" {
		_, err := postgres.Snapshot(ctx, cfg.Database, postgres.Replica(), func(tx *sqlx.Tx) error {
			// A schema that no portal has claimed is empty.
			if err := tx.GetContext(ctx, &there, `SELECT EXISTS (SELECT 1 FROM owner)`); err != nil || !there {
				return err
			}
			return writeCopy(ctx, tx, to)
		})
		return there && err == nil, err
	}
	from := filepath.Join(cfg.Dir, FileName)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) || err == nil && marked(from) != nil {
		return false, nil
	}
	pool, err := sqlite.Connect(from, sqlite.ReadDSN(from), 1)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	tx, err := pool.BeginTxx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	err = writeCopy(ctx, tx, to)
	return err == nil, err
}

// writeCopy creates the file of a backup, which is on disk when it returns.
func writeCopy(ctx context.Context, from *sqlx.Tx, path string) (err error) {
	if err := createReplica(ctx, path); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(path)
		}
	}()
	pool, err := sqlite.Connect(path, "file:"+sqlite.EscapePath(path), 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	p, err := goose.NewProvider(goose.DialectSQLite3, pool.DB, replicaFile().Migrations)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return err
	}
	tx, err := pool.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	err = copyRows(ctx, from, func(insert string, rows [][]any) error {
		var args []any
		for _, row := range rows {
			args = append(args, row...)
		}
		_, err := tx.ExecContext(ctx, engine.InsertStatement(insert, len(rows[0]), len(rows)), args...)
		return err
	})
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return err
	}
	var sound string
	if err := pool.GetContext(ctx, &sound, `PRAGMA integrity_check(1)`); err != nil || sound != "ok" {
		return errors.Join(err, errors.New(sound))
	}
	if err := pool.Close(); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), sqlite.SyncDir(filepath.Dir(path)))
}

// Load stores the replica of a restored backup, the file in the folder cfg.Dir, in the PostgreSQL database
// that cfg names, in one transaction. It does nothing without the file, and returns a fault.Conflict if the
// database has a replica already. cfg.Own and cfg.Network are not used.
func Load(ctx context.Context, cfg Config) error {
	path := filepath.Join(cfg.Dir, FileName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if _, err := replicaFile().SchemaIn(ctx, path); err != nil {
		return err
	}
	pool, err := sqlite.ConnectReadOnly(path)
	if err != nil {
		return err
	}
	defer pool.Close()
	server, err := postgres.Open(ctx, cfg.Database, postgres.Replica(), cfg.Log)
	if err != nil {
		return err
	}
	err = server.Write(ctx, func(t engine.Tx) error {
		var owner int
		if err := t.Get(&owner, `SELECT id FROM owner`); !errors.Is(err, sql.ErrNoRows) {
			return errors.Join(err, fault.New(fault.Conflict,
				"The database has a replica already. Restore into an empty database."))
		}
		tx, err := pool.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return copyRows(ctx, tx, t.InsertRows)
	})
	return errors.Join(err, server.Close())
}

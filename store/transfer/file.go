package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"

	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

// WriteFile creates a portal's database file in the folder dir with the rows of the source. The file is on
// disk when it returns. After an error the caller removes the folder's content.
func WriteFile(ctx context.Context, from Source, dir string) ([]Copied, error) {
	created, err := sqlite.OpenPortal(ctx, dir, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := created.Close(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, sqlite.FileName)
	pool, err := sqlite.Connect(path, sqlite.FillDSN(path), 1)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	c, err := pool.Connx(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	tables, err := tablesOf(ctx, c)
	if err != nil {
		return nil, err
	}
	copied, err := fillFile(ctx, c, from, tables)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.Close(), pool.Close()); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return copied, errors.Join(f.Sync(), f.Close(), sqlite.SyncDir(dir))
}

// fillFile fills the empty tables. Triggers are away meanwhile, because the source has the rows that they would add.
func fillFile(ctx context.Context, c *sqlx.Conn, from Source, tables []Table) ([]Copied, error) {
	var triggers []struct {
		Name string `db:"name"`
		SQL  string `db:"sql"`
	}
	if err := c.SelectContext(ctx, &triggers, `SELECT name, sql FROM sqlite_master WHERE type = 'trigger'`); err != nil {
		return nil, err
	}
	tx, err := c.BeginTxx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	for _, t := range triggers {
		if _, err := tx.ExecContext(ctx, "DROP TRIGGER "+t.Name); err != nil {
			return nil, err
		}
	}
	var copied []Copied
	for _, t := range tables {
		sum, err := fillTable(ctx, tx, from, t)
		if err != nil {
			return nil, err
		}
		copied = append(copied, Copied{t, sum})
	}
	for _, t := range triggers {
		if _, err := tx.ExecContext(ctx, t.SQL); err != nil {
			return nil, err
		}
	}
	return copied, tx.Commit()
}

func fillTable(ctx context.Context, tx *sqlx.Tx, from Source, t Table) (Sum, error) {
	// The first start stores rows of its own in some tables.
	if _, err := tx.ExecContext(ctx, "DELETE FROM "+t.Name); err != nil {
		return Sum{}, err
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s) VALUES", t.Name, strings.Join(t.Columns, ", "))
	stmt, err := tx.PreparexContext(ctx, engine.InsertStatement(insert, len(t.Columns), 1))
	if err != nil {
		return Sum{}, err
	}
	defer stmt.Close()
	r, err := from.read(ctx, t)
	if err != nil {
		return Sum{}, err
	}
	defer r.rows.Close()
	for r.Next() {
		if _, err := stmt.ExecContext(ctx, r.current...); err != nil {
			return Sum{}, fmt.Errorf("write row %d of the table %s: %w", r.sum.Rows, t.Name, err)
		}
	}
	if err := r.Err(); err != nil || t.Numbered == "" || rowids[t.Name] {
		return r.sum, err
	}
	last, err := from.lastNumber(ctx, t)
	if err != nil {
		return Sum{}, err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name = ?`, t.Name); err != nil {
		return Sum{}, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)`, t.Name, last)
	return r.sum, err
}

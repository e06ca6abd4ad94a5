package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jmoiron/sqlx"
)

// AsideSuffix ends the name of a schema that was moved aside because it cannot be used. One is kept, for
// the operator.
const AsideSuffix = "_aside"

// MoveAside renames the schema of a kind, in place of one that was moved earlier, so that Open creates a
// new one. It returns an error if another process has the schema.
func MoveAside(ctx context.Context, url string, k Kind, log *slog.Logger) error {
	return runAlone(ctx, url, k, log, fmt.Sprintf(`BEGIN; DROP SCHEMA IF EXISTS %[1]s%[2]s CASCADE;
		ALTER SCHEMA %[1]s RENAME TO %[1]s%[2]s; COMMIT`, k.Schema, AsideSuffix))
}

// Drop deletes the schema of a kind with everything in it. It returns an error if another process has the
// schema.
func Drop(ctx context.Context, url string, k Kind, log *slog.Logger) error {
	return runAlone(ctx, url, k, log, fmt.Sprintf(`BEGIN; DROP SCHEMA IF EXISTS %s CASCADE; COMMIT`, k.Schema))
}

// runAlone runs a script on a schema that no other process has.
func runAlone(ctx context.Context, url string, k Kind, log *slog.Logger, script string) error {
	d, err := connect(url, k, log)
	if err != nil {
		return err
	}
	if d.conn, err = d.write.Connx(ctx); err == nil {
		err = d.lockProcess(ctx)
	}
	if err == nil {
		err = d.runScript(ctx, script)
	}
	return errors.Join(classify(err), d.closePools())
}

// Snapshot calls fn with a transaction that sees the schema of a kind as of one moment, without taking it
// from the process that uses it. found is false, and fn is not called, if there is no such schema. The
// transaction has no time limit but ctx.
func Snapshot(ctx context.Context, url string, k Kind, fn func(*sqlx.Tx) error) (found bool, err error) {
	d, err := connect(url, k, slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(classify(err), d.closePools()) }()
	tx, err := d.read.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return false, fmt.Errorf("connect to the database %s: %w", d.place, err)
	}
	defer tx.Rollback()
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if _, err := tx.ExecContext(ctx, "SET LOCAL "+limit+" = 0"); err != nil {
			return false, err
		}
	}
	if err := tx.GetContext(ctx, &found, `SELECT to_regclass($1) IS NOT NULL`, k.Schema+".process"); err != nil || !found {
		return false, err
	}
	return true, fn(tx)
}

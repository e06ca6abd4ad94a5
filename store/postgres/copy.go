package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"agentsite/store/engine"
)

// Rows are the rows that CopyIn reads one by one.
type Rows interface {
	Next() bool
	Values() ([]any, error)
	Err() error
}

// CopyIn replaces all rows of a table, without its triggers, and then calls then in the same transaction.
// It has no time limit but ctx, and does not run again after a lost connection.
func (d *DB) CopyIn(ctx context.Context, table string, columns []string, rows Rows,
	then func(engine.Tx) error) (err error) {
	if err := d.takeTurn(ctx); err != nil {
		return err
	}
	defer d.endTurn()
	if err := d.reconnect(ctx); err != nil {
		return classify(err)
	}
	t := &Tx{ctx: ctx, conn: d.conn}
	_, err = d.beginTx(ctx)
	if err == nil {
		err = d.copyIn(ctx, table, columns, rows)
	}
	if err == nil {
		err = then(t)
	}
	if err == nil {
		_, err = d.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// The server rolls the transaction back when its connection ends.
		d.dropConn()
	}
	return classify(err)
}

func (d *DB) copyIn(ctx context.Context, table string, columns []string, rows Rows) error {
	for _, query := range []string{"SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0",
		fmt.Sprintf("ALTER TABLE %s DISABLE TRIGGER USER", table), "DELETE FROM " + table} {
		if _, err := d.conn.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	err := d.conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, rows)
		return err
	})
	if err != nil {
		return errors.Join(rows.Err(), err)
	}
	_, err = d.conn.ExecContext(ctx, fmt.Sprintf("ALTER TABLE %s ENABLE TRIGGER USER", table))
	return err
}

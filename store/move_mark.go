package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

// moveState is the state of a database in a move between the engines.
type moveState string

const (
	none       moveState = ""
	moving     moveState = "moving"     // the source, while it is copied
	moved      moveState = "moved"      // the source, after the copy was proved
	incomplete moveState = "incomplete" // the copy, until the source is marked as moved
	complete   moveState = "complete"   // the copy, on which a portal may start
)

// moveMark is the row of a database about a move, the zero value without one.
type moveMark struct {
	State     moveState `db:"state"`
	ID        string    `db:"move"`
	Other     string    `db:"other"`
	ChangedAt int64     `db:"changed_at"`
}

const selectMark = `SELECT state, move, other, changed_at FROM database_move WHERE id = 1`

func readMark(ctx context.Context, db engine.DB) (moveMark, error) {
	var m moveMark
	err := db.Get(ctx, &m, selectMark)
	if errors.Is(err, sql.ErrNoRows) {
		return m, nil
	}
	return m, engine.MapError(err)
}

// mark sets the state of a database.
func mark(ctx context.Context, db engine.DB, s moveState, id, other string) error {
	return db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`DELETE FROM database_move`); err != nil {
			return err
		}
		if s != incomplete {
			if _, err := t.Exec(`DELETE FROM moved_tables`); err != nil {
				return err
			}
		}
		_, err := t.Exec(`INSERT INTO database_move (id, state, move, other, changed_at) VALUES (1, ?, ?, ?, ?)`, string(s),
			id, other, clock.Milli(clock.Now()))
		return err
	})
}

func clearMark(ctx context.Context, db engine.DB) error {
	return db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM database_move`)
		return err
	})
}

// markFile is mark for the database file in a folder, which no process has open.
func markFile(ctx context.Context, dir string, s moveState, id, other string, log *slog.Logger) error {
	file, err := sqlite.OpenPortal(ctx, dir, nil, log)
	if err != nil {
		return err
	}
	return errors.Join(mark(ctx, file, s, id, other), file.Close())
}

// markOfFile reads the mark of a database file, without opening it for writing. A missing file and one of
// an older schema have none.
func markOfFile(ctx context.Context, path string) (moveMark, error) {
	var m moveMark
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	pool, err := sqlite.ConnectReadOnly(path)
	if err != nil {
		return m, err
	}
	defer pool.Close()
	var tables int
	err = pool.GetContext(ctx, &tables, `SELECT COUNT(*) FROM sqlite_master WHERE name = 'database_move'`)
	if err != nil || tables == 0 {
		return m, err
	}
	err = pool.GetContext(ctx, &m, selectMark)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return m, err
}

// beginSource returns the mark of a database that is to be moved, the zero value unless it is the source of a
// move already. A database that is an incomplete copy is a fault.
func beginSource(ctx context.Context, db Engine) (moveMark, error) {
	m, err := readMark(ctx, db)
	switch {
	case err != nil:
		return m, err
	case m.State == incomplete:
		return m, m.refusal(nameOf(db))
	case m.State == moving || m.State == moved:
		return m, nil
	}
	return moveMark{}, nil
}

// refusal returns the fault of a start on a database named name, nil if a portal may start on it.
func (m moveMark) refusal(name string) error {
	at := time.UnixMilli(m.ChangedAt).UTC().Format("2 January 2006, 15:04 UTC")
	switch m.State {
	case none, complete:
		return nil
	case moving:
		return fault.New(fault.Conflict, "The %s is being moved to the %s since %s. Finish with the same "+
			"`agentsite migrate-database --to …`, or stay here with `agentsite migrate-database --cancel`.", name, m.Other, at)
	case incomplete:
		return fault.New(fault.Conflict, "The %s is an incomplete copy of the %s. Finish with the same "+
			"`agentsite migrate-database --to …`, or start the portal there.", name, m.Other)
	}
	return fault.New(fault.Conflict, "The portal was moved from the %s to the %s on %s. Start it there.", name, m.Other,
		at)
}

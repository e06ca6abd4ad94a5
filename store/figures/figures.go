// Package figures stores one number a day of each thing that an operator watches. It implements figures.Store.
package figures

import (
	"context"
	"maps"
	"slices"

	"agentsite/internal/figures"
	"agentsite/store/engine"
)

// Figures is the table daily_figures.
type Figures struct{ db engine.DB }

// New returns the store of figures in a database.
func New(db engine.DB) *Figures { return &Figures{db} }

// SaveFigures implements figures.Store.
func (d *Figures) SaveFigures(ctx context.Context, day int64, values map[string]int64, oldest int64) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if _, err := t.Exec(`INSERT INTO daily_figures (day, name, value) VALUES (?, ?, ?)
				ON CONFLICT (day, name) DO UPDATE SET value = excluded.value`, day, name, values[name]); err != nil {
				return err
			}
		}
		_, err := t.Exec(`DELETE FROM daily_figures WHERE day < ?`, oldest)
		return err
	}))
}

// CountError counts a failed task on a day.
func CountError(t engine.Tx, day int64) error {
	return t.Send(`INSERT INTO daily_figures (day, name, value) VALUES (?, ?, 1)
		ON CONFLICT (day, name) DO UPDATE SET value = daily_figures.value + 1`, day, figures.Errors)
}

type row struct {
	Day   int64  `db:"day"`
	Name  string `db:"name"`
	Value int64  `db:"value"`
}

// Figures implements figures.Store.
func (d *Figures) Figures(ctx context.Context, from int64) ([]figures.Figure, error) {
	var list []row
	err := d.db.List(ctx, &list, `SELECT day, name, value FROM daily_figures WHERE day >= ? ORDER BY day, name LIMIT ?`,
		from, figures.MaxDays*len(figures.Names()))
	if err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]figures.Figure, len(list))
	for i, r := range list {
		out[i] = figures.Figure{Day: r.Day, Name: r.Name, Value: r.Value}
	}
	return out, nil
}

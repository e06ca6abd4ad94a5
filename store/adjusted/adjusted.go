// Package adjusted stores the settings that operators made in the browser. It implements adjust.Store.
package adjusted

import (
	"context"

	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Settings is the table settings.
type Settings struct{ db engine.DB }

// New returns the store of settings in a database.
func New(db engine.DB) *Settings { return &Settings{db} }

type row struct {
	Name     string  `db:"name"`
	Value    string  `db:"value"`
	Previous *string `db:"previous"`
	SetAt    int64   `db:"set_at"`
}

// Settings implements adjust.Store.
func (d *Settings) Settings(ctx context.Context) ([]adjust.Stored, error) {
	var list []row
	if err := d.db.List(ctx, &list, `SELECT name, value, previous, set_at FROM settings ORDER BY name`); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]adjust.Stored, len(list))
	for i, r := range list {
		out[i] = adjust.Stored{Name: r.Name, Value: r.Value, Had: r.Previous != nil, At: clock.FromMilli(r.SetAt)}
		if r.Previous != nil {
			out[i].Previous = *r.Previous
		}
	}
	return out, nil
}

// SaveSettings implements adjust.Store.
func (d *Settings) SaveSettings(ctx context.Context, by ident.Actor, changes []adjust.Change) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		for _, c := range changes {
			if err := rows.AppendAudit(t, by, "settings.change", c.Name, rows.ClipText(c.Note, 500)); err != nil {
				return err
			}
			if c.Reset {
				if _, err := t.Exec(`DELETE FROM settings WHERE name = ?`, c.Name); err != nil {
					return err
				}
				continue
			}
			if _, err := t.Exec(`INSERT INTO settings (name, value, previous, set_at) VALUES (?, ?, NULL, ?)
				ON CONFLICT (name) DO UPDATE SET previous = settings.value, value = excluded.value,
				set_at = excluded.set_at`, c.Name, c.Value, clock.Milli(clock.Now())); err != nil {
				return err
			}
		}
		return nil
	}))
}

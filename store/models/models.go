// Package models stores the named models of the portal and of accounts. It implements models.Store.
package models

import (
	"context"
	"math"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/models"
	"agentsite/internal/usage"
	"agentsite/store/engine"
)

// Models is the table models.
type Models struct{ db engine.DB }

// New returns the store of models in a database.
func New(db engine.DB) *Models { return &Models{db} }

type row struct {
	ID          string `db:"id"`
	OwnerID     string `db:"owner_id"`
	Name        string `db:"name"`
	Provider    string `db:"provider"`
	URL         string `db:"url"`
	Model       string `db:"model"`
	Fallback    string `db:"fallback"`
	PriceInput  int64  `db:"price_input"`
	PriceOutput int64  `db:"price_output"`
	Secret      []byte `db:"secret"`
	CreatedAt   int64  `db:"created_at"`
	UpdatedAt   int64  `db:"updated_at"`
}

const columns = `id, owner_id, name, provider, url, model, fallback, price_input, price_output, secret, created_at,
	updated_at`

// unit is the precision of stored prices: millionths.
const unit = 1_000_000

func values(m models.Stored) []any {
	var secret any
	if len(m.Sealed) > 0 {
		secret = m.Sealed
	}
	return []any{m.ID, m.OwnerID, m.Name, string(m.Provider), m.URL, m.Model.Model, m.Fallback,
		int64(math.Round(m.Price.Input * unit)), int64(math.Round(m.Price.Output * unit)), secret,
		clock.Milli(m.CreatedAt), clock.Milli(m.UpdatedAt)}
}

// AllModels implements models.Store.
func (d *Models) AllModels(ctx context.Context) ([]models.Stored, error) {
	var list []row
	if err := d.db.List(ctx, &list, `SELECT `+columns+` FROM models ORDER BY id`); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]models.Stored, len(list))
	for i, r := range list {
		out[i] = models.Stored{Model: models.Model{ID: r.ID, OwnerID: r.OwnerID, Name: r.Name,
			Provider: models.Provider(r.Provider), URL: r.URL, Model: r.Model, Fallback: r.Fallback,
			Price:  usage.Price{Input: float64(r.PriceInput) / unit, Output: float64(r.PriceOutput) / unit},
			HasKey: len(r.Secret) > 0, CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt)},
			Sealed: r.Secret}
	}
	return out, nil
}

// CreateModel implements models.Store.
func (d *Models) CreateModel(ctx context.Context, m models.Stored) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		var have int
		if err := t.Get(&have, `SELECT COUNT(*) FROM models WHERE owner_id = ?`, m.OwnerID); err != nil {
			return err
		}
		if have >= models.MaxModels {
			return fault.New(fault.Conflict, "There are %d models, which is the most there may be. Delete one first.",
				have)
		}
		if err := checkName(t, m); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO models (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, values(m)...)
		return err
	}))
}

// UpdateModel implements models.Store.
func (d *Models) UpdateModel(ctx context.Context, m models.Stored) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := checkName(t, m); err != nil {
			return err
		}
		res, err := t.Exec(`UPDATE models SET name = ?3, provider = ?4, url = ?5, model = ?6, fallback = ?7,
			price_input = ?8, price_output = ?9, secret = ?10, created_at = ?11, updated_at = ?12
			WHERE id = ?1 AND owner_id = ?2`, values(m)...)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return fault.New(fault.NotFound, "There is no model %.80q.", m.Name)
		}
		return nil
	}))
}

// DeleteModel implements models.Store.
func (d *Models) DeleteModel(ctx context.Context, id string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM models WHERE id = ?`, id)
		return err
	}))
}

// checkName returns a Conflict fault if another model of the owner has the name.
func checkName(t engine.Tx, m models.Stored) error {
	var same int
	if err := t.Get(&same, `SELECT COUNT(*) FROM models WHERE owner_id = ? AND name = ? AND id <> ?`, m.OwnerID, m.Name,
		m.ID); err != nil {
		return err
	}
	if same > 0 {
		return fault.New(fault.Conflict, "There is a model %q already.", m.Name)
	}
	return nil
}

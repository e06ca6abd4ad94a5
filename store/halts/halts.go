// Package halts stores which agents, owners and providers take no work. It implements halt.Store.
package halts

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/halt"
	"agentsite/internal/ident"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Halts is the table halts.
type Halts struct{ db engine.DB }

// New returns the store of halts in a database.
func New(db engine.DB) *Halts { return &Halts{db} }

type row struct {
	Kind      string `db:"kind"`
	Key       string `db:"subject"`
	Operator  bool   `db:"operator"`
	Name      string `db:"name"`
	Reason    string `db:"reason"`
	CreatedAt int64  `db:"created_at"`
}

// AllHalts implements halt.Store.
func (d *Halts) AllHalts(ctx context.Context) ([]halt.Halt, error) {
	var list []row
	if err := d.db.List(ctx, &list, `SELECT kind, subject, operator, name, reason, created_at FROM halts
		ORDER BY kind, subject, operator`); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]halt.Halt, len(list))
	for i, r := range list {
		out[i] = halt.Halt{Subject: halt.Subject{Kind: halt.Kind(r.Kind), Key: r.Key, Operator: r.Operator},
			Name: r.Name, Reason: r.Reason, CreatedAt: clock.FromMilli(r.CreatedAt)}
	}
	return out, nil
}

// PutHalt implements halt.Store.
func (d *Halts) PutHalt(ctx context.Context, by ident.Actor, h halt.Halt) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := logDecision(t, by, "stop", h); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO halts (kind, subject, operator, name, reason, created_at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (kind, subject, operator) DO UPDATE SET name = excluded.name, reason = excluded.reason`,
			string(h.Kind), h.Key, h.Operator, h.Name, h.Reason, clock.Milli(h.CreatedAt))
		return err
	}))
}

// DeleteHalt implements halt.Store.
func (d *Halts) DeleteHalt(ctx context.Context, by ident.Actor, h halt.Halt) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := logDecision(t, by, "continue", h); err != nil {
			return err
		}
		_, err := t.Exec(`DELETE FROM halts WHERE kind = ? AND subject = ? AND operator = ?`, string(h.Kind), h.Key,
			h.Operator)
		return err
	}))
}

// logDecision adds a decision of an operator to their log. The log keeps ids and not names, because its entries stay
// when an account is erased.
func logDecision(t engine.Tx, by ident.Actor, act string, h halt.Halt) error {
	if !h.Operator {
		return nil
	}
	return rows.AppendAudit(t, by, string(h.Kind)+"."+act, h.Key, h.Reason)
}

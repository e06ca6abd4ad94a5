package agents

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// SaveSearch implements hub.Searches. The caller bounds the number of searches.
func (d *Agents) SaveSearch(ctx context.Context, s hub.Saved) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.checkOwner(t, s.AccountID, len(s.Title)+len(s.Query)+newVersionBytes); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO searches (id, account_id, title, query, seen_at, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
			s.ID, s.AccountID, s.Title, s.Query, clock.Milli(s.SeenAt), clock.Milli(s.CreatedAt))
		return err
	})
}

// SavedSearches implements hub.Searches. It returns at most 1,000 in the order in which they were saved.
func (d *Agents) SavedSearches(ctx context.Context, accountID string) ([]hub.Saved, error) {
	var rows []struct {
		ID        string `db:"id"`
		Title     string `db:"title"`
		Query     string `db:"query"`
		SeenAt    int64  `db:"seen_at"`
		CreatedAt int64  `db:"created_at"`
	}
	if err := d.db.List(ctx, &rows, `SELECT id, title, query, seen_at, created_at FROM searches WHERE account_id = ? ORDER BY id LIMIT 1000`, accountID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Saved, len(rows))
	for i, r := range rows {
		out[i] = hub.Saved{ID: r.ID, AccountID: accountID, Title: r.Title, Query: r.Query,
			SeenAt: clock.FromMilli(r.SeenAt), CreatedAt: clock.FromMilli(r.CreatedAt)}
	}
	return out, nil
}

// SeenSearch implements hub.Searches. The time never goes back; a missing search is a NotFound fault.
func (d *Agents) SeenSearch(ctx context.Context, accountID, id string, at time.Time) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		return rows.CheckChanged(t.Exec(`UPDATE searches SET seen_at = MAX(seen_at, ?) WHERE account_id = ? AND id = ?`,
			clock.Milli(at), accountID, id))
	})
}

// DeleteSearch implements hub.Searches. A missing search is a NotFound fault.
func (d *Agents) DeleteSearch(ctx context.Context, accountID, id string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		return rows.CheckChanged(t.Exec(`DELETE FROM searches WHERE account_id = ? AND id = ?`, accountID, id))
	})
}

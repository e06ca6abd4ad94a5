// Package usages stores the usage of models by day. It implements usage.Store.
package usages

import (
	"context"

	"agentsite/internal/usage"
	"agentsite/store/engine"
)

// Usages is the table usage_days.
type Usages struct{ db engine.DB }

// New returns the store of usage in a database.
func New(db engine.DB) *Usages { return &Usages{db} }

// keptDays is the number of days for which usage is kept.
const keptDays = 400

// addUsage adds one call. The owner is that of the agent at the time; an agent that is not registered yet has none.
const addUsage = `INSERT INTO usage_days (day, agent_id, owner_id, person_kind, person_id, model, portal, purpose, calls,
		estimated, input, output, cost)
	VALUES (?1, COALESCE((SELECT id FROM agents WHERE id = ?2), ''), COALESCE((SELECT owner_id FROM agents WHERE id = ?2), ''),
		?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10, ?11)
	ON CONFLICT (day, agent_id, owner_id, person_kind, person_id, model, portal, purpose) DO UPDATE SET
		calls = usage_days.calls + 1, estimated = usage_days.estimated + excluded.estimated,
		input = usage_days.input + excluded.input, output = usage_days.output + excluded.output,
		cost = usage_days.cost + excluded.cost`

// AddUsage implements usage.Store. It also deletes days that are older than keptDays.
func (d *Usages) AddUsage(ctx context.Context, list []usage.Entry) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		for _, e := range list {
			if _, err := t.Exec(addUsage, e.Day, e.AgentID, e.CallerKind, e.CallerID, e.Model, e.Portal,
				string(e.Purpose), e.Estimated, e.Input, e.Output, e.Cost); err != nil {
				return err
			}
		}
		_, err := t.Exec(`DELETE FROM usage_days WHERE day < ?`, list[len(list)-1].Day-keptDays)
		return err
	}))
}

// The columns of the sums, and the conditions of the scopes. An owner sees callers by kind only.
var (
	keys = map[usage.By]string{
		usage.ByDay:   "CAST(u.day AS TEXT)",
		usage.ByAgent: "COALESCE((SELECT name FROM agents WHERE id = u.agent_id), '')",
		usage.ByOwner: "COALESCE((SELECT name FROM accounts WHERE id = u.owner_id), '')",
		usage.ByModel: "u.model",
	}
	scopes = map[usage.Scope]string{usage.OfMe: "u.person_id = ?3", usage.OfAgents: "u.owner_id = ?3", usage.OfPortal: "?3 = ?3"}
)

const personName = "COALESCE((SELECT name FROM accounts WHERE id = u.person_id), u.person_kind)"

// SumUsage implements usage.Store.
func (d *Usages) SumUsage(ctx context.Context, q usage.Query, accountID string) ([]usage.Sum, error) {
	key := keys[q.By]
	if q.By == usage.ByPerson {
		if key = personName; q.Of == usage.OfAgents {
			key = "u.person_kind"
		}
	}
	order := "SUM(u.cost) DESC, SUM(u.input + u.output) DESC, 1"
	if q.By == usage.ByDay {
		order = "MIN(u.day)"
	}
	var rows []struct {
		Key       string `db:"label"`
		Calls     int64  `db:"calls"`
		Estimated int64  `db:"estimated"`
		Input     int64  `db:"input"`
		Output    int64  `db:"output"`
		Talk      int64  `db:"talk"`
		Work      int64  `db:"work"`
	}
	if err := d.db.List(ctx, &rows, `SELECT `+key+` AS label, CAST(SUM(u.calls) AS BIGINT) AS calls,
			CAST(SUM(u.estimated) AS BIGINT) AS estimated, CAST(SUM(u.input) AS BIGINT) AS input,
			CAST(SUM(u.output) AS BIGINT) AS output,
			CAST(SUM(CASE u.purpose WHEN 'talk' THEN u.cost ELSE 0 END) AS BIGINT) AS talk,
			CAST(SUM(CASE u.purpose WHEN 'talk' THEN 0 ELSE u.cost END) AS BIGINT) AS work
		FROM usage_days u WHERE u.day >= ?1 AND u.day <= ?2 AND `+scopes[q.Of]+` AND (?4 = '' OR u.agent_id = ?4)
		GROUP BY 1 ORDER BY `+order, usage.DayOf(q.From), usage.DayOf(q.To), accountID, q.AgentID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]usage.Sum, len(rows))
	for i, r := range rows {
		out[i] = usage.Sum{Key: r.Key, Calls: r.Calls, Estimated: r.Estimated, Input: r.Input, Output: r.Output,
			TalkCost: r.Talk, WorkCost: r.Work}
	}
	return out, nil
}

package usages

import (
	"context"

	"agentsite/internal/usage"
	"agentsite/store/engine"
)

// CeilingsOf implements usage.CeilingStore.
func (d *Usages) CeilingsOf(ctx context.Context, ownerID string) ([]usage.Ceiling, error) {
	var list []struct {
		AgentID string `db:"agent_id"`
		Agent   string `db:"agent"`
		Tokens  int64  `db:"tokens"`
		Cost    int64  `db:"cost"`
	}
	if err := d.db.List(ctx, &list, `SELECT agent_id,
		COALESCE((SELECT name FROM agents WHERE id = c.agent_id), '') AS agent, tokens, cost FROM ceilings c WHERE owner_id = ? ORDER BY agent_id`, ownerID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]usage.Ceiling, len(list))
	for i, r := range list {
		out[i] = usage.Ceiling{OwnerID: ownerID, AgentID: r.AgentID, Agent: r.Agent, Tokens: r.Tokens, Cost: r.Cost}
	}
	return out, nil
}

// PutCeiling implements usage.CeilingStore.
func (d *Usages) PutCeiling(ctx context.Context, c usage.Ceiling) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if c.Tokens == 0 && c.Cost == 0 {
			_, err := t.Exec(`DELETE FROM ceilings WHERE owner_id = ? AND agent_id = ?`, c.OwnerID, c.AgentID)
			return err
		}
		_, err := t.Exec(`INSERT INTO ceilings (owner_id, agent_id, tokens, cost) VALUES (?, ?, ?, ?)
			ON CONFLICT (owner_id, agent_id) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost`, c.OwnerID,
			c.AgentID, c.Tokens, c.Cost)
		return err
	}))
}

// SpentOn implements usage.CeilingStore.
func (d *Usages) SpentOn(ctx context.Context, day int64, ownerID, agentID string) (usage.Amount, error) {
	var row struct {
		Tokens int64 `db:"tokens"`
		Cost   int64 `db:"cost"`
	}
	err := d.db.Get(ctx, &row, `SELECT CAST(COALESCE(SUM(input + output), 0) AS BIGINT) AS tokens,
			CAST(COALESCE(SUM(cost), 0) AS BIGINT) AS cost
		FROM usage_days WHERE owner_id = ?1 AND day = ?2 AND (?3 = '' AND portal = 0 OR agent_id = ?3)`, ownerID, day, agentID)
	return usage.Amount{Tokens: row.Tokens, Cost: row.Cost}, engine.MapError(err)
}

package agents

import (
	"context"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// elsewhereStatus is the status of rows of agents of other portals. No query for due checks selects it.
const elsewhereStatus = "elsewhere"

// peerName returns the name of the row of an agent of another portal. CheckName accepts no such name for
// agents or people here.
func peerName(id string) string { return "@" + strings.ToLower(id) }

// peerSpec is the spec of the row of an agent of another portal; the content of that agent is not stored here.
const peerSpec = `{}`

// KeepElsewhere implements hub.Asked. It adds or updates the row by the agent's id.
func (d *Agents) KeepElsewhere(ctx context.Context, a hub.Agent) error {
	if a.Kind != hub.Peer || a.PortalID == "" || a.NetworkID == "" || a.Portal == "" {
		return fault.New(fault.Internal, "no agent of another portal")
	}
	now := clock.Milli(clock.Now())
	return d.db.Write(ctx, func(t engine.Tx) error {
		var n int
		if err := t.Get(&n, `SELECT COUNT(*) FROM agents WHERE id = ?`, a.ID); err != nil {
			return err
		}
		if n == 0 {
			row := hub.Agent{ID: a.ID, Name: peerName(a.ID), Kind: hub.Peer, Version: 1, Visibility: hub.Public,
				Status: hub.Status{State: elsewhereStatus}, Liveness: hub.Liveness{State: hub.Unknown},
				CreatedAt: clock.FromMilli(now), UpdatedAt: clock.FromMilli(now)}
			if err := rows.TakeName(t, nil, row.Name, "agent", a.ID, now); err != nil {
				return err
			}
			d.publishing.Raise(t)
			if err := t.InsertRows(agentInsert, [][]any{agentValues(row, peerSpec, nil)}); err != nil {
				return err
			}
			if err := insertVersion(t, row, peerSpec, ""); err != nil {
				return err
			}
		}
		d.agents.Invalidate(t)
		_, err := t.Exec(`INSERT INTO elsewhere (agent_id, network_id, portal_id, name, host, title, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (agent_id) DO UPDATE SET name = excluded.name, host = excluded.host, title = excluded.title, updated_at = excluded.updated_at`,
			a.ID, a.NetworkID, a.PortalID, a.Name, a.Portal, a.Title, now)
		return err
	})
}

type elsewhereRow struct {
	AgentID   string `db:"agent_id"`
	NetworkID string `db:"network_id"`
	PortalID  string `db:"portal_id"`
	Name      string `db:"name"`
	Host      string `db:"host"`
	Title     string `db:"title"`
}

const elsewhereQuery = `SELECT agent_id, network_id, portal_id, name, host, title FROM elsewhere `

// into fills a with the agent of another portal that the row describes.
func (r elsewhereRow) into(a *hub.Agent) {
	a.ID, a.NetworkID, a.PortalID, a.Name, a.Portal, a.Title = r.AgentID, r.NetworkID, r.PortalID, r.Name, r.Host,
		r.Title
	a.Kind, a.Visibility, a.Status = hub.Peer, hub.Public, hub.Status{State: hub.Active}
}

// fillRemote replaces the placeholder content of a row of kind peer by the agent of another portal.
func (d *Agents) fillRemote(ctx context.Context, a *hub.Agent) error {
	var r elsewhereRow
	if err := d.db.Get(ctx, &r, elsewhereQuery+`WHERE agent_id = ?`, a.ID); err != nil {
		return engine.MapError(err)
	}
	r.into(a)
	return nil
}

// ElsewhereBy implements hub.Asked. Of several agents with the handle the last one asked wins.
func (d *Agents) ElsewhereBy(ctx context.Context, name, host string) (hub.Agent, error) {
	var r elsewhereRow
	if err := d.db.Get(ctx, &r, elsewhereQuery+`WHERE name = ? AND host = ? ORDER BY updated_at DESC LIMIT 1`, name,
		host); err != nil {
		return hub.Agent{}, engine.MapError(err)
	}
	var a hub.Agent
	r.into(&a)
	return a, nil
}

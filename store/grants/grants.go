// Package grants stores the decisions of people about the tools of agents. It implements grant.Store.
package grants

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/store/engine"
)

// Grants is the table grants.
type Grants struct{ db engine.DB }

// New returns the store of grants in a database.
func New(db engine.DB) *Grants { return &Grants{db} }

type row struct {
	ID             string `db:"id"`
	PersonKind     string `db:"person_kind"`
	PersonID       string `db:"person_id"`
	AgentID        string `db:"agent_id"`
	Agent          string `db:"agent"`
	Tool           string `db:"tool"`
	Target         string `db:"target"`
	ConversationID string `db:"conversation_id"`
	Allowed        bool   `db:"allowed"`
	Calls          int    `db:"calls"`
	Used           int    `db:"used"`
	Until          int64  `db:"until_at"`
	Owner          string `db:"owner"`
	Origin         string `db:"origin"`
	Needs          string `db:"needs"`
	CreatedAt      int64  `db:"created_at"`
}

const columns = `id, person_kind, person_id, agent_id, agent, tool, target, conversation_id, allowed, calls, used,
	until_at, owner, origin, needs, created_at`

// GrantsOf implements grant.Store.
func (d *Grants) GrantsOf(ctx context.Context, p grant.Person, agentID string) ([]grant.Grant, error) {
	var list []row
	if err := d.db.List(ctx, &list, `SELECT `+columns+` FROM grants
		WHERE person_id = ?1 AND person_kind = ?2 AND (?3 = '' OR agent_id = ?3) ORDER BY created_at DESC, id DESC`,
		p.ID, p.Kind, agentID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]grant.Grant, len(list))
	for i, r := range list {
		out[i] = grant.Grant{ID: r.ID, Person: grant.Person{Kind: r.PersonKind, ID: r.PersonID}, AgentID: r.AgentID,
			Agent: r.Agent, Tool: r.Tool, Target: r.Target, ConversationID: r.ConversationID, Allow: r.Allowed,
			Calls: r.Calls, Used: r.Used, Until: clock.FromMilli(r.Until), CreatedAt: clock.FromMilli(r.CreatedAt),
			Binds: grant.Binding{Owner: r.Owner, Origin: r.Origin, Needs: r.Needs}}
	}
	return out, nil
}

// PutGrant implements grant.Store.
func (d *Grants) PutGrant(ctx context.Context, g grant.Grant) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`DELETE FROM grants WHERE person_id = ?1 AND (id = ?2 OR agent_id = ?3 AND tool = ?4
			AND target = ?5 AND conversation_id = ?6)`, g.Person.ID, g.ID, g.AgentID, g.Tool, g.Target,
			g.ConversationID); err != nil {
			return err
		}
		var have int
		if err := t.Get(&have, `SELECT COUNT(*) FROM grants WHERE person_id = ?`, g.Person.ID); err != nil {
			return err
		}
		if have >= grant.MaxGrants {
			return fault.New(fault.Conflict, "You have %d grants, which is the most there may be. Revoke some that "+
				"you do not need on the page of your account.", have)
		}
		_, err := t.Exec(`INSERT INTO grants (`+columns+`)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, g.ID, g.Person.Kind, g.Person.ID, g.AgentID,
			g.Agent, g.Tool, g.Target, g.ConversationID, g.Allow, g.Calls, g.Used, clock.Milli(g.Until),
			g.Binds.Owner, g.Binds.Origin, g.Binds.Needs, clock.Milli(g.CreatedAt))
		return err
	}))
}

// DeleteGrant implements grant.Store.
func (d *Grants) DeleteGrant(ctx context.Context, p grant.Person, id string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		res, err := t.Exec(`DELETE FROM grants WHERE person_id = ? AND id = ? AND person_kind = ?`, p.ID, id, p.Kind)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errNone(id)
		}
		return nil
	}))
}

// SpendCall implements grant.Store.
func (d *Grants) SpendCall(ctx context.Context, p grant.Person, id string) (ok bool, err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		res, err := t.Exec(`UPDATE grants SET used = used + 1
			WHERE person_id = ? AND id = ? AND person_kind = ? AND (calls = 0 OR used < calls)`, p.ID, id, p.Kind)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		ok = n > 0
		return err
	})
	return ok, engine.MapError(err)
}

func errNone(id string) error { return fault.New(fault.NotFound, "You have no grant %.80q.", id) }

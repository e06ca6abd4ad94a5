package agents

import (
	"context"
	"database/sql"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Owners stores the owners of agents and the domains that they proved. It implements hub.Owners and
// hub.Proofs.
type Owners struct {
	db     engine.DB
	agents *Agents
}

func NewOwners(db engine.DB, agents *Agents) *Owners { return &Owners{db, agents} }

// CoOwners implements hub.Owners. It returns them by name, including disabled accounts.
func (d *Owners) CoOwners(ctx context.Context, agentID string) ([]hub.Owner, error) {
	var out []hub.Owner
	err := d.db.List(ctx, &out, `SELECT o.id, o.name FROM agent_owners w JOIN accounts o ON o.id = w.account_id WHERE w.agent_id = ? ORDER BY o.name`, agentID)
	return out, engine.MapError(err)
}

// checkAccount returns a NotFound fault unless the account exists and is not disabled.
func checkAccount(t engine.Tx, accountID string) error {
	var name string
	err := t.Get(&name, `SELECT name FROM accounts WHERE id = ? AND disabled_at = 0`, accountID)
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.NotFound, "There is no such account.")
	}
	return err
}

// AddCoOwner implements hub.Owners. It does nothing for a present co-owner; the owner is a Conflict
// fault.
func (d *Owners) AddCoOwner(ctx context.Context, agentID, accountID string) error {
	return d.agents.aboutAgent(ctx, agentID, func(t engine.Tx, ownerID string) error {
		if ownerID == accountID {
			return fault.New(fault.Conflict, "The owner needs no second right.")
		}
		if err := checkAccount(t, accountID); err != nil {
			return err
		}
		return d.insertCoOwner(t, agentID, accountID)
	})
}

func (d *Owners) insertCoOwner(t engine.Tx, agentID, accountID string) error {
	d.agents.agents.Invalidate(t)
	_, err := t.Exec(`INSERT INTO agent_owners (agent_id, account_id, added_at) VALUES (?, ?, ?) ON CONFLICT (agent_id, account_id) DO NOTHING`,
		agentID, accountID, clock.Milli(clock.Now()))
	return err
}

// RemoveCoOwner implements hub.Owners. An account that is not a co-owner is a NotFound fault.
func (d *Owners) RemoveCoOwner(ctx context.Context, agentID, accountID string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		d.agents.agents.Invalidate(t)
		return rows.CheckChanged(t.Exec(`DELETE FROM agent_owners WHERE agent_id = ? AND account_id = ?`, agentID,
			accountID))
	})
}

// SetOffer implements hub.Owners. A new offer replaces the previous one of the agent.
func (d *Owners) SetOffer(ctx context.Context, agentID, accountID string) error {
	return d.agents.aboutAgent(ctx, agentID, func(t engine.Tx, ownerID string) error {
		if accountID == "" {
			_, err := t.Exec(`DELETE FROM agent_offers WHERE agent_id = ?`, agentID)
			return err
		}
		if ownerID == accountID {
			return fault.New(fault.Conflict, "The agent belongs to that account already.")
		}
		if err := checkAccount(t, accountID); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO agent_offers (agent_id, account_id, created_at) VALUES (?, ?, ?)
			ON CONFLICT (agent_id) DO UPDATE SET account_id = excluded.account_id, created_at = excluded.created_at`,
			agentID, accountID, clock.Milli(clock.Now()))
		return err
	})
}

// OfferOf implements hub.Owners. ok is false when the agent is offered to no account.
func (d *Owners) OfferOf(ctx context.Context, agentID string) (to hub.Owner, ok bool, err error) {
	err = d.db.Get(ctx, &to, `SELECT o.id, o.name FROM agent_offers f JOIN accounts o ON o.id = f.account_id WHERE f.agent_id = ?`, agentID)
	if errors.Is(err, sql.ErrNoRows) {
		return to, false, nil
	}
	return to, err == nil, engine.MapError(err)
}

// Offers implements hub.Owners. It returns the newest 200, newest first.
func (d *Owners) Offers(ctx context.Context, accountID string) ([]hub.Offer, error) {
	var rows []struct {
		agentRow
		ToID    string `db:"to_id"`
		ToName  string `db:"to_name"`
		Offered int64  `db:"offered"`
	}
	if err := d.db.List(ctx, &rows, `SELECT `+agentColumns+`, p.id AS to_id, p.name AS to_name, f.created_at AS offered
		FROM agent_offers f JOIN accounts p ON p.id = f.account_id JOIN agents a ON a.id = f.agent_id LEFT JOIN accounts o ON o.id = a.owner_id
		WHERE f.account_id = ? AND a.deleted_at = 0 AND COALESCE(o.disabled_at, 0) = 0 ORDER BY f.created_at DESC, a.name LIMIT 200`, accountID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Offer, 0, len(rows))
	for _, r := range rows {
		a, err := r.agent()
		if err != nil {
			d.db.Log().Error("skip a damaged agent", "agent", r.ID, "error", err)
			continue
		}
		out = append(out, hub.Offer{Agent: a, To: hub.Owner{ID: r.ToID, Name: r.ToName},
			Created: clock.FromMilli(r.Offered)})
	}
	return out, nil
}

// Transfer implements hub.Owners. A proof of the address by the former owner's token ends; a proof that
// the address itself signed stays.
func (d *Owners) Transfer(ctx context.Context, agentID, accountID string, keep bool, max int) error {
	return d.agents.aboutAgent(ctx, agentID, func(t engine.Tx, ownerID string) error {
		var offers, has int
		if err := t.Get(&offers, `SELECT COUNT(*) FROM agent_offers WHERE agent_id = ? AND account_id = ?`, agentID,
			accountID); err != nil {
			return err
		}
		if offers == 0 {
			return fault.New(fault.Conflict, "The agent is not offered to you any more.")
		}
		if err := checkAccount(t, accountID); err != nil {
			return err
		}
		if err := t.Get(&has, `SELECT COUNT(*) FROM agents WHERE owner_id = ? AND deleted_at = 0`,
			accountID); err != nil {
			return err
		}
		if has >= max {
			return fault.New(fault.Conflict, "You have %d agents already; remove one first.", has)
		}
		d.agents.AgentsChanged(t)
		d.agents.owned.Invalidate(t)
		// The token and the stored credential belong to the former owner.
		if _, err := t.Exec(`UPDATE agents SET owner_id = ?, secret = NULL, proof_method = CASE proof_method WHEN ? THEN '' ELSE proof_method END WHERE id = ?`,
			accountID, hub.ProofToken, agentID); err != nil {
			return err
		}
		if _, err := t.Exec(`DELETE FROM agent_offers WHERE agent_id = ?`, agentID); err != nil {
			return err
		}
		if _, err := t.Exec(`DELETE FROM agent_owners WHERE agent_id = ? AND account_id = ?`, agentID,
			accountID); err != nil {
			return err
		}
		if !keep || ownerID == "" {
			return nil
		}
		return d.insertCoOwner(t, agentID, ownerID)
	})
}

// Account implements hub.Owners. A missing or disabled account is a NotFound fault.
func (d *Owners) Account(ctx context.Context, name string) (hub.Owner, error) {
	var o hub.Owner
	err := d.db.Get(ctx, &o, `SELECT id, name FROM accounts WHERE name = ? AND disabled_at = 0`, name)
	return o, engine.MapError(err)
}

// Operators implements hub.Owners. It leaves out disabled accounts and returns at most 100.
func (d *Owners) Operators(ctx context.Context) ([]string, error) {
	var ids []string
	err := d.db.List(ctx, &ids, `SELECT id FROM accounts WHERE operator = 1 AND disabled_at = 0 ORDER BY id LIMIT 100`)
	return ids, engine.MapError(err)
}

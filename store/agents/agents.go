// Package agents stores agents: versions, owners, proofs, health, calls,
// releases of the MCP registry, reports and saved searches.
package agents

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/store/engine"
	"agentsite/store/hooks"
	"agentsite/store/quotas"
	"agentsite/store/rows"
)

// Agents stores agents with their versions, and the data of each: icons, reports and saved searches.
// It implements hub.Agents, Asked, Lists, Secrets, Icons, Reports and Searches.
type Agents struct {
	db     engine.DB
	hooks  *hooks.Hooks
	quotas *quotas.Quotas
	agents *engine.Cache[hub.Agent] // key: "id " or "name " and the value
	owned  *engine.Cache[int]       // number of agents by owner
	form   rows.NameForm
	// publishing is raised when an agent that other portals may list has changed.
	publishing *engine.Signal
}

// New returns Agents on a database. form gives the reserved forms of names; nil if no name was ever erased.
func New(db engine.DB, hooks *hooks.Hooks, quotas *quotas.Quotas, form rows.NameForm) *Agents {
	return &Agents{db: db, form: form, hooks: hooks, quotas: quotas, agents: engine.NewCache[hub.Agent](maxCachedAgents),
		owned: engine.NewCache[int](0), publishing: engine.NewSignal()}
}

// CreateAgent implements hub.Agents. A taken name is a Conflict fault.
func (d *Agents) CreateAgent(ctx context.Context, a hub.Agent, sealed []byte) error {
	spec, err := specOf(a)
	if err != nil {
		return err
	}
	return d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.checkOwner(t, a.OwnerID, 2*len(spec)+newAgentBytes); err != nil {
			return err
		}
		if err := rows.TakeName(t, d.form, a.Name, "agent", a.ID, clock.Milli(a.CreatedAt)); err != nil {
			return err
		}
		return d.insertAgent(t, a, spec, sealed)
	})
}

// A new agent counts newAgentBytes besides its text, a new version newVersionBytes, as in the triggers.
const newAgentBytes, newVersionBytes = 1300, 300

// checkOwner returns a RateLimited fault if the owner of an agent may not store that many bytes.
func (d *Agents) checkOwner(t engine.Tx, ownerID string, bytes int) error {
	return d.quotas.CheckRoom(t, string(ident.Person), ownerID, int64(bytes))
}

// insertAgent stores an agent after its name was reserved in this transaction. The agent is due for a check
// at once, or at the time of its liveness.
func (d *Agents) insertAgent(t engine.Tx, a hub.Agent, spec string, sealed []byte) error {
	if err := t.InsertRows(agentInsert, [][]any{agentValues(a, spec, sealed)}); err != nil {
		return err
	}
	d.agentAdded(t, a.OwnerID)
	if err := d.hooks.NotifyRegistration(t, a); err != nil {
		return err
	}
	return insertVersion(t, a, spec, a.OwnerID)
}

const agentInsert = `INSERT INTO agents (id, name, kind, owner_id, version, title, visibility, spec, secret, status, status_message, held,
	live_state, live_reason, live_at, check_at, created_at, updated_at) VALUES`

func agentValues(a hub.Agent, spec string, sealed []byte) []any {
	at, checked := clock.Milli(a.CreatedAt), clock.Milli(a.Liveness.CheckedAt)
	return []any{a.ID, a.Name, string(a.Kind), rows.NullText(a.OwnerID), a.Version, a.Title, string(a.Visibility), spec,
		secretValue(sealed),
		a.Status.State, a.Status.Message, a.Status.Held, string(a.Liveness.State), a.Liveness.Reason, checked, checked,
		at, at}
}

// agentAdded updates caches and signals for a stored agent. No cached agent changes by that.
func (d *Agents) agentAdded(t engine.Tx, ownerID string) {
	d.publishing.Raise(t)
	d.owned.Change(t, ownerID, func(n int) int { return n + 1 })
}

// AgentsChanged invalidates the cached agents and wakes publishing at the end of the transaction. Call
// it in each transaction that changes the content or visibility of agents.
func (d *Agents) AgentsChanged(t engine.Tx) {
	d.agents.Invalidate(t)
	d.publishing.Raise(t)
}

// insertVersion stores an agent's current content as one of its versions.
func insertVersion(t engine.Tx, a hub.Agent, spec, author string) error {
	return t.InsertRows(versionInsert, [][]any{versionValues(a, spec, author)})
}

const versionInsert = `INSERT INTO agent_versions (agent_id, version, title, visibility, spec, author_id, created_at, kind, note, status, icon) VALUES`

func versionValues(a hub.Agent, spec, author string) []any {
	return []any{a.ID, a.Version, a.Title, string(a.Visibility), spec, author, clock.Milli(a.UpdatedAt), string(a.Kind),
		a.Note, a.Status.State, a.Icon}
}

// maxCreate bounds the agents that one call stores, because other writes wait meanwhile.
const maxCreate = 1000

// CreateAgents implements hub.Agents. The fields of its Conflict fault have the names agents[i].name.
// More than maxCreate agents are an Invalid fault.
func (d *Agents) CreateAgents(ctx context.Context, list []hub.Agent) error {
	if len(list) > maxCreate {
		return fault.New(fault.Invalid, "Register at most %d agents at once.", maxCreate)
	}
	// Encode before the transaction, because other writes wait during it.
	at, twice := make(map[string]int, len(list)), make(map[int]bool)
	bytes := make(map[string]int) // by owner
	names, agents, versions := make([][]any, len(list)), make([][]any, len(list)), make([][]any, len(list))
	for i, a := range list {
		spec, err := specOf(a)
		if err != nil {
			return err
		}
		if _, ok := at[a.Name]; ok {
			twice[i] = true
		} else {
			at[a.Name] = i
		}
		bytes[a.OwnerID] += 2*len(spec) + newAgentBytes
		names[i] = []any{a.Name, "agent", a.ID, clock.Milli(a.CreatedAt)}
		agents[i], versions[i] = agentValues(a, spec, nil), versionValues(a, spec, a.OwnerID)
	}
	if len(list) == 0 {
		return nil
	}
	if len(twice) > 0 {
		return takenNames(list, twice)
	}
	// Insert in the order of the index, so that neighbours share its pages.
	slices.SortStableFunc(names, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return d.db.Write(ctx, func(t engine.Tx) error {
		for owner, n := range bytes {
			if err := d.checkOwner(t, owner, n); err != nil {
				return err
			}
		}
		if err := d.checkReserved(t, list, at); err != nil {
			return err
		}
		err := t.Try(func() error { return t.InsertRows(rows.NameInsert, names) })
		if engine.ReasonOf(err) == engine.Duplicate {
			return findTaken(t, list, at)
		}
		if err == nil {
			err = t.InsertRows(agentInsert, agents)
		}
		if err == nil {
			err = t.InsertRows(versionInsert, versions)
		}
		if err != nil {
			return err
		}
		for _, a := range list {
			d.agentAdded(t, a.OwnerID)
			if err := d.hooks.NotifyRegistration(t, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// TakeName reserves a name for ever, see rows.TakeName.
func (d *Agents) TakeName(t engine.Tx, name, kind, ref string, at int64) error {
	return rows.TakeName(t, d.form, name, kind, ref, at)
}

// checkReserved returns the Conflict fault for a list with names of erased accounts or agents.
func (d *Agents) checkReserved(t engine.Tx, list []hub.Agent, at map[string]int) error {
	reserved, err := rows.FindReserved(t, d.form, slices.Collect(maps.Keys(at))...)
	if err != nil || len(reserved) == 0 {
		return err
	}
	which := make(map[int]bool)
	for _, name := range reserved {
		which[at[name]] = true
	}
	return takenNames(list, which)
}

// findTaken returns the Conflict fault for a list of which some names are taken. Names that this
// transaction has inserted for the list do not count.
func findTaken(t engine.Tx, list []hub.Agent, at map[string]int) error {
	which := make(map[int]bool)
	for name, i := range at {
		var ref string
		err := t.Get(&ref, `SELECT ref FROM names WHERE name = ?`, name)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && ref != list[i].ID {
			which[i] = true
		}
	}
	return takenNames(list, which)
}

// takenNames returns the Conflict fault that names the taken entries of list; which holds their indexes.
func takenNames(list []hub.Agent, which map[int]bool) error {
	f := &fault.Error{Kind: fault.Conflict, Fields: make(map[string]string, len(which))}
	var first []string
	for i, a := range list {
		if !which[i] {
			continue
		}
		f.Fields[fmt.Sprintf("agents[%d].name", i)] = "the name " + a.Name + " is taken; choose another"
		if len(first) < 5 {
			first = append(first, a.Name)
		}
	}
	f.Safe = "Nothing was registered, because these names are taken: " + strings.Join(first, ", ")
	if more := len(which) - len(first); more > 0 {
		f.Safe += fmt.Sprintf(" and %d more", more)
	}
	f.Safe += "."
	return f
}

func secretValue(sealed []byte) any {
	if len(sealed) == 0 {
		return nil
	}
	return sealed
}

// UpdateAgent implements hub.Agents. It notifies the owners' webhooks in the same transaction.
func (d *Agents) UpdateAgent(ctx context.Context, a hub.Agent, base int, sealed []byte, author ident.Actor) error {
	spec, err := specOf(a)
	if err != nil {
		return err
	}
	return d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.quotas.CheckAgent(t, a.ID, int64(len(spec)+newVersionBytes)); err != nil {
			return err
		}
		return d.replaceAgent(t, a, spec, base, sealed, author)
	})
}

func (d *Agents) replaceAgent(t engine.Tx, a hub.Agent, spec string, base int, sealed []byte,
	author ident.Actor) error {
	var before []struct {
		Kind       string `db:"kind"`
		Spec       string `db:"spec"`
		Name       string `db:"name"`
		OwnerID    string `db:"owner_id"`
		Status     string `db:"status"`
		Visibility string `db:"visibility"`
	}
	if err := t.List(&before, `SELECT kind, spec, name, COALESCE(owner_id, '') AS owner_id, status, visibility FROM agents WHERE id = ? AND version = ? AND deleted_at = 0`, a.ID, base); err != nil {
		return err
	}
	if len(before) == 0 {
		return fault.New(fault.Conflict, "The agent was changed or removed meanwhile. Load it again.")
	}
	d.AgentsChanged(t)
	if _, err := t.Exec(`UPDATE agents SET kind = ?, version = ?, title = ?, visibility = ?, spec = ?, status = ?, status_message = ?, held = ?, updated_at = ? WHERE id = ?`,
		string(a.Kind), a.Version, a.Title, string(a.Visibility), spec, a.Status.State, a.Status.Message, a.Status.Held,
		clock.Milli(a.UpdatedAt), a.ID); err != nil {
		return err
	}
	if sealed != nil {
		if _, err := t.Exec(`UPDATE agents SET secret = ? WHERE id = ?`, secretValue(sealed), a.ID); err != nil {
			return err
		}
	}
	if hub.Kind(before[0].Kind) != a.Kind || endpointOf(before[0].Spec) != a.Endpoint {
		if err := d.resetProof(t, a.ID); err != nil {
			return err
		}
	}
	if before[0].Status != a.Status.State || before[0].Visibility != string(a.Visibility) {
		if err := touchReleases(t, a.ID, clock.Milli(a.UpdatedAt)); err != nil {
			return err
		}
	}
	if err := d.hooks.NotifyOwners(t, a.ID, before[0].OwnerID, notify.AgentChanged,
		notify.Facts{Agent: before[0].Name, Version: a.Version}, clock.Milli(a.UpdatedAt)); err != nil {
		return err
	}
	return insertVersion(t, a, spec, author.ID)
}

// resetProof makes an agent with a new address due for a check and ends the proof of the previous
// address.
func (d *Agents) resetProof(t engine.Tx, agentID string) error {
	d.AgentsChanged(t)
	_, err := t.Exec(`UPDATE agents SET check_at = 0, failures = 0, proof_method = '', proof_origin = '', proof_at = 0 WHERE id = ?`, agentID)
	return err
}

// endpointOf returns the address in a spec, "" if the spec cannot be read.
func endpointOf(spec string) string {
	var s struct {
		Endpoint string `json:"endpoint"`
	}
	_ = json.Unmarshal([]byte(spec), &s)
	return s.Endpoint
}

// DeleteAgent implements hub.Agents. The row and its versions stay, marked as deleted, because tasks and
// reports refer to them.
func (d *Agents) DeleteAgent(ctx context.Context, id string) error {
	now := clock.Milli(clock.Now())
	return d.db.Write(ctx, func(t engine.Tx) error {
		var was []struct {
			Name    string `db:"name"`
			OwnerID string `db:"owner_id"`
		}
		if err := t.List(&was, `SELECT name, COALESCE(owner_id, '') AS owner_id FROM agents WHERE id = ? AND deleted_at = 0`, id); err != nil {
			return err
		}
		if len(was) > 0 {
			if err := d.hooks.NotifyOwners(t, id, was[0].OwnerID, notify.AgentRemoved, notify.Facts{Agent: was[0].Name},
				now); err != nil {
				return err
			}
		}
		d.AgentsChanged(t)
		d.owned.Invalidate(t)
		if _, err := t.Exec(`UPDATE agents SET deleted_at = ?, updated_at = ?, secret = NULL WHERE id = ?`, now, now,
			id); err != nil {
			return err
		}
		if err := touchReleases(t, id, now); err != nil {
			return err
		}
		for _, q := range []string{
			`DELETE FROM agent_offers WHERE agent_id = ?`,
			`DELETE FROM agent_owners WHERE agent_id = ?`,
			`DELETE FROM agent_traces WHERE agent_id = ?`,
			`DELETE FROM agent_health WHERE agent_id = ?`,
			`DELETE FROM agent_days WHERE agent_id = ?`,
			`DELETE FROM grants WHERE agent_id = ?`,
			`DELETE FROM summaries WHERE agent_id = ?`,
			`DELETE FROM memories WHERE agent_id = ?`,
			`DELETE FROM ceilings WHERE agent_id = ?`,
			`DELETE FROM halts WHERE kind = 'agent' AND subject = ?`,
			// Earlier versions of a deleted agent are not shown. Their rows stay, so that versions have no gap.
			`UPDATE agent_versions SET spec = '{}', note = '' WHERE agent_id = ?1 AND version < (SELECT version FROM agents WHERE id = ?1)`,
		} {
			if _, err := t.Exec(q, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// SealedSecret implements hub.Secrets. An agent without a credential is a NotFound fault.
func (d *Agents) SealedSecret(ctx context.Context, agentID string) ([]byte, error) {
	var b []byte
	err := d.db.Get(ctx, &b, `SELECT secret FROM agents WHERE id = ? AND secret IS NOT NULL AND deleted_at = 0`,
		agentID)
	return b, engine.MapError(err)
}

// aboutAgent runs change in a transaction in which the agent exists; a deleted agent is a NotFound
// fault.
func (d *Agents) aboutAgent(ctx context.Context, agentID string,
	change func(t engine.Tx, ownerID string) error) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		var owner []string
		if err := t.List(&owner, `SELECT COALESCE(owner_id, '') FROM agents WHERE id = ? AND deleted_at = 0`,
			agentID); err != nil {
			return err
		}
		if len(owner) == 0 {
			return fault.New(fault.NotFound, "The agent is gone.")
		}
		return change(t, owner[0])
	})
}

// CountAgents implements hub.Lists. It is cached, because every registration asks for it and counting
// reads each row.
func (d *Agents) CountAgents(ctx context.Context, ownerID string) (int, error) {
	n, generation, ok := d.owned.Get(ownerID)
	if ok {
		return n, nil
	}
	if err := d.db.Get(ctx, &n, `SELECT COUNT(*) FROM agents WHERE owner_id = ? AND deleted_at = 0`,
		ownerID); err != nil {
		return 0, engine.MapError(err)
	}
	d.owned.Put(ownerID, n, generation)
	return n, nil
}

// NameTaken implements hub.Agents. Names of deleted agents and accounts stay taken.
func (d *Agents) NameTaken(ctx context.Context, name string) (bool, error) {
	var n int
	form := name
	if d.form != nil {
		var err error
		if form, err = d.form(name); err != nil {
			return false, err
		}
	}
	err := d.db.Get(ctx, &n, `SELECT COUNT(*) FROM names WHERE name = ? OR name = ?`, name, form)
	return n > 0, engine.MapError(err)
}

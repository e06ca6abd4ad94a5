package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

var _ hub.Store = (*DB)(nil)

// agentSpec is the JSON of what a version says beyond its columns.
type agentSpec struct {
	Description string          `json:"description"`
	Endpoint    string          `json:"endpoint,omitempty"`
	Skills      []hub.Skill     `json:"skills,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"`
	InputModes  []string        `json:"input_modes,omitempty"`
	OutputModes []string        `json:"output_modes,omitempty"`
}

func specOf(a hub.Agent) (string, error) {
	b, err := json.Marshal(agentSpec{a.Description, a.Endpoint, a.Skills, a.Config, a.InputModes, a.OutputModes})
	return string(b), err
}

func (s agentSpec) into(a *hub.Agent) {
	a.Description, a.Endpoint, a.Skills, a.Config = s.Description, s.Endpoint, s.Skills, s.Config
	a.InputModes, a.OutputModes = s.InputModes, s.OutputModes
}

type agentRow struct {
	ID            string `db:"id"`
	Name          string `db:"name"`
	Kind          string `db:"kind"`
	OwnerID       string `db:"owner_id"`
	OwnerName     string `db:"owner_name"`
	Version       int    `db:"version"`
	Title         string `db:"title"`
	Visibility    string `db:"visibility"`
	Spec          string `db:"spec"`
	HasSecret     bool   `db:"has_secret"`
	Status        string `db:"status"`
	StatusMessage string `db:"status_message"`
	LiveState     string `db:"live_state"`
	LiveReason    string `db:"live_reason"`
	LiveLatency   int64  `db:"live_latency"`
	LiveAt        int64  `db:"live_at"`
	CreatedAt     int64  `db:"created_at"`
	UpdatedAt     int64  `db:"updated_at"`
}

func (r agentRow) agent() (hub.Agent, error) {
	a := hub.Agent{
		ID: r.ID, Name: r.Name, Kind: hub.Kind(r.Kind), OwnerID: r.OwnerID, OwnerName: r.OwnerName, Version: r.Version,
		Title: r.Title, Visibility: hub.Visibility(r.Visibility), HasSecret: r.HasSecret,
		Status:    hub.Status{State: r.Status, Message: r.StatusMessage},
		Liveness:  hub.Liveness{State: hub.Live(r.LiveState), Reason: r.LiveReason, Latency: time.Duration(r.LiveLatency) * time.Millisecond, CheckedAt: clock.FromMilli(r.LiveAt)},
		CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt),
	}
	var s agentSpec
	if err := json.Unmarshal([]byte(r.Spec), &s); err != nil {
		return a, fmt.Errorf("read agent %s: %w", r.ID, err)
	}
	s.into(&a)
	return a, nil
}

// agentQuery leaves out deleted agents and those of disabled accounts.
const agentQuery = `SELECT a.id, a.name, a.kind, COALESCE(a.owner_id, '') AS owner_id, COALESCE(o.name, '') AS owner_name, a.version, a.title, a.visibility, a.spec,
	a.secret IS NOT NULL AS has_secret, a.status, a.status_message, a.live_state, a.live_reason, a.live_latency, a.live_at, a.created_at, a.updated_at
	FROM agents a LEFT JOIN accounts o ON o.id = a.owner_id
	WHERE a.deleted_at = 0 AND COALESCE(o.disabled_at, 0) = 0 `

// CreateAgent implements hub.Agents.
func (d *DB) CreateAgent(ctx context.Context, a hub.Agent, sealed []byte) error {
	spec, err := specOf(a)
	if err != nil {
		return err
	}
	return d.write(ctx, func(t *tx) error {
		at := clock.Milli(a.CreatedAt)
		if err := t.takeName(a.Name, "agent", a.ID, at); err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO agents (id, name, kind, owner_id, version, title, visibility, spec, secret, status, status_message,
			live_state, live_reason, live_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			a.ID, a.Name, string(a.Kind), nullable(a.OwnerID), a.Version, a.Title, string(a.Visibility), spec, secretValue(sealed),
			a.Status.State, a.Status.Message, string(a.Liveness.State), a.Liveness.Reason, clock.Milli(a.Liveness.CheckedAt), at, at); err != nil {
			return err
		}
		return t.version(a, spec, a.OwnerID)
	})
}

func secretValue(sealed []byte) any {
	if len(sealed) == 0 {
		return nil
	}
	return sealed
}

func (t *tx) version(a hub.Agent, spec, author string) error {
	_, err := t.exec(`INSERT INTO agent_versions (agent_id, version, title, visibility, spec, author_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.Version, a.Title, string(a.Visibility), spec, author, clock.Milli(a.UpdatedAt))
	return err
}

// UpdateAgent implements hub.Agents.
func (d *DB) UpdateAgent(ctx context.Context, a hub.Agent, base int, sealed []byte, author ident.Actor) error {
	spec, err := specOf(a)
	if err != nil {
		return err
	}
	return d.write(ctx, func(t *tx) error {
		res, err := t.exec(`UPDATE agents SET kind = ?, version = ?, title = ?, visibility = ?, spec = ?, status = ?, status_message = ?, updated_at = ?
			WHERE id = ? AND version = ? AND deleted_at = 0`,
			string(a.Kind), a.Version, a.Title, string(a.Visibility), spec, a.Status.State, a.Status.Message, clock.Milli(a.UpdatedAt), a.ID, base)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.Conflict, "The agent was changed or removed meanwhile. Load it again.")
		}
		if sealed != nil {
			if _, err := t.exec(`UPDATE agents SET secret = ? WHERE id = ?`, secretValue(sealed), a.ID); err != nil {
				return err
			}
		}
		return t.version(a, spec, author.ID)
	})
}

// DeleteAgent implements hub.Agents.
func (d *DB) DeleteAgent(ctx context.Context, id string) error {
	return d.write(ctx, func(t *tx) error {
		_, err := t.exec(`UPDATE agents SET deleted_at = ?, secret = NULL WHERE id = ?`, clock.Milli(clock.Now()), id)
		return err
	})
}

func (d *DB) agent(ctx context.Context, where string, args ...any) (hub.Agent, error) {
	var r agentRow
	if err := d.get(ctx, &r, agentQuery+where, args...); err != nil {
		return hub.Agent{}, mapError(err)
	}
	return r.agent()
}

// AgentByName implements hub.Agents.
func (d *DB) AgentByName(ctx context.Context, name string) (hub.Agent, error) {
	return d.agent(ctx, `AND a.name = ?`, name)
}

// AgentByID implements hub.Agents.
func (d *DB) AgentByID(ctx context.Context, id string) (hub.Agent, error) {
	return d.agent(ctx, `AND a.id = ?`, id)
}

func (d *DB) agents(ctx context.Context, where string, args ...any) ([]hub.Agent, error) {
	var rows []agentRow
	if err := d.list(ctx, &rows, agentQuery+where, args...); err != nil {
		return nil, mapError(err)
	}
	return d.readable(rows), nil
}

// readable leaves out rows that are damaged: one of them must not hide the
// others.
func (d *DB) readable(rows []agentRow) []hub.Agent {
	out := make([]hub.Agent, 0, len(rows))
	for _, r := range rows {
		a, err := r.agent()
		if err != nil {
			d.log.Error("skip a damaged agent", "agent", r.ID, "error", err)
			continue
		}
		out = append(out, a)
	}
	return out
}

// allPage is how many agents are read at once, so that no read transaction
// grows long.
const allPage = 1000

// AllAgents implements hub.Lists.
func (d *DB) AllAgents(ctx context.Context, yield func(hub.Agent) bool) error {
	after := ""
	for {
		var page []agentRow
		if err := d.list(ctx, &page, agentQuery+`AND a.id > ? ORDER BY a.id LIMIT ?`, after, allPage); err != nil {
			return mapError(err)
		}
		for _, a := range d.readable(page) {
			if !yield(a) {
				return nil
			}
		}
		if len(page) < allPage {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

// AgentsOf implements hub.Lists. It includes agents of disabled accounts,
// whose owner asks nothing, so that they can be taken out of the index.
func (d *DB) AgentsOf(ctx context.Context, ownerID string) ([]hub.Agent, error) {
	var rows []agentRow
	err := d.list(ctx, &rows, `SELECT a.id, a.name, a.kind, a.owner_id, o.name AS owner_name, a.version, a.title, a.visibility, a.spec,
		a.secret IS NOT NULL AS has_secret, a.status, a.status_message, a.live_state, a.live_reason, a.live_latency, a.live_at, a.created_at, a.updated_at
		FROM agents a JOIN accounts o ON o.id = a.owner_id WHERE a.deleted_at = 0 AND a.owner_id = ? ORDER BY a.name`, ownerID)
	if err != nil {
		return nil, mapError(err)
	}
	out := make([]hub.Agent, 0, len(rows))
	for _, r := range rows {
		a, err := r.agent()
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// Versions implements hub.Lists.
func (d *DB) Versions(ctx context.Context, agentID string) ([]hub.Agent, error) {
	var rows []struct {
		Version    int    `db:"version"`
		Title      string `db:"title"`
		Visibility string `db:"visibility"`
		Spec       string `db:"spec"`
		Author     string `db:"author"`
		CreatedAt  int64  `db:"created_at"`
	}
	err := d.list(ctx, &rows, `SELECT v.version, v.title, v.visibility, v.spec, COALESCE(o.name, '') AS author, v.created_at
		FROM agent_versions v LEFT JOIN accounts o ON o.id = v.author_id WHERE v.agent_id = ? ORDER BY v.version DESC LIMIT 1000`, agentID)
	if err != nil {
		return nil, mapError(err)
	}
	out := make([]hub.Agent, len(rows))
	for i, r := range rows {
		a := hub.Agent{ID: agentID, Version: r.Version, Title: r.Title, Visibility: hub.Visibility(r.Visibility), UpdatedAt: clock.FromMilli(r.CreatedAt)}
		var s agentSpec
		if err := json.Unmarshal([]byte(r.Spec), &s); err != nil {
			return nil, fmt.Errorf("read version %d of agent %s: %w", r.Version, agentID, err)
		}
		s.into(&a)
		out[i] = a
	}
	return out, nil
}

// SealedSecret implements hub.Secrets.
func (d *DB) SealedSecret(ctx context.Context, agentID string) ([]byte, error) {
	var b []byte
	err := d.get(ctx, &b, `SELECT secret FROM agents WHERE id = ? AND secret IS NOT NULL AND deleted_at = 0`, agentID)
	return b, mapError(err)
}

// SetLiveness implements hub.Health.
func (d *DB) SetLiveness(ctx context.Context, agentID string, l hub.Liveness) error {
	return d.write(ctx, func(t *tx) error {
		res, err := t.exec(`UPDATE agents SET live_state = ?, live_reason = ?, live_latency = ?, live_at = ? WHERE id = ? AND deleted_at = 0`,
			string(l.State), l.Reason, l.Latency.Milliseconds(), clock.Milli(l.CheckedAt), agentID)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.NotFound, "The agent is gone.")
		}
		return nil
	})
}

// Due implements hub.Health.
func (d *DB) Due(ctx context.Context, then time.Time, limit int) ([]hub.Agent, error) {
	return d.agents(ctx, `AND a.live_at < ? AND a.kind <> 'builtin' AND a.status = 'active' ORDER BY a.live_at LIMIT ?`, clock.Milli(then), limit)
}

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/store/engine"
)

// AgentSpec is the JSON of a version's content beyond its columns.
type AgentSpec struct {
	Description  string          `json:"description"`
	Endpoint     string          `json:"endpoint,omitempty"`
	Skills       []hub.Skill     `json:"skills,omitempty"`
	Config       json.RawMessage `json:"config,omitempty"`
	InputModes   []string        `json:"input_modes,omitempty"`
	OutputModes  []string        `json:"output_modes,omitempty"`
	Languages    []string        `json:"languages,omitempty"`
	Icon         string          `json:"icon,omitempty"`
	Publisher    string          `json:"publisher,omitempty"`
	Limits       hub.Limits      `json:"limits,omitzero"`
	EmbedOrigins []string        `json:"embed_origins,omitempty"`
}

func specOf(a hub.Agent) (string, error) {
	b, err := json.Marshal(AgentSpec{a.Description, a.Endpoint, a.Skills, a.Config, a.InputModes, a.OutputModes,
		a.Languages, a.Icon, a.Publisher, a.Limits, a.EmbedOrigins})
	return string(b), err
}

func (s AgentSpec) fillAgent(a *hub.Agent) {
	a.Description, a.Endpoint, a.Skills, a.Config = s.Description, s.Endpoint, s.Skills, s.Config
	a.InputModes, a.OutputModes, a.Languages = s.InputModes, s.OutputModes, s.Languages
	a.Icon, a.Publisher, a.Limits, a.EmbedOrigins = s.Icon, s.Publisher, s.Limits, s.EmbedOrigins
}

type agentRow struct {
	ID            string `db:"id"`
	Name          string `db:"name"`
	Kind          string `db:"kind"`
	OwnerID       string `db:"owner_id"`
	OwnerName     string `db:"owner_name"`
	CoOwners      string `db:"co_owners"` // account ids separated by spaces
	Version       int    `db:"version"`
	Title         string `db:"title"`
	Visibility    string `db:"visibility"`
	Spec          string `db:"spec"`
	HasSecret     bool   `db:"has_secret"`
	Status        string `db:"status"`
	StatusMessage string `db:"status_message"`
	Held          bool   `db:"held"`
	ProofMethod   string `db:"proof_method"`
	ProofOrigin   string `db:"proof_origin"`
	ProofAt       int64  `db:"proof_at"`
	LiveState     string `db:"live_state"`
	LiveReason    string `db:"live_reason"`
	LiveLatency   int64  `db:"live_latency"`
	LiveAt        int64  `db:"live_at"`
	CreatedAt     int64  `db:"created_at"`
	UpdatedAt     int64  `db:"updated_at"`
}

func (r *agentRow) agent() (hub.Agent, error) {
	var s AgentSpec
	if err := json.Unmarshal([]byte(r.Spec), &s); err != nil {
		return hub.Agent{}, fmt.Errorf("read agent %s: %w", r.ID, err)
	}
	return r.with(&s), nil
}

// with returns the agent of a row, with its spec already decoded.
func (r *agentRow) with(s *AgentSpec) hub.Agent {
	a := hub.Agent{
		ID: r.ID, Name: r.Name, Kind: hub.Kind(r.Kind), OwnerID: r.OwnerID, OwnerName: r.OwnerName,
		CoOwnerIDs: strings.Fields(r.CoOwners), Version: r.Version,
		Title: r.Title, Visibility: hub.Visibility(r.Visibility), HasSecret: r.HasSecret,
		Status: hub.Status{State: r.Status, Message: r.StatusMessage, Held: r.Held},
		Liveness: hub.Liveness{State: hub.Live(r.LiveState), Reason: r.LiveReason,
			Latency: time.Duration(r.LiveLatency) * time.Millisecond, CheckedAt: clock.FromMilli(r.LiveAt)},
		CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt),
	}
	s.fillAgent(&a)
	a.Proof = r.proof(&a)
	return a
}

// proof returns the proof that is valid for a. A stored proof counts only if the agent's address has the
// proved origin.
func (r *agentRow) proof(a *hub.Agent) hub.Proof {
	first := hub.FirstProof(a.Kind)
	if first.State == hub.Hosted || r.ProofMethod == "" || r.ProofOrigin != originOf(a.Endpoint) {
		return first
	}
	return hub.Proof{State: hub.Proved, Method: r.ProofMethod, Origin: r.ProofOrigin, At: clock.FromMilli(r.ProofAt)}
}

// originOf returns scheme, host and port of an address in lower case, without the scheme's default port;
// "" if it is no address.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host
}

const agentColumns = `a.id, a.name, a.kind, COALESCE(a.owner_id, '') AS owner_id, COALESCE(o.name, '') AS owner_name,
	COALESCE((SELECT string_agg(w.account_id, ' ') FROM agent_owners w WHERE w.agent_id = a.id), '') AS co_owners, a.version, a.title, a.visibility, a.spec,
	a.secret IS NOT NULL AS has_secret, a.status, a.status_message, a.held, a.proof_method, a.proof_origin, a.proof_at,
	a.live_state, a.live_reason, a.live_latency, a.live_at, a.created_at, a.updated_at`

// listColumns are agentColumns for lists. They leave out the settings of long specs, because those
// of an MCP server list all its tools.
var listColumns = strings.Replace(agentColumns, "a.spec,",
	"CASE WHEN length(a.spec) > 8192 THEN json_remove(a.spec, '$.config') ELSE a.spec END AS spec,", 1)

// agentQuery leaves out deleted agents and those of disabled accounts.
const agentQuery = `SELECT ` + agentColumns + `
	FROM agents a LEFT JOIN accounts o ON o.id = a.owner_id
	WHERE a.deleted_at = 0 AND COALESCE(o.disabled_at, 0) = 0 `

// listQuery is agentQuery with listColumns.
var listQuery = strings.Replace(agentQuery, agentColumns, listColumns, 1)

// maxShared bounds the agents that an account co-owns in AgentsOf.
const maxShared = 500

const (
	// maxCachedSpec is the longest spec in bytes of a cached agent, and maxCachedAgents bounds their
	// number, about 10 MiB together. Agents are cached because each call reads its agent several times.
	maxCachedSpec   = 8 << 10
	maxCachedAgents = 1024
)

// agent returns one agent, cached under key. An agent with a credential is not cached: Open reads both
// and compares the agent before and after, and the cache is invalidated only after the commit.
func (d *Agents) agent(ctx context.Context, key, where, arg string) (hub.Agent, error) {
	a, generation, ok := d.agents.Get(key)
	if ok {
		return ownCopy(a), nil
	}
	var r agentRow
	if err := d.db.Get(ctx, &r, agentQuery+where, arg); err != nil {
		return hub.Agent{}, engine.MapError(err)
	}
	a, err := r.agent()
	if err == nil && a.Kind == hub.Peer {
		err = d.fillRemote(ctx, &a)
	}
	if err == nil && !a.HasSecret && len(r.Spec) <= maxCachedSpec {
		d.agents.Put(key, ownCopy(a), generation)
	}
	return a, err
}

// ownCopy returns a copy that shares no mutable data with a.
func ownCopy(a hub.Agent) hub.Agent {
	a.Skills = slices.Clone(a.Skills)
	for i, s := range a.Skills {
		a.Skills[i].Tags, a.Skills[i].Examples = slices.Clone(s.Tags), slices.Clone(s.Examples)
	}
	a.CoOwnerIDs, a.Config, a.Limits.Listed = slices.Clone(a.CoOwnerIDs), slices.Clone(a.Config),
		slices.Clone(a.Limits.Listed)
	a.InputModes, a.OutputModes, a.Languages = slices.Clone(a.InputModes), slices.Clone(a.OutputModes),
		slices.Clone(a.Languages)
	return a
}

// AgentByName implements hub.Agents. It finds only agents of this portal; a deleted agent or one of a
// disabled owner is a NotFound fault.
func (d *Agents) AgentByName(ctx context.Context, name string) (hub.Agent, error) {
	return d.agent(ctx, "name "+name, `AND a.kind <> 'peer' AND a.name = ?`, name)
}

// AgentByID implements hub.Agents. It also finds agents of other portals that were stored by
// KeepElsewhere.
func (d *Agents) AgentByID(ctx context.Context, id string) (hub.Agent, error) {
	return d.agent(ctx, "id "+id, `AND a.id = ?`, id)
}

// AgentsOf implements hub.Lists. It includes the agents of a disabled account, so that they can be
// removed from the index, and leaves out co-owned agents of a disabled owner.
func (d *Agents) AgentsOf(ctx context.Context, ownerID string) ([]hub.Agent, error) {
	var own, shared []agentRow
	err := d.db.List(ctx, &own, `SELECT `+listColumns+`
		FROM agents a JOIN accounts o ON o.id = a.owner_id WHERE a.deleted_at = 0 AND a.owner_id = ? ORDER BY a.name`,
		ownerID)
	if err == nil {
		err = d.db.List(ctx, &shared, listQuery+
			`AND a.id IN (SELECT agent_id FROM agent_owners WHERE account_id = ?) AND a.owner_id <> ? ORDER BY a.name LIMIT ?`, ownerID, ownerID, maxShared)
	}
	if err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Agent, 0, len(own)+len(shared))
	for _, r := range append(own, shared...) {
		a, err := r.agent()
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// namesQuery reads the agents that an account owns or co-owns, by name.
const namesQuery = `SELECT a.id FROM agents a WHERE a.deleted_at = 0 AND a.name > ? AND a.id IN (SELECT id FROM agents WHERE owner_id = ? UNION SELECT agent_id FROM agent_owners WHERE account_id = ?)
	ORDER BY a.name LIMIT ?`

// AgentsAfter implements hub.Lists. It leaves out co-owned agents of a disabled owner.
func (d *Agents) AgentsAfter(ctx context.Context, accountID, after string) (list []hub.Agent, more bool, err error) {
	var ids []string
	if err := d.db.List(ctx, &ids, namesQuery, after, accountID, accountID, hub.MaxAgentsPerOwner+maxShared); err != nil {
		return nil, false, engine.MapError(err)
	}
	size := 0
	for _, id := range ids {
		if size > hub.PageBytes {
			return list, true, nil
		}
		a, err := d.AgentByID(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		list, size = append(list, a), size+a.Size()
	}
	return list, false, nil
}

// versionRow is a version of an agent.
type versionRow struct {
	Version    int    `db:"version"`
	Title      string `db:"title"`
	Kind       string `db:"kind"`
	Visibility string `db:"visibility"`
	Spec       string `db:"spec"`
	Status     string `db:"status"`
	Note       string `db:"note"`
	Author     string `db:"author"`
	CreatedAt  int64  `db:"created_at"`
}

// Size implements engine.Sized.
func (r versionRow) Size() int { return len(r.Spec) + len(r.Note) + len(r.Title) }

// maxVersions bounds the versions that Versions returns.
const maxVersions = 200

// Versions implements hub.Lists. Each result has the agent's content of that version.
func (d *Agents) Versions(ctx context.Context, agentID string, before, limit int) ([]hub.Agent, error) {
	if before <= 0 {
		before = math.MaxInt32
	}
	rows, _, err := engine.ListUpTo[versionRow](ctx, d.db, hub.PageBytes, `SELECT v.version, v.title, v.kind, v.visibility, v.spec, v.status, v.note, COALESCE(o.name, '') AS author, v.created_at
		FROM agent_versions v LEFT JOIN accounts o ON o.id = v.author_id WHERE v.agent_id = ? AND v.version < ? ORDER BY v.version DESC LIMIT ?`, agentID, before, min(limit, maxVersions))
	if err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Agent, len(rows))
	for i, r := range rows {
		a := hub.Agent{ID: agentID, Version: r.Version, Title: r.Title, Kind: hub.Kind(r.Kind),
			Visibility: hub.Visibility(r.Visibility),
			Status:     hub.Status{State: r.Status}, Note: r.Note, Author: r.Author,
			UpdatedAt: clock.FromMilli(r.CreatedAt)}
		var s AgentSpec
		if err := json.Unmarshal([]byte(r.Spec), &s); err != nil {
			return nil, fmt.Errorf("read version %d of agent %s: %w", r.Version, agentID, err)
		}
		s.fillAgent(&a)
		out[i] = a
	}
	return out, nil
}

// Package hub is the directory of agents: registration, versions, ownership, visibility, liveness,
// search, and the rights of actors on an agent. It declares the ports it needs (Store, Index, Probes,
// Sealer …) and knows nothing of SQL, HTTP, or the protocols of agents.
package hub

import (
	"agentsite/internal/agentkind"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind is the way an agent is reached or run: a2a, mcp, openai, link, prompt, builtin or peer.
type Kind = agentkind.Kind

// The kinds of package agentkind, repeated for callers of this package.
const (
	Builtin = agentkind.Builtin
	A2A     = agentkind.A2A
	MCP     = agentkind.MCP
	OpenAI  = agentkind.OpenAI
	Prompt  = agentkind.Prompt
	Link    = agentkind.Link
	Wasm    = agentkind.Wasm
)

// Visibility selects the actors that may see an agent.
type Visibility string

// Public agents are found in searches and usable by all actors; unlisted ones are usable by all actors,
// but not found; private ones are visible to their owners and the operator, and usable by their owners only.
const (
	Public   Visibility = "public"
	Unlisted Visibility = "unlisted"
	Private  Visibility = "private"
)

// Skill is one ability of an agent, as on an A2A agent card.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
}

// Live is the liveness of an agent: the result of its last real exchange.
type Live string

// The states of Live; Unknown until the first exchange.
const (
	Alive         Live = "alive"
	NeedsAuth     Live = "needs_auth"
	WrongProtocol Live = "wrong_protocol"
	Unreachable   Live = "unreachable"
	Unknown       Live = "unknown"
)

// Liveness is the result of the last exchange with an agent. Reason is a sentence that pages show to people.
type Liveness struct {
	State     Live
	CheckedAt time.Time
	Latency   time.Duration
	Reason    string
}

// Agent is a registered agent in one version, usually the latest.
type Agent struct {
	ID     string // for agents of another portal: its network id, but see PortalID
	Name   string // unique within its portal
	Portal string // host of the agent's portal; empty for this portal
	// For agents of other portals only: Also are the hosts of further portals that list the same agent, which is
	// possible if the agent has a key of its own. Record is the hash of the signed record. Verified is true if the
	// domain of the agent's portal was seen to serve the key that signed the record.
	Also     []string
	Record   string
	Verified bool
	// PortalID and NetworkID are the network ids of the agent's portal and of the agent. They are set
	// only by Callable for agents of other portals; ID is then the id of the local row.
	PortalID, NetworkID string
	Title               string
	Description         string
	Kind                Kind
	Endpoint            string
	Skills              []Skill
	Visibility          Visibility
	OwnerID             string // account id; empty for built-in agents
	OwnerName           string
	// CoOwnerIDs are the ids of further accounts that may change the agent.
	CoOwnerIDs []string
	Version    int // counts from 1
	// Config holds the settings of the kind as JSON (A2AConfig, MCPConfig …), without secrets.
	Config json.RawMessage
	// HasSecret is true if the store holds a sealed credential for the agent.
	HasSecret bool
	// InputModes and OutputModes are media types; empty means text/plain.
	InputModes  []string
	OutputModes []string
	// Languages are BCP 47 tags, in lower case, of the languages that the agent supports; empty if the
	// owner named none.
	Languages []string
	// Icon is the hash of a picture stored with Pictures.Put; empty for none.
	Icon string
	// Publisher is the domain that the owner publishes the agent under; empty for none. The owner has
	// proved control of the domain.
	Publisher string
	// Limits restrict callers, call rates and call sizes.
	Limits Limits
	// EmbedOrigins are the other sites that may embed a chat with the agent; empty for none.
	EmbedOrigins []string
	// Proof is the state of the proof that the lister controls the agent's address.
	Proof    Proof
	Status   Status
	Liveness Liveness
	// Note describes the change that led to this version, written by its author.
	Note      string
	Author    string // author of this version; only set in lists of versions
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Status is the state of the agent as set by the owner or operator.
type Status struct {
	State   string // draft, active, deprecated, withdrawn
	Message string
	// Held is true if the operator withdrew the agent: its owner cannot change the status until the
	// operator releases it.
	Held bool
}

// The values of Status.State. A draft is visible to its owners only; a deprecated agent still works and
// names its replacement; a withdrawn one takes no work.
const (
	StatusDraft = "draft"
	Active      = "active"
	Deprecated  = "deprecated"
	Withdrawn   = "withdrawn"
)

// Limits are limits that an owner sets for callers of an agent. The zero value adds none to those of the
// portal. Owners themselves are not limited.
type Limits struct {
	// Callers is "" (every actor that may see the agent), "accounts" (actors with an account) or
	// "listed" (the accounts in Listed).
	Callers string   `json:"callers,omitempty"`
	Listed  []string `json:"listed,omitempty"` // account names or handles (name@host, @host), at most 50
	// PerMinute limits the calls of one caller, PerDay those of all callers together; 0 is no limit.
	PerMinute int `json:"per_minute,omitempty"`
	PerDay    int `json:"per_day,omitempty"`
	// MaxBytes limits one message to the agent, in bytes; 0 leaves only the portal's limit.
	MaxBytes int `json:"max_bytes,omitempty"`
}

// Proof is the state of the proof that the lister of an agent controls its address.
type Proof struct {
	// State is "hosted" (the portal runs the agent or holds its connection), "proved" or "unproven"; for
	// an agent of another portal "claimed" or "unproven".
	State string
	// Method is "token" (a well-known file) or "card" (a signed agent card) if State is proved. If State
	// is claimed, it is the claim of the agent's portal: these values or "hosted".
	Method string
	Origin string // scheme, host and port for which the proof holds
	// At is the time at which the proof was last verified.
	At time.Time
	// Publisher is the publishing domain that the agent's portal reports; empty for agents of this
	// portal, which have Agent.Publisher.
	Publisher string
}

// The values of Proof.State for agents of this portal.
const (
	Hosted   = "hosted"
	Proved   = "proved"
	Unproven = "unproven"
	// Claimed is the state of a proof that another portal reports and that this portal has not verified.
	Claimed = "claimed"
)

// Signed reports whether the agent is listed here, or its record is signed by a key that its portal's
// domain serves. All records of other portals are signed; without the second condition the key may
// belong to a portal that only claims that host.
func (a Agent) Signed() bool { return a.Portal == "" || a.Verified }

// Listable reports whether searches may find the agent: it is public and neither a draft nor withdrawn.
func (a Agent) Listable() bool {
	return a.Visibility == Public && a.Status.State != StatusDraft && a.Status.State != Withdrawn
}

// Modalities lists the kinds of content that the agent takes or returns, derived from its media types,
// in this order: text, image, audio, video, data, file.
func (a Agent) Modalities() []string {
	in := append(slices.Clone(a.InputModes), a.OutputModes...)
	if len(in) == 0 {
		return []string{"text"}
	}
	have := make(map[string]bool)
	for _, m := range in {
		m, _, _ = strings.Cut(strings.ToLower(m), ";")
		kind, sub, _ := strings.Cut(strings.TrimSpace(m), "/")
		switch {
		case kind == "text":
			have["text"] = true
		case kind == "image", kind == "audio", kind == "video":
			have[kind] = true
		case sub == "json" || strings.HasSuffix(sub, "+json"):
			have["data"] = true
		default:
			have["file"] = true
		}
	}
	var out []string
	for _, m := range []string{"text", "image", "audio", "video", "data", "file"} {
		if have[m] {
			out = append(out, m)
		}
	}
	return out
}

// Handle returns name for an agent of this portal, name@host for one of another portal.
func (a Agent) Handle() string {
	if a.Portal == "" {
		return a.Name
	}
	return a.Name + "@" + a.Portal
}

// Host returns the host of the agent's address, empty if it has none.
func (a Agent) Host() string {
	u, err := url.Parse(a.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// Tags returns the distinct tags of all skills, in order of appearance.
func (a Agent) Tags() []string {
	var tags []string
	seen := make(map[string]bool)
	for _, s := range a.Skills {
		for _, t := range s.Tags {
			if !seen[t] {
				seen[t] = true
				tags = append(tags, t)
			}
		}
	}
	return tags
}

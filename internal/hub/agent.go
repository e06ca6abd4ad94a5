// Package hub is the directory of agents: registration, versions, ownership, visibility, liveness
// and search, and the rights of actors on an agent. It declares the ports it needs (Store, Index,
// Prober, Sealer) and knows nothing of SQL, HTTP, or the protocols of agents.
package hub

import (
	"agentsite/internal/agentkind"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind says how an agent is reached or run.
type Kind = agentkind.Kind

// The kinds of package agentkind.
const (
	Builtin = agentkind.Builtin
	A2A     = agentkind.A2A
	MCP     = agentkind.MCP
	OpenAI  = agentkind.OpenAI
	Prompt  = agentkind.Prompt
	Link    = agentkind.Link
)

// Visibility is the audience of an agent.
type Visibility string

// Public agents are found and used by all actors, unlisted ones by actors that know the handle,
// private ones by their owner only.
const (
	Public   Visibility = "public"
	Unlisted Visibility = "unlisted"
	Private  Visibility = "private"
)

// Skill is one thing an agent can do, as on an A2A agent card.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
}

// Live is the result of a real exchange with an agent.
type Live string

// The states of liveness.
const (
	Alive         Live = "alive"
	NeedsAuth     Live = "needs_auth"
	WrongProtocol Live = "wrong_protocol"
	Unreachable   Live = "unreachable"
	Unknown       Live = "unknown"
)

// Liveness is the result of the last exchange with an agent. Reason is a plain sentence for
// people.
type Liveness struct {
	State     Live
	CheckedAt time.Time
	Latency   time.Duration
	Reason    string
}

// Agent is a registered agent in its latest version.
type Agent struct {
	ID     string // of an agent of another portal its id in the network
	Name   string // unique on its portal
	Portal string // host of its portal; empty: this one
	// Also are hosts of other portals that list the same agent, which has a
	// key of its own. Record is the hash of the signed record that it was read
	// from, and Verified is true when its portal's domain was seen to serve the
	// key that signed it. They are set of agents of other portals only.
	Also     []string
	Record   string
	Verified bool
	// PortalID is its portal's id in the network, NetworkID its own there. They
	// are set where an agent of another portal is called: ID is of its row here
	// then, see Callable.
	PortalID, NetworkID string
	Title               string
	Description         string
	Kind                Kind
	Endpoint            string
	Skills              []Skill
	Visibility          Visibility
	OwnerID             string // account; empty for built-in agents
	OwnerName           string
	// CoOwnerIDs are the accounts that may change it too.
	CoOwnerIDs []string
	Version    int // 1, 2, …
	// Config is the kind's own settings, without secrets.
	Config json.RawMessage
	// HasSecret is true when a sealed credential is stored.
	HasSecret bool
	// InputModes and OutputModes are media types; empty means text/plain.
	InputModes  []string
	OutputModes []string
	// Languages are BCP 47 tags of the languages it is made for, lower case; empty when the owner
	// named none.
	Languages []string
	// Icon is the hash of a picture of the agent, see Icons; empty for none.
	Icon string
	// Publisher is the domain the owner publishes it under; empty, or one that
	// the owner was shown to control.
	Publisher string
	// Limits bound its callers, their rates and the sizes of their calls.
	Limits Limits
	// EmbedOrigins are the other sites that may show the chat with it; none
	// may when it is empty.
	EmbedOrigins []string
	// Proof is whether its owner was shown to be entitled to list it.
	Proof    Proof
	Status   Status
	Liveness Liveness
	// Note describes the change of this version, in its author's text.
	Note      string
	Author    string // author of this version; only set in lists of versions
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Status is the state of the agent as set by the owner or operator.
type Status struct {
	State   string // draft, active, deprecated, withdrawn
	Message string
	// Held is true when the operator withdrew it: the owner cannot undo that.
	Held bool
}

// The states of Status. A draft is visible to its owners only; a deprecated agent works and names
// its replacement; a withdrawn one takes no work.
const (
	StatusDraft = "draft"
	Active      = "active"
	Deprecated  = "deprecated"
	Withdrawn   = "withdrawn"
)

// Limits are an owner's limits for callers. The zero value has only the limits of the portal.
// Owners are not bound by their own limits.
type Limits struct {
	// Callers is "" (all actors that the visibility admits), "accounts" (only actors with an
	// account) or "listed" (the accounts in Listed).
	Callers string   `json:"callers,omitempty"`
	Listed  []string `json:"listed,omitempty"` // account names, at most 50
	// PerMinute bounds the calls of one caller, PerDay of all callers
	// together; 0 means no bound of the owner's.
	PerMinute int `json:"per_minute,omitempty"`
	PerDay    int `json:"per_day,omitempty"`
	// MaxBytes bounds one message to the agent; 0 means the portal's bound.
	MaxBytes int `json:"max_bytes,omitempty"`
}

// Proof is the state of the proof that the lister of an agent controls its address.
type Proof struct {
	// State is "hosted" (the portal runs it, or holds its connection),
	// "proved", "unproven", or, of an agent of another portal, "claimed" or
	// "unproven".
	State string
	// Method is "token" (a well-known file) or "card" (a signed agent card) when proved; when
	// claimed, the claim of its portal: the same values or "hosted".
	Method string
	Origin string // scheme, host and port that was proved
	// At is when the proof was last seen to hold.
	At time.Time
	// Publisher is the publishing domain as its portal reports it; empty for agents of this
	// portal, see Agent.Publisher.
	Publisher string
}

// The states of Proof.
const (
	Hosted   = "hosted"
	Proved   = "proved"
	Unproven = "unproven"
	// Claimed is the state of a proof that another portal reports and that was not checked here.
	Claimed = "claimed"
)

// Signed reports whether the record of this agent is signed by a key that is known to be its
// portal's. Portals sign their lists, and unsigned records of other portals are never taken in;
// the open question is whether the key belongs to the host in the handle.
func (a Agent) Signed() bool { return a.Portal == "" || a.Verified }

// Listable reports whether searches may find the agent.
func (a Agent) Listable() bool {
	return a.Visibility == Public && a.Status.State != StatusDraft && a.Status.State != Withdrawn
}

// Modalities lists the inputs and outputs of an agent beyond its media types: text, image, audio,
// video, data, file; in that order.
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

// Handle is name, or name@portal for an agent of another portal.
func (a Agent) Handle() string {
	if a.Portal == "" {
		return a.Name
	}
	return a.Name + "@" + a.Portal
}

// Host is the host of the agent's address, empty when it has none.
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

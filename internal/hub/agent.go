// Package hub is the directory of agents: registration, versions, ownership,
// visibility, liveness and search, and the rules of who may do what with an
// agent. It declares the ports it needs (Store, Index, Prober, Sealer) and
// knows nothing of SQL, HTTP, or how an agent of some kind is reached.
package hub

import (
	"encoding/json"
	"time"
)

// Kind says how an agent is reached or run.
type Kind string

// The kinds this portal can reach or run today.
const (
	Builtin Kind = "builtin"
	A2A     Kind = "a2a"
	OpenAI  Kind = "openai"
)

// Visibility says who finds an agent.
type Visibility string

// Public agents are found and used by everybody, unlisted ones by whoever
// knows the handle, private ones by their owner only.
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

// Liveness is what the last exchange with an agent showed. Reason is a plain
// sentence for people.
type Liveness struct {
	State     Live
	CheckedAt time.Time
	Latency   time.Duration
	Reason    string
}

// Agent is a registered agent in its latest version.
type Agent struct {
	ID          string
	Name        string // unique on its portal
	Portal      string // host of its portal; empty: this one
	Title       string
	Description string
	Kind        Kind
	Endpoint    string
	Skills      []Skill
	Visibility  Visibility
	OwnerID     string // account; empty for built-in agents
	OwnerName   string
	Version     int // 1, 2, …
	// Config is the kind's own settings, without secrets.
	Config json.RawMessage
	// HasSecret is true when a sealed credential is stored.
	HasSecret bool
	// InputModes and OutputModes are media types; empty means text/plain.
	InputModes  []string
	OutputModes []string
	Status      Status
	Liveness    Liveness
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Status is what the owner or operator says of the agent.
type Status struct {
	State   string // active, withdrawn
	Message string
}

// The states of Status.
const (
	Active    = "active"
	Withdrawn = "withdrawn"
)

// Handle is name, or name@portal for an agent of another portal.
func (a Agent) Handle() string {
	if a.Portal == "" {
		return a.Name
	}
	return a.Name + "@" + a.Portal
}

// Local reports whether text sent to the agent stays inside this portal.
func (a Agent) Local() bool { return a.Kind == Builtin && a.Portal == "" }

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

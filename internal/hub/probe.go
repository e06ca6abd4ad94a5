package hub

import (
	"context"
	"encoding/json"
)

// Target is an endpoint to be reached: what the form or the registration
// says, with the secret opened for this one use.
type Target struct {
	Kind     Kind
	Endpoint string
	Config   json.RawMessage
	Secret   string
}

// Prober makes a real protocol exchange with an agent that never makes the
// agent work: GetTask of an unknown id, a list of models. It returns within
// its own deadline and never an error: what went wrong is the liveness.
type Prober interface {
	Probe(ctx context.Context, t Target) Liveness
}

// Reader reads what an address says of itself, for registration by URL.
type Reader interface {
	// Read fetches the agent card at or below the address. It returns an
	// Invalid fault that says what was found instead.
	Read(ctx context.Context, address string) (Described, error)
}

// Described is an agent as its own card describes it, cut to our bounds.
type Described struct {
	Name        string // a proposal that CheckName accepts
	Title       string
	Description string
	Kind        Kind
	Endpoint    string
	Config      json.RawMessage
	Skills      []Skill
	InputModes  []string
	OutputModes []string
}

// OpenAIConfig is Agent.Config of kind openai.
type OpenAIConfig struct {
	Model string `json:"model"`
	// Instructions is an optional system message sent first.
	Instructions string `json:"instructions,omitempty"`
}

// A2AConfig is Agent.Config of kind a2a: how the card said it is spoken to.
type A2AConfig struct {
	// CardURL is where the card was read.
	CardURL string `json:"card_url,omitempty"`
	// Binding is JSONRPC or HTTP+JSON; Version is 1.0 or 0.3.
	Binding string `json:"binding,omitempty"`
	Version string `json:"version,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	// Streaming is true when the card offers it.
	Streaming bool `json:"streaming,omitempty"`
	// AuthHeader names the header the secret goes into; empty means
	// "Authorization: Bearer".
	AuthHeader string `json:"auth_header,omitempty"`
}

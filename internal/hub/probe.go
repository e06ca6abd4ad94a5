package hub

import (
	"context"
	"encoding/json"
)

// Target is an endpoint to be reached: the values of the form or the registration, with the secret
// opened for this one use.
type Target struct {
	Kind     Kind
	Endpoint string
	Config   json.RawMessage
	Secret   string
}

// Reader reads the description at an address, for registration by URL.
type Reader interface {
	// Read fetches the agent card at or below the address. It returns an Invalid fault that
	// describes the unexpected answer.
	Read(ctx context.Context, address string) (Described, error)
	// ReadAs reads an agent of a known kind, with its credential.
	ReadAs(ctx context.Context, t Target) (Described, error)
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
	// Models are the models of a server of kind openai, at most 50.
	Models []string
}

// OpenAIConfig is Agent.Config of kind openai.
type OpenAIConfig struct {
	Model string `json:"model"`
	// Instructions is an optional system message sent first.
	Instructions string `json:"instructions,omitempty"`
}

// A2AConfig is Agent.Config of kind a2a: the protocol bindings of the card.
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

// MCPConfig is Agent.Config of kind mcp: the protocol of the server and its tools, as last read.
type MCPConfig struct {
	// Version is the protocol version that was agreed on, for example
	// 2026-07-28; empty until the server was reached.
	Version string `json:"version,omitempty"`
	// Server is the name and version the server gives itself.
	Server string `json:"server,omitempty"`
	// Instructions is the server's text about its use, cut.
	Instructions string `json:"instructions,omitempty"`
	// Tools are the server's tools; each is also a skill of the agent, with the tool's name as the
	// skill's id.
	Tools []Tool `json:"tools,omitempty"`
	// AuthHeader names the header the secret goes into; empty means
	// "Authorization: Bearer".
	AuthHeader string `json:"auth_header,omitempty"`
}

// Tool is one tool of an MCP server, cut to our bounds.
type Tool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema is the JSON Schema (2020-12) of its arguments, an object.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// ReadOnly is true when the server says that the tool changes nothing.
	ReadOnly bool `json:"read_only,omitempty"`
}

// PromptConfig is Agent.Config of kind prompt. The model is the portal's own
// where Agent.Endpoint is empty, else the one behind that address (an
// OpenAI-compatible base), with the agent's secret as its key.
type PromptConfig struct {
	Instructions string `json:"instructions"`
	// Model is the model's name; empty means the portal's default, and is
	// allowed only on the portal's own model.
	Model string `json:"model,omitempty"`
	// Examples are exchanges shown to the model before every conversation.
	Examples []Exchange `json:"examples,omitempty"`
	// Tools are the names of mcp agents of this portal with tools it may use, at most 8.
	Tools []string `json:"tools,omitempty"`
	// Unasked lets it use tools that may change something without asking the
	// person first.
	Unasked bool `json:"unasked,omitempty"`
	// Temperature is 0 to 2; nil leaves it to the model.
	Temperature *float64 `json:"temperature,omitempty"`
	// MaxTokens bounds one answer; 0 means the portal's bound.
	MaxTokens int `json:"max_tokens,omitempty"`
}

// Exchange is one question with its answer.
type Exchange struct {
	User  string `json:"user"`
	Agent string `json:"agent"`
}

// LinkConfig is Agent.Config of kind link: the description that the program sent when it last
// connected.
type LinkConfig struct {
	// Client is the name and version of the program that dials, cut.
	Client string `json:"client,omitempty"`
}

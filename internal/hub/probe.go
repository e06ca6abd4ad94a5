package hub

import (
	"context"
	"encoding/json"
)

// Target is an endpoint to contact: values of a form or a registration, with the decrypted secret for this one use.
type Target struct {
	Kind     Kind
	OwnerID  string // "" if unknown, or for a built-in agent
	Endpoint string
	Config   json.RawMessage
	Secret   string
}

// Reader reads the description that an agent serves at its address.
type Reader interface {
	// Read fetches the agent card at or below the address. An Invalid fault describes an unexpected answer.
	Read(ctx context.Context, address string) (Described, error)
	// ReadAs reads the description of an agent of a known kind, with its credential.
	ReadAs(ctx context.Context, t Target) (Described, error)
}

// Described is the description that an agent serves, cut to the limits of a registration.
type Described struct {
	Name        string // proposed name, valid for CheckName
	Title       string
	Description string
	Kind        Kind
	Endpoint    string
	Config      json.RawMessage
	Skills      []Skill
	InputModes  []string
	OutputModes []string
	// Models are the models that a server of kind openai offers, at most 50.
	Models []string
}

// OpenAIConfig is Agent.Config of kind openai: an OpenAI-compatible API at Agent.Endpoint.
type OpenAIConfig struct {
	Model string `json:"model"`
	// Instructions is an optional system message that precedes every conversation.
	Instructions string `json:"instructions,omitempty"`
}

// A2AConfig is Agent.Config of kind a2a: the protocol bindings of the card.
type A2AConfig struct {
	// CardURL is the address that the card was read from.
	CardURL string `json:"card_url,omitempty"`
	// Binding is JSONRPC or HTTP+JSON; Version is 1.0 or 0.3.
	Binding string `json:"binding,omitempty"`
	Version string `json:"version,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	// Streaming is true if the card declares streaming.
	Streaming bool `json:"streaming,omitempty"`
	// AuthHeader is the request header for the secret; empty means "Authorization: Bearer".
	AuthHeader string `json:"auth_header,omitempty"`
	// TakesTools is true if the card declares the extension for tools. Tools are of grant.CheckTools.
	TakesTools bool     `json:"takes_tools,omitempty"`
	Tools      []string `json:"tools,omitempty"`
}

// MCPConfig is Agent.Config of kind mcp: the protocol of the server and its tools, as last read.
type MCPConfig struct {
	// Version is the negotiated protocol version, for example 2026-07-28; empty until the server was reached.
	Version string `json:"version,omitempty"`
	// Server is the server's name and version as it reports them.
	Server string `json:"server,omitempty"`
	// Instructions is the server's own text about its use, cut to the limit.
	Instructions string `json:"instructions,omitempty"`
	// Tools are the server's tools; each is also a skill of the agent, with the tool's name as the skill's id.
	Tools []Tool `json:"tools,omitempty"`
	// AuthHeader is the request header for the secret; empty means "Authorization: Bearer".
	AuthHeader string `json:"auth_header,omitempty"`
}

// Tool is one tool of an MCP server, cut to the limits of a registration.
type Tool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema is the JSON Schema (2020-12) of the arguments, an object.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// ReadOnly is true if the server declares that the tool changes nothing. The claim is not verified.
	ReadOnly bool `json:"read_only,omitempty"`
}

// PromptConfig is Agent.Config of kind prompt. If Agent.Endpoint is empty, the portal's own model is
// used; otherwise the OpenAI-compatible API at that base URL, with the agent's secret as key.
type PromptConfig struct {
	Instructions string `json:"instructions"`
	// Model is the name of the model; empty selects the portal's default and is allowed only for the
	// portal's own model.
	Model string `json:"model,omitempty"`
	// Examples are exchanges that precede every conversation in the prompt.
	Examples []Exchange `json:"examples,omitempty"`
	// Tools are at most 8: grant.PortalTools, and agents by name or handle. Of an MCP agent the tools
	// are used, another agent is asked.
	Tools []string `json:"tools,omitempty"`
	// Unasked allows calls of the tools of MCP agents, which have the owner's rights, without asking the person.
	Unasked bool `json:"unasked,omitempty"`
	// Temperature is 0 to 2; nil selects the model's default.
	Temperature *float64 `json:"temperature,omitempty"`
	// MaxTokens limits one answer; 0 selects the portal's limit.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Output is the JSON Schema of the answers, nil for text.
	Output *json.RawMessage `json:"output,omitempty"`
}

// Exchange is one example question with its answer, at most 4000 characters each.
type Exchange struct {
	User  string `json:"user"`
	Agent string `json:"agent"`
}

// WasmConfig is Agent.Config of kind wasm: the program, and its owner's grants to it.
type WasmConfig struct {
	Module string `json:"module"` // SHA-256 of the module in lower-case hexadecimal
	// Tools are of grant.CheckTools. The person behind a task is asked besides, see package acting.
	Tools []string `json:"tools,omitempty"`
	// Model is the named model that the program may ask; empty grants none.
	Model string `json:"model,omitempty"`
	// Hosts are those that the program may call by https.
	Hosts []string `json:"hosts,omitempty"`
	// Settings are for the program to read. They are no secrets.
	Settings map[string]string `json:"settings,omitempty"`
}

// LinkConfig is Agent.Config of kind link: the description that the program sent when it last connected.
type LinkConfig struct {
	// Client is the name and version of the connected program, cut to the limit. Tools are of grant.CheckTools.
	Client string   `json:"client,omitempty"`
	Tools  []string `json:"tools,omitempty"`
}

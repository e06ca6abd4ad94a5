package endpoint

import (
	"context"
	"encoding/json"
	"time"
)

// Offer is the content of one server: tools, resources, prompts and the functions that run them. A
// nil or empty part is not served, and its capability is not declared. The functions are called by
// many goroutines at once; their errors are Problems or faults.
type Offer struct {
	// Name, Title, Version and Website identify the server.
	Name, Title, Version, Website string
	// Instructions describe the purpose of the server to a model.
	Instructions string
	// Private is true if lists differ between callers. TTL is how long a client may cache them, 0 for not
	// at all.
	Private bool
	TTL     time.Duration

	Tools   []Tool
	Prompts []Prompt
	// Resources lists and reads resources; nil for none.
	Resources Resources
	// Completer proposes values for arguments; nil for none.
	Completer Completer
	// Tasks gives access to the tasks with which tools answer; nil if no tool does.
	Tasks Tasks
	// Feeds opens feeds of changes, nil for none; Changes are the kinds of changes that are declared.
	Feeds   Feeds
	Changes Changes
	// Handshake holds further methods of the versions before 2026-07-28, and HandshakeCapabilities the
	// capabilities that declare them, for example logging.
	Handshake             map[string]func(ctx context.Context, c *Call) (any, error)
	HandshakeCapabilities map[string]any
}

// Changes are the kinds of changes that a server notifies clients of.
type Changes struct {
	Tools, Prompts, Resources bool
	// Subscribe is true if clients can subscribe to changes of single resources.
	Subscribe bool
}

// Tool is a function that a client or its model can call.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Icons       []Icon          `json:"icons,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Hints       *Hints          `json:"annotations,omitempty"`
	// TaskOnly is true for a tool that always answers with a task, so clients without the extension get
	// an error.
	TaskOnly bool     `json:"-"`
	Run      ToolFunc `json:"-"`
}

// ToolFunc runs a tool. An error that the model should see is a Result with Failed; a Go error becomes a
// protocol error for the client's program.
type ToolFunc func(ctx context.Context, c *Call) (Result, error)

// Hints describe the effects of a tool, so that clients can decide whether to ask their user. Nil means
// unknown.
type Hints struct {
	ReadOnly    bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// Icon is the address of a picture of the server.
type Icon struct {
	Src      string   `json:"src"`
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"`
}

// Prompt is a template of messages that a user can insert by its name.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Get         PromptFunc       `json:"-"`
}

// PromptFunc returns a prompt with the call's arguments filled in. It may request input in the same way
// as a tool.
type PromptFunc func(ctx context.Context, c *Call) (PromptResult, error)

// PromptArgument describes an argument of a prompt; all arguments are strings.
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// PromptResult holds the messages of a prompt, or the input that is needed first.
type PromptResult struct {
	Description string          `json:"description,omitempty"`
	Messages    []PromptMessage `json:"messages"`
	Wants       *Wants          `json:"-"`
}

// PromptMessage is one message of a prompt. Role is user or assistant.
type PromptMessage struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// Completer proposes values for arguments of prompts and of resource templates while a user types.
type Completer interface {
	Complete(ctx context.Context, c *Call, a Argument) (Completion, error)
}

// Resources lists and reads the resources of a server. Its methods see only what the call's actor may
// see.
type Resources interface {
	// List returns a page and the cursor of the next one, "" for none.
	List(ctx context.Context, c *Call, cursor string) (list []Resource, next string, err error)
	Templates(ctx context.Context, c *Call) ([]Template, error)
	// Read returns the content of a URI. NoResource is the error for an unknown one.
	Read(ctx context.Context, c *Call, uri string) (ReadResult, error)
}

// Resource describes a document that clients can read by its URI.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Template describes resources by a URI template (RFC 6570).
type Template struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// ReadResult is the content of a URI, or the input that is needed first. TTL is how long a client may
// cache the content, 0 for not at all.
type ReadResult struct {
	Contents []ResourceContents
	TTL      time.Duration
	Private  bool
	Wants    *Wants
}

// ResourceContents is the content of one document: Text, or Blob for bytes.
type ResourceContents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     []byte `json:"blob,omitempty"`
}

// MarshalJSON implements json.Marshaler. It writes the text even if it is empty, because clients require
// one of text and blob.
func (c ResourceContents) MarshalJSON() ([]byte, error) {
	type text struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType,omitempty"`
		Text     string `json:"text"`
	}
	if c.Blob == nil {
		return json.Marshal(text{c.URI, c.MIMEType, c.Text})
	}
	type blob struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType,omitempty"`
		Blob     []byte `json:"blob"`
	}
	return json.Marshal(blob{c.URI, c.MIMEType, c.Blob})
}

// NoResource returns the problem for an unknown URI, with the code of the call's version.
func NoResource(c *Call, uri string) *Problem {
	p := &Problem{Code: CodeInvalidParams, Message: "There is no such resource, or it is not yours to read.",
		Data: map[string]any{"uri": uri}}
	if !c.Modern() {
		p.Code = CodeNoResource
	}
	return p
}

// Argument is the argument that a client wants proposals for, of the prompt Prompt or of the resource
// template URI.
type Argument struct {
	Prompt, URI string
	Name, Value string
	// Context holds the values of other arguments that are known already.
	Context map[string]string
}

// Completion holds proposed values, the best first: at most 100 out of Total.
type Completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total,omitempty"`
	HasMore bool     `json:"hasMore,omitempty"`
}

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
	// Instructions explain the purpose of the server to a model.
	Instructions string
	// Private is set if lists differ between callers; TTL is the time for which a client may cache
	// them.
	Private bool
	TTL     time.Duration

	Tools   []Tool
	Prompts []Prompt
	// Resources lists and reads the resources.
	Resources Resources
	// Completer proposes values for an argument.
	Completer Completer
	// Tasks are the tasks with which tools answer; nil if none does.
	Tasks Tasks
	// Feeds opens feeds of changes. Changes are the declared kinds of changes.
	Feeds   Feeds
	Changes Changes
	// Handshake are more methods of the versions before 2026-07-28, and HandshakeCapabilities their
	// declaration, for example logging.
	Handshake             map[string]func(ctx context.Context, c *Call) (any, error)
	HandshakeCapabilities map[string]any
}

// Changes are the kinds of changes that a server reports.
type Changes struct {
	Tools, Prompts, Resources bool
	// Subscribe is set if the server reports changes of single resources.
	Subscribe bool
}

// Tool is a function that a client can call.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Icons       []Icon          `json:"icons,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Hints       *Hints          `json:"annotations,omitempty"`
	// TaskOnly is set for a tool that answers only with a task.
	TaskOnly bool     `json:"-"`
	Run      ToolFunc `json:"-"`
}

// ToolFunc runs a tool. An error for the model is a Result with Failed; a Go error is for the
// client's program.
type ToolFunc func(ctx context.Context, c *Call) (Result, error)

// Hints describe the effects of a tool.
type Hints struct {
	ReadOnly    bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// Icon is a picture.
type Icon struct {
	Src      string   `json:"src"`
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"`
}

// Prompt is a text that a user can insert by name.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Get         PromptFunc       `json:"-"`
}

// PromptFunc returns a prompt with its values. It may ask for input in the same way as a tool.
type PromptFunc func(ctx context.Context, c *Call) (PromptResult, error)

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// PromptResult is a prompt with its values, or the input that is needed first.
type PromptResult struct {
	Description string          `json:"description,omitempty"`
	Messages    []PromptMessage `json:"messages"`
	Wants       *Wants          `json:"-"`
}

// PromptMessage is one message of a prompt; Role is user or assistant.
type PromptMessage struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// Completer proposes values for the arguments of prompts and of templates of resources.
type Completer interface {
	Complete(ctx context.Context, c *Call, a Argument) (Completion, error)
}

// Resources lists and reads the resources of a server.
type Resources interface {
	// List returns a page and the cursor of the next one, "" for none.
	List(ctx context.Context, c *Call, cursor string) (list []Resource, next string, err error)
	Templates(ctx context.Context, c *Call) ([]Template, error)
	// Read returns the content of a URI. NoResource is the error for an unknown one.
	Read(ctx context.Context, c *Call, uri string) (ReadResult, error)
}

// Resource is a readable document.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Template is a pattern of URIs (RFC 6570).
type Template struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// ReadResult is the content of a URI, or the input that is needed first. TTL is the time for which
// a client may cache it.
type ReadResult struct {
	Contents []ResourceContents
	TTL      time.Duration
	Private  bool
	Wants    *Wants
}

// ResourceContents is text or, with Blob, bytes.
type ResourceContents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     []byte `json:"blob,omitempty"`
}

// MarshalJSON implements json.Marshaler: it writes a text even if it is empty.
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

// NoResource returns the problem for an unknown URI.
func NoResource(c *Call, uri string) *Problem {
	p := &Problem{Code: CodeInvalidParams, Message: "There is no such resource, or it is not yours to read.",
		Data: map[string]any{"uri": uri}}
	if !c.Modern() {
		p.Code = CodeNoResource
	}
	return p
}

// Argument is an argument for which a client wants proposals: of the prompt Prompt, or of the
// template URI.
type Argument struct {
	Prompt, URI string
	Name, Value string
	// Context are the values of other arguments.
	Context map[string]string
}

// Completion holds proposals, best first, at most 100 of Total.
type Completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total,omitempty"`
	HasMore bool     `json:"hasMore,omitempty"`
}

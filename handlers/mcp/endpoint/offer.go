package endpoint

import (
	"context"
	"encoding/json"
	"time"
)

// Offer is what one server has: tools, resources, prompts and what answers
// for them. Whatever is nil or empty is not served, and its capability is not
// declared. The functions are called by many goroutines at once; their errors
// are Problems or faults.
type Offer struct {
	// Name, Title, Version and Website are who the server says it is.
	Name, Title, Version, Website string
	// Instructions tell a model what the server is for.
	Instructions string
	// Private is set when lists differ from caller to caller; TTL is how long
	// a client may keep them.
	Private bool
	TTL     time.Duration

	Tools   []Tool
	Prompts []Prompt
	// Resources are listed and read through it.
	Resources Resources
	// Complete proposes values for an argument.
	Complete func(ctx context.Context, c *Call, a Argument) (Completion, error)
	// Tasks are the tasks that tools answer with; nil where none does.
	Tasks Tasks
	// Listen opens a feed of changes. Changes says which of them are declared.
	Listen  func(ctx context.Context, c *Call, w Watch) (Feed, error)
	Changes Changes
	// Handshake are further methods of the versions before 2026-07-28 and
	// HandshakeCapabilities what they are declared as, for example logging.
	Handshake             map[string]func(ctx context.Context, c *Call) (any, error)
	HandshakeCapabilities map[string]any
}

// Changes are the changes a server tells of.
type Changes struct {
	Tools, Prompts, Resources bool
	// Subscribe is whether it tells of single resources.
	Subscribe bool
}

// Tool is something a client can call.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Icons       []Icon          `json:"icons,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Hints       *Hints          `json:"annotations,omitempty"`
	// TaskOnly is set for a tool that answers with a task only.
	TaskOnly bool `json:"-"`
	// Run calls it. What a model shall read of an error is a Result with
	// Failed; an error is for the client's program.
	Run func(ctx context.Context, c *Call) (Result, error) `json:"-"`
}

// Hints say what a tool may do.
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

// Prompt is a text that a person can ask for by name.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	// Get returns it. It may ask for input as a tool may.
	Get func(ctx context.Context, c *Call) (PromptResult, error) `json:"-"`
}

// PromptArgument is a value a prompt is made with.
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// PromptResult is a prompt with its values, or what is wanted first.
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

// Resources are what a server lets clients read.
type Resources interface {
	// List returns a page and the cursor of the next one, "" for none.
	List(ctx context.Context, c *Call, cursor string) (list []Resource, next string, err error)
	Templates(ctx context.Context, c *Call) ([]Template, error)
	// Read returns what is at a URI. NoResource is the error of one that is
	// not there.
	Read(ctx context.Context, c *Call, uri string) (ReadResult, error)
}

// Resource is something that can be read.
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

// ReadResult is what is at a URI, or what is wanted first. TTL is how long a
// client may keep it.
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

// MarshalJSON implements json.Marshaler: a text is there even when empty.
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

// NoResource is the problem of a URI where nothing is.
func NoResource(c *Call, uri string) *Problem {
	p := &Problem{Code: CodeInvalidParams, Message: "There is no such resource, or it is not yours to read.", Data: map[string]any{"uri": uri}}
	if !c.Modern() {
		p.Code = CodeNoResource
	}
	return p
}

// Argument is what a client wants values for: of the prompt Prompt, or of the
// template URI.
type Argument struct {
	Prompt, URI string
	Name, Value string
	// Context are the values of other arguments.
	Context map[string]string
}

// Completion are values, best first, at most 100 of Total.
type Completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total,omitempty"`
	HasMore bool     `json:"hasMore,omitempty"`
}

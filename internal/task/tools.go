package task

import (
	"context"
	"encoding/json"
)

// ToolServer gives agents that run elsewhere the portal's tools, for one task at a time.
type ToolServer interface {
	// OpenTools opens the tools for one run of a call, until ctx ends or Close. state is the last state that the
	// earlier runs of the task saved, nil for none. ok is false if the agent gets no tools.
	OpenTools(ctx context.Context, call Call, out ToolSink, state json.RawMessage) (s ToolSession, ok bool, err error)
}

// ToolSink takes what a ToolSession needs of its run. It is safe for concurrent use.
type ToolSink interface {
	Pauser
	// Status is that of Sink.
	Status(text string)
	// SaveTools stores the state of the tools with the checkpoint of the task, durably before it returns.
	SaveTools(ctx context.Context, state json.RawMessage) error
}

// ToolSession is the access of one agent to the portal's tools during one run of a task.
type ToolSession interface {
	// Access returns the address of the MCP server and the token for it. The token must get to the agent only, and
	// neither into texts nor into logs.
	Access() (url, token string)
	// Reply returns the text that the agent gets in place of the message of the call, because that message answers
	// a question of the portal; "" if no question waited.
	Reply() string
	// Question returns the question to the person about a call that needs a permission, and its short form; "" if there
	// is none. The next message answers it only after this, so the caller shows it to the person.
	Question() (text, short string)
	// Close ends the access and the calls that are under way.
	Close()
}

// ToolCalls are the tools of a running task, as its agent calls them.
type ToolCalls interface {
	// TaskID returns the id of the task.
	TaskID() string
	// List returns the tools.
	List() []ToolSpec
	// Call calls a tool and returns its answer, or with failed the reason why there is none, for the agent. The call
	// ends with ctx and with the run of the task.
	Call(ctx context.Context, name string, args json.RawMessage) (text string, failed bool)
}

// ToolSpec describes a tool. Schema is the JSON Schema of its arguments, an object.
type ToolSpec struct {
	Name, Description string
	Schema            json.RawMessage
	ReadOnly          bool
}

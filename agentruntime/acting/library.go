package acting

import (
	"context"
	"encoding/json"
	"strings"

	"agentsite/agentruntime/prompt"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/internal/task"
)

// Library is the library of the person behind a call. The sentence of a *fault.Error is for the agent.
type Library interface {
	// ListFiles returns the files below a prefix as a text, without those that are denied.
	ListFiles(ctx context.Context, call task.Call, prefix string, denied func(path string) bool) (string, error)
	// ReadFile returns a part of a text file, from a byte on.
	ReadFile(ctx context.Context, call task.Call, path string, offset int) (string, error)
	// WriteFile writes a text as a new version, and returns a sentence about it.
	WriteFile(ctx context.Context, call task.Call, path, text string) (string, error)
}

// The functions by which agents use a library.
const (
	listTitle  = "library_list"
	readTitle  = "library_read"
	writeTitle = "library_write"
)

// filing is a function of the library.
type filing struct {
	tools *Tools
	call  task.Call
	title string
}

// filingArgs are the arguments of all functions of the library.
type filingArgs struct {
	Prefix string `json:"prefix"`
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// libraryTools returns the functions of the library. All need the person's permission for the path.
func (t *Tools) libraryTools(call task.Call) []prompt.Tool {
	if t.library == nil {
		return nil
	}
	tool := func(title, name, about, properties, required string) prompt.Tool {
		return prompt.Tool{Agent: "portal", Name: name, Title: title, Description: about,
			Schema: json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `]}`),
			Caller: filing{t, call, title}}
	}
	const path = `"path":{"type":"string","maxLength":500}`
	return []prompt.Tool{
		tool(listTitle, grant.LibraryRead, "Lists the person's files below a folder, such as notes/; all without one.",
			`"prefix":{"type":"string","maxLength":500}`, ""),
		tool(readTitle, grant.LibraryRead, "Reads a text or PDF file of the person, from a byte on if offset is given.",
			path+`,"offset":{"type":"integer","minimum":0}`, `"path"`),
		tool(writeTitle, grant.LibraryWrite, "Writes a text file for the person as a new version. The person can undo it.",
			path+`,"text":{"type":"string","maxLength":262144}`, `"path","text"`),
	}
}

// target returns the path that a call is about; one that ends with a slash is a folder, and "/" the whole library.
func (f filing) target(c prompt.Invocation) string {
	var args filingArgs
	_ = json.Unmarshal(c.Args, &args) // it fits the schema
	if f.title != listTitle {
		if p, err := library.CheckPath(args.Path); err == nil {
			return p
		}
		return args.Path
	}
	return strings.TrimRight(args.Prefix, "/") + "/"
}

// checkCaller returns a Forbidden fault unless the person asked this agent directly. Otherwise an agent could read by
// the permission of another one.
func (f filing) checkCaller() error {
	switch {
	case f.call.ThroughAgents():
		return fault.New(fault.Forbidden, "Only the person can have you use the library, not another agent.")
	case personOf(f.call).Kind != string(ident.Person):
		return fault.New(fault.Forbidden, "The caller has no library on this portal.")
	}
	return nil
}

// CallTool implements prompt.ToolCaller.
func (f filing) CallTool(ctx context.Context, c prompt.Invocation) (text string, isError bool, err error) {
	if err := f.checkCaller(); err != nil {
		return "", false, err
	}
	var args filingArgs
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return "", false, fault.New(fault.Invalid, "The arguments do not fit the tool.")
	}
	switch f.title {
	case listTitle:
		prefix := strings.TrimRight(args.Prefix, "/")
		if prefix != "" {
			prefix += "/"
		}
		text, err = f.list(ctx, c, prefix)
	case readTitle:
		text, err = f.tools.library.ReadFile(ctx, f.call, args.Path, args.Offset)
	default:
		text, err = f.tools.library.WriteFile(ctx, f.call, args.Path, args.Text)
	}
	return text, false, err
}

// list lists the files that the person does not deny the agent to read.
func (f filing) list(ctx context.Context, c prompt.Invocation, prefix string) (string, error) {
	u, err := f.tools.use(ctx, f.call, prompt.Tool{Name: grant.LibraryRead, Caller: f}, c)
	if err != nil {
		return "", err
	}
	denied, err := f.tools.grants.Denials(ctx, u)
	if err != nil {
		return "", err
	}
	return f.tools.library.ListFiles(ctx, f.call, prefix, denied)
}

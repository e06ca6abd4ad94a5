package acting

import (
	"context"
	"encoding/json"
	"strings"

	"agentsite/agentruntime/prompt"
	"agentsite/agentruntime/speech"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/task"
)

// remembering is the tool with which an agent keeps a fact about the person.
type remembering struct {
	tools *Tools
	call  task.Call
}

// recalling is the tool with which an agent searches its memories.
type recalling struct {
	tools *Tools
	call  task.Call
}

// memoryTools returns the tools of an agent's memory.
func (t *Tools) memoryTools(call task.Call) []prompt.Tool {
	if t.memories == nil {
		return nil
	}
	return []prompt.Tool{
		{Agent: "portal", Name: grant.Memory, Title: "remember",
			Description: "Keeps one lasting fact about the person, or a wish of theirs, for later conversations. " +
				"Write a whole sentence. No passwords or other secrets.",
			Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","maxLength":1000}},` +
				`"required":["text"]}`),
			Caller: remembering{t, call}},
		{Agent: "portal", Name: grant.Memory, Title: "recall",
			Description: "Searches what you remember of the person from earlier conversations.",
			Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},` +
				`"required":["query"]}`),
			ReadOnly: true, Caller: recalling{t, call}},
	}
}

// CallTool implements prompt.ToolCaller.
func (r remembering) CallTool(ctx context.Context, c prompt.Invocation) (text string, isError bool, err error) {
	var args struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(c.Args, &args); err != nil || strings.TrimSpace(args.Text) == "" {
		return "", false, fault.New(fault.Invalid, "Give the text as a JSON string.")
	}
	if err := r.tools.memories.Remember(ctx, r.call, args.Text); err != nil {
		return "", false, err
	}
	return "Remembered.", false, nil
}

// CallTool implements prompt.ToolCaller.
func (r recalling) CallTool(ctx context.Context, c prompt.Invocation) (text string, isError bool, err error) {
	var args struct {
		Query string `json:"query"`
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return "", false, fault.New(fault.Invalid, "Give the query as a JSON string.")
	}
	list, err := r.tools.memories.Recall(ctx, r.call, args.Query)
	if err != nil || len(list) > 0 {
		return speech.Memories(list), false, err
	}
	return "You remember nothing about that.", false, nil
}

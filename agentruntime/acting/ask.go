package acting

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsite/agentruntime/prompt"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

const (
	// askTime bounds one question. The budget of the work may end it earlier.
	askTime = 15 * time.Minute
	// stopTime bounds the stop of a question after the asking agent was stopped.
	stopTime = 10 * time.Second
	maxFound = 10
)

// callerOf returns the person behind a call as an actor of its agent.
func callerOf(call task.Call) ident.Actor {
	return chat.ActorThrough(task.Task{CallerKind: call.Caller.Kind, CallerID: call.Caller.ID,
		CallerHandle: call.Caller.Handle})
}

// asking is the tool with which an agent asks another one.
type asking struct {
	tools *Tools
	call  task.Call
	// agent is the only agent that the tool asks, "" for the one that the arguments name.
	agent string
}

func (t *Tools) askTool(call task.Call) prompt.Tool {
	return prompt.Tool{Agent: "portal", Name: grant.Ask, Title: "ask",
		Description: "Asks another agent, of this portal or another one, and returns its answer. Give the handle as " +
			"find returns it. Write all that the agent needs into the text: it does not see this conversation.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"agent":{"type":"string","description":"handle of the agent"},` +
			`"text":{"type":"string","description":"the question or task"}},"required":["agent","text"]}`),
		Repeatable: true, Time: askTime, Caller: asking{t, call, ""}}
}

// askOne returns the tool that asks one agent.
func (t *Tools) askOne(call task.Call, a hub.Agent) prompt.Tool {
	about := a.Description
	for _, s := range a.Skills {
		about += " " + s.Name + "."
	}
	return prompt.Tool{Agent: a.Handle(), Name: grant.Ask,
		Description: "Asks this agent and returns its answer. It does not see this conversation. About it: " + about,
		Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string",` +
			`"description":"the question or task, with all that the agent needs"}},"required":["text"]}`),
		Repeatable: true, Time: askTime, Caller: asking{t, call, a.Handle()}}
}

type askArgs struct {
	Agent string `json:"agent"`
	Text  string `json:"text"`
}

func (a asking) read(c prompt.Invocation) (args askArgs, err error) {
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return args, fault.New(fault.Invalid, "Give the agent and the text as JSON strings.")
	}
	if a.agent != "" {
		args.Agent = a.agent
	}
	args.Agent = strings.TrimPrefix(strings.TrimSpace(args.Agent), "@")
	if args.Agent == "" || strings.TrimSpace(args.Text) == "" {
		return args, fault.New(fault.Invalid, "Name the agent and write the text.")
	}
	return args, nil
}

// named returns the agent that a call names, "" if its arguments cannot be read.
func (a asking) named(c prompt.Invocation) string {
	args, _ := a.read(c)
	return args.Agent
}

// target returns the agent that a call asks, as far as the person behind it may call it.
func (a asking) target(ctx context.Context, c prompt.Invocation) (hub.Agent, error) {
	args, err := a.read(c)
	if err != nil {
		return hub.Agent{}, err
	}
	return a.tools.directory.Callable(ctx, callerOf(a.call), args.Agent)
}

// CallTool implements prompt.ToolCaller: it asks the agent and waits for the answer. If ctx ends, the question is
// stopped, except when the portal stops: then the same call after the start waits for the same answer. A question of
// that agent goes to the person as a *prompt.AskedBack, because only the person can decide.
func (a asking) CallTool(ctx context.Context, c prompt.Invocation) (text string, isError bool, err error) {
	args, err := a.read(c)
	if err != nil {
		return "", false, err
	}
	q := chat.Aside{TaskID: a.call.TaskID, Agent: args.Agent, Text: args.Text, CallID: callID(c.ID), Earlier: c.Earlier}
	if r := c.Reply; r != nil {
		q.Text, q.Resumes, q.Answers, q.Relayed = r.Text, r.TaskID, r.Seq, r.Own
		q.CallID = callID(c.ID + "\x00" + r.ID)
	}
	asked, err := a.tools.chats.AskAside(ctx, q)
	if err != nil {
		return "", false, err
	}
	actor := callerOf(a.call)
	t, m, err := a.tools.chats.AwaitTask(ctx, actor, asked.Task)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), task.ErrShutdown) {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			// The error of StopTask is dropped: the caller gets err, the reason why the wait ended. A question that
			// goes on ends when its budget is used up.
			_ = a.tools.chats.StopTask(stopping, actor, asked.Task.ID, "Stopped with the agent that asked.")
		}
		return "", false, err
	}
	text = task.PlainText(m.Parts)
	switch t.State {
	case task.Completed:
		return text, false, nil
	case task.InputRequired:
		if len(text) > prompt.MaxRelayed {
			return fmt.Sprintf("It asks the person something of more than %d KiB, which cannot be answered through agents.",
				prompt.MaxRelayed>>10), true, nil
		}
		return "", false, &prompt.AskedBack{Agent: asked.Task.AgentHandle, TaskID: t.ID, Seq: m.Seq,
			Question: text}
	case task.AuthRequired:
		return "It needs an authorization first. Tell the person:\n" + text, false, nil
	}
	return fmt.Sprintf("It ended without a result (%s): %s", t.State, text), true, nil
}

// callID returns the id of a call in a bounded form, because the model chose it.
func callID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// finding is the tool with which an agent searches for other agents.
type finding struct {
	tools *Tools
	call  task.Call
}

func (t *Tools) findTool(call task.Call) prompt.Tool {
	return prompt.Tool{Agent: "portal", Name: grant.Find, Title: "find",
		Description: "Searches for agents on this portal and others by what they can do, and returns their handles.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"words of the work"},"tag":{"type":"string"},` +
			`"skill":{"type":"string"},"portal":{"type":"string","description":"host of a portal"}},` +
			`"required":["query"]}`),
		ReadOnly: true, Caller: finding{t, call}}
}

// foundAgent is one result of find.
type foundAgent struct {
	Agent       string   `json:"agent"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Skills      []string `json:"skills,omitempty"`
	Liveness    string   `json:"liveness"`
}

// CallTool implements prompt.ToolCaller. Only public agents are found, because agent and person may both see them.
func (f finding) CallTool(ctx context.Context, c prompt.Invocation) (text string, isError bool, err error) {
	var args struct{ Query, Tag, Skill, Portal string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return "", false, fault.New(fault.Invalid, "Give the query as a JSON string.")
	}
	q := hub.Query{Text: args.Query, Limit: maxFound, Bare: true, Wide: true}
	for value, list := range map[string]*[]string{args.Tag: &q.Tags, args.Skill: &q.Skills, args.Portal: &q.Portals} {
		if value != "" {
			*list = []string{value}
		}
	}
	page, err := f.tools.directory.Search(ctx, callerOf(f.call), q)
	if err != nil {
		return "", false, err
	}
	out := []foundAgent{}
	for _, r := range page.Results {
		if r.Agent.ID == f.call.Agent.ID {
			continue
		}
		a := foundAgent{Agent: r.Agent.Handle(), Title: r.Agent.Title, Description: a2a.Line(r.Agent.Description, 300),
			Liveness: string(r.Agent.Liveness.State)}
		for _, s := range r.Agent.Skills[:min(len(r.Agent.Skills), 8)] {
			a.Skills = append(a.Skills, a2a.Line(s.Name, 80))
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return "No agent fits. Try other words.", false, nil
	}
	b, err := json.Marshal(out)
	return string(b), false, err
}

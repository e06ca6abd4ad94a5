package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// maxAsked bounds the agents that one call asks, because each gets a task of its own.
const maxAsked = 8

const askManyInput = `{"type":"object","properties":{
"agents":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":8,"description":"Handles, from search_agents"},
"text":{"type":"string","description":"What to ask them, with everything they need to know","minLength":1}
},"required":["agents","text"],"additionalProperties":false}`

const askManyOutput = `{"type":"object","properties":{
"answers":{"type":"array","description":"In the order of agents","items":{"type":"object","properties":{
"agent":{"type":"string"},"error":{"type":"string","description":"Why it was not asked"},"task_id":{"type":"string"},"context_id":{"type":"string"},"state":{"type":"string"},
"answer":{"type":"string"},"reason":{"type":"string"},"artifacts":{"type":"array"}},"required":["agent"]}},
"completed":{"type":"integer","description":"How many answered"}
},"required":["answers","completed"]}`

// oneOf is the result of one of the asked agents: an answer, or an error.
type oneOf struct {
	answerJSON
	Error string `json:"error,omitempty"`
	text  string
	task  task.Task
}

// askAgents asks several agents the same question at the same time. The call fails only if no agent
// answers.
func (d *Handler) askAgents(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
	in := argumentsOf(c)
	list := in.readList("agents", maxAsked)
	text := in.requireText("text", chat.MaxTextBytes)
	if len(list) == 0 && in.wrong["agents"] == "" {
		in.wrong["agents"] = "is missing"
	}
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			in.wrong["agents"] = "name each agent once"
		}
	}
	if bad := in.checkAll(); bad != nil {
		return *bad, nil
	}
	asker, err := d.cfg.Callers.Identify(c.HTTP, c.Actor)
	if err != nil {
		return readableError(err)
	}
	ctx, leave, err := d.cfg.Callers.BeginWait(c.HTTP.WithContext(ctx), asker.Actor)
	if err != nil {
		return endpoint.Result{}, err
	}
	defer leave()
	out := make([]oneOf, len(list))
	var wg sync.WaitGroup
	var mu sync.Mutex // guards done and calls of c.Progress
	done := 0
	for i, name := range list {
		wg.Go(func() {
			out[i] = d.askOne(ctx, c, asker, name, text)
			mu.Lock()
			defer mu.Unlock()
			done++
			c.ProgressOf(float64(done), float64(len(list)),
				a2a.Line(out[i].Agent+": "+out[i].State+out[i].Error, maxProgress))
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		if c.Stopped(ctx) {
			d.stopAll(ctx, asker.Actor, out)
		}
		return endpoint.Result{}, err
	}
	return combineResults(out), nil
}

// stopAll cancels all running tasks at the same time, after the caller has disconnected.
func (d *Handler) stopAll(ctx context.Context, actor ident.Actor, list []oneOf) {
	var wg sync.WaitGroup
	for _, o := range list {
		if o.task.ID != "" && !o.task.State.Terminal() {
			wg.Go(func() { d.stopTask(ctx, actor, o.task.ID) })
		}
	}
	wg.Wait()
}

func (d *Handler) askOne(ctx context.Context, c *endpoint.Call, asker request.Caller, name, text string) oneOf {
	o := oneOf{answerJSON: answerJSON{Agent: a2a.Line(name, maxHandle)}}
	asked, err := d.sendQuestion(ctx, c, asker,
		chat.Ask{Agent: name, ClientID: ident.NewID(), Parts: []task.Part{task.TextPart(text)}})
	if err == nil {
		o.task = asked.Task
		var end *respond.End
		if end, o.task, err = d.watchTask(ctx, c, asker.Actor, asked.Task, false, func(string) {}); err == nil {
			var m chat.Message
			if end != nil {
				m = end.Message
			}
			r := d.taskResult(ctx, o.task, m)
			o.answerJSON = r.Structured.(answerJSON)
			for _, b := range r.Content {
				if b.Type == "text" {
					o.text += b.Text + "\n"
				}
			}
			return o
		}
	}
	f := fault.As(err)
	o.Error = f.Safe
	if f.Kind == fault.Internal && ctx.Err() == nil {
		d.cfg.Log.Error("ask one of several agents", "agent", o.Agent, "error", err)
	}
	return o
}

// combineResults returns one result with the answers of all agents, in the order in which they were
// named. It is failed if no task completed and none still runs.
func combineResults(list []oneOf) endpoint.Result {
	completed := 0
	var r endpoint.Result
	for _, o := range list {
		if o.State == string(task.Completed) {
			completed++
		}
		text := strings.TrimSpace(o.text)
		if o.Error != "" {
			text = o.Error
		}
		r.Content = append(r.Content, endpoint.TextContent(fmt.Sprintf("%s (%s):\n%s", o.Agent, cmpState(o), text)))
	}
	r.Failed = completed == 0 && !slices.ContainsFunc(list,
		func(o oneOf) bool { return o.State != "" && !task.State(o.State).Terminal() })
	r.Structured = map[string]any{"answers": list, "completed": completed}
	return r
}

func cmpState(o oneOf) string {
	if o.State == "" {
		return "not asked"
	}
	return strings.ReplaceAll(o.State, "_", " ")
}

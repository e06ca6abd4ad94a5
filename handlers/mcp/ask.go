package mcp

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

const (
	// maxWait bounds a call that waits for its task; after it the answer is the present task.
	maxWait = 10 * time.Minute
	// taskAfter is how long a client with the tasks extension waits for the answer before it gets the
	// task instead.
	taskAfter = 500 * time.Millisecond
	// stopTimeout bounds the cancellation of a task after its caller has disconnected.
	stopTimeout = 10 * time.Second
	// progressEvery is the least interval between progress notifications about growing text.
	progressEvery = 250 * time.Millisecond
	maxProgress   = 200
)

// question is a tool call's question to an agent, with its conversation.
type question struct {
	agent   string // handle of the agent
	context string // conversation to continue, "" for a new one
	parts   []task.Part
}

// readableError returns a result that describes an error on which a model can act (Invalid, NotFound,
// Conflict), and any other error unchanged.
func readableError(err error) (endpoint.Result, error) {
	switch f := fault.As(err); f.Kind {
	case fault.Invalid, fault.NotFound, fault.Conflict:
		return endpoint.Failure(f.Safe), nil
	}
	return endpoint.Result{}, err
}

// runQuestion asks an agent and waits for the result, or resumes the call if the client sent the input
// that it waited for.
func (d *Handler) runQuestion(ctx context.Context, c *endpoint.Call, q question) (endpoint.Result, error) {
	if c.State != "" {
		return d.resumeCall(ctx, c)
	}
	asker, err := d.cfg.Callers.Identify(c.HTTP, c.Actor, q.context)
	if err != nil {
		return readableError(err)
	}
	ctx, leave, err := d.cfg.Callers.BeginWait(c.HTTP.WithContext(ctx), asker.Actor)
	if err != nil {
		return endpoint.Result{}, err
	}
	defer leave()
	asked, err := d.sendQuestion(ctx, c, asker,
		chat.Ask{Agent: q.agent, Context: q.context, ClientID: ident.NewID(), Parts: q.parts, Wait: true})
	if err != nil {
		return readableError(err)
	}
	if end, ok := respond.Ended(asked); ok {
		return d.resultOf(ctx, c, end.Task, &end), nil
	}
	return d.followCall(ctx, c, asker.Actor, asked.Task)
}

// sendQuestion asks the agent, and records that a guest owns the new task and conversation.
func (d *Handler) sendQuestion(ctx context.Context, c *endpoint.Call, asker request.Caller,
	a chat.Ask) (asked chat.Asked, err error) {
	a.Face = endpointName
	if a.Via, err = request.ReadChain(c.HTTP); err != nil {
		return asked, err
	}
	if a.Budget, err = request.ReadBudget(c.HTTP, asker.Actor); err != nil {
		return asked, err
	}
	asked, err = d.cfg.Chat.Ask(ctx, asker.Actor, a)
	if err == nil {
		d.cfg.Callers.Remember(asker, asked.ConversationID)
		d.cfg.Callers.Remember(asker, asked.Task.ID)
	}
	return asked, err
}

// followCall waits until the task ends or waits for input, or until a client with the tasks extension
// gets the task. If the client disconnects, the task is canceled, provided that this version of the
// protocol defines it so.
func (d *Handler) followCall(ctx context.Context, c *endpoint.Call, actor ident.Actor, t task.Task) (endpoint.Result,
	error) {
	end, t, err := d.watchTask(ctx, c, actor, t, c.Client.Tasks, c.Progress)
	if err != nil {
		if c.Stopped(ctx) {
			d.stopTask(ctx, actor, t.ID)
		}
		return readableError(err)
	}
	if end == nil && c.Client.Tasks {
		v := d.taskOf(t, "")
		return endpoint.Result{Task: &v}, nil
	}
	return d.resultOf(ctx, c, t, end), nil
}

// watchTask follows a task and reports its progress. If the wait ends before the task does, it
// returns a nil end and the present task: soon for clients that take tasks, otherwise after
// maxWait.
func (d *Handler) watchTask(ctx context.Context, c *endpoint.Call, actor ident.Actor, t task.Task, soon bool,
	report func(string)) (*respond.End, task.Task, error) {
	limit := maxWait
	if soon {
		limit = taskAfter
	}
	wctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := respond.Follow(wctx, d.cfg.Chat, actor, t)
	if err != nil {
		return nil, t, err
	}
	defer s.Close()
	var g growing
	for {
		e, err := s.Next(wctx)
		switch {
		case err == nil && e.End != nil:
			return e.End, e.End.Task, nil
		case err == nil:
			if text := g.progressOf(e); text != "" && c.WantsProgress() {
				report(text)
			}
			continue
		case ctx.Err() != nil:
			return nil, t, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			now, err := d.cfg.Chat.Task(ctx, actor, t.ID)
			return nil, now, err
		}
		return nil, t, err
	}
}

// growing is the progress of a task since the last notification.
type growing struct {
	status   string
	text     []byte
	reported time.Time
}

// progressOf returns the line to report after an event, "" if nothing new is due.
func (g *growing) progressOf(e respond.Event) string {
	switch {
	case e.Task != nil:
		if s := cmp.Or(e.Task.Status, string(e.Task.State)); s != g.status {
			g.status = s
			return a2a.Line(s, maxProgress)
		}
	case e.Text != "" || e.Restart:
		if e.Restart {
			g.text = g.text[:0]
		}
		g.text = append(g.text, e.Text...)
		if now := time.Now(); now.Sub(g.reported) >= progressEvery {
			g.reported = now
			return lastLine(g.text)
		}
	}
	return ""
}

// lastLine returns the end of a text on one line, at most maxProgress runes.
func lastLine(text []byte) string {
	if len(text) > 4*maxProgress {
		text = text[len(text)-4*maxProgress:]
	}
	line := []rune(a2a.Line(strings.ToValidUTF8(string(text), ""), 4*maxProgress))
	if len(line) > maxProgress {
		return "…" + string(line[len(line)-maxProgress+1:])
	}
	return string(line)
}

func (d *Handler) stopTask(ctx context.Context, actor ident.Actor, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := d.cfg.Chat.StopTask(ctx, actor, id, "Stopped: the caller has cancelled the call."); err != nil &&
		!fault.Is(err, fault.NotFound) {
		d.cfg.Log.Warn("stop a task whose caller went away", "task", id, "error", err)
	}
}

// resultOf returns the result of a call: the answer, the question that the task waits for, or, if end is
// nil, the state of the running task.
func (d *Handler) resultOf(ctx context.Context, c *endpoint.Call, t task.Task, end *respond.End) endpoint.Result {
	if end == nil {
		return d.taskResult(ctx, t, chat.Message{})
	}
	r := d.taskResult(ctx, t, end.Message)
	if !t.State.Terminal() && c.Client.Elicitation {
		r.Wants = &endpoint.Wants{Requests: map[string]endpoint.Request{inputKey(end.Message.Seq): elicitInput(t,
			end.Message)},
			State: c.Seal(t.ID + " " + strconv.FormatInt(end.Message.Seq, 10))}
	}
	return r
}

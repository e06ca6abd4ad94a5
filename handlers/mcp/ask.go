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
	// maxWait is how long a call waits for its task; then it is answered with
	// the task as it is.
	maxWait = 10 * time.Minute
	// taskAfter is how long a client that takes tasks waits for the answer
	// itself.
	taskAfter = 500 * time.Millisecond
	// stopTimeout bounds the stopping of work whose caller is gone.
	stopTimeout = 10 * time.Second
	// progressEvery bounds how often a growing text is told of.
	progressEvery = 250 * time.Millisecond
	// maxProgress is how much of a text is told, in characters.
	maxProgress = 200
)

// question is what an agent is asked.
type question struct {
	agent   string // its handle
	context string // the conversation that goes on, "" for a new one
	parts   []task.Part
}

// readable makes a result of an error that a model can do something about.
func readable(err error) (endpoint.Result, error) {
	switch f := fault.As(err); f.Kind {
	case fault.Invalid, fault.NotFound, fault.Conflict:
		return endpoint.Failure(f.Safe), nil
	}
	return endpoint.Result{}, err
}

// ask gives one agent one question, or the input its task waits for, and waits
// for what comes of it.
func (d *Door) ask(ctx context.Context, c *endpoint.Call, q question) (endpoint.Result, error) {
	if c.State != "" {
		return d.again(ctx, c)
	}
	asker, err := d.cfg.Callers.Identify(c.HTTP, c.Actor, q.context)
	if err != nil {
		return readable(err)
	}
	ctx, leave, err := d.cfg.Callers.BeginWait(c.HTTP.WithContext(ctx), asker.Actor)
	if err != nil {
		return endpoint.Result{}, err
	}
	defer leave()
	asked, err := d.put(ctx, c, asker, chat.Ask{Agent: q.agent, Context: q.context, ClientID: ident.NewID(), Parts: q.parts, Wait: true})
	if err != nil {
		return readable(err)
	}
	if end, ok := respond.Ended(asked); ok {
		return d.outcome(ctx, c, end.Task, &end), nil
	}
	return d.follow(ctx, c, asker.Actor, asked.Task)
}

// put asks, and keeps what visitors asked.
func (d *Door) put(ctx context.Context, c *endpoint.Call, asker request.Caller, a chat.Ask) (asked chat.Asked, err error) {
	a.Face = doorName
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

// follow waits until a task that this call asked for ends or asks for
// something. When the caller is gone it stops the work, where the protocol
// says that this is what going away means.
func (d *Door) follow(ctx context.Context, c *endpoint.Call, actor ident.Actor, t task.Task) (endpoint.Result, error) {
	end, t, err := d.watch(ctx, c, actor, t, c.Client.Tasks, c.Progress)
	if err != nil {
		if c.Stopped(ctx) {
			d.stop(ctx, actor, t.ID)
		}
		return readable(err)
	}
	if end == nil && c.Client.Tasks {
		v := d.taskOf(t, "")
		return endpoint.Result{Task: &v}, nil
	}
	return d.outcome(ctx, c, t, end), nil
}

// watch follows a task and tells of its progress. It returns nil for the end
// and the task as it is when waiting is over before the task is: soon, for
// who takes tasks, else after maxWait.
func (d *Door) watch(ctx context.Context, c *endpoint.Call, actor ident.Actor, t task.Task, soon bool, tell func(string)) (*respond.End, task.Task, error) {
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
	g := growing{tell: tell, quiet: !c.WantsProgress()}
	for {
		e, err := s.Next(wctx)
		switch {
		case err == nil && e.End != nil:
			return e.End, e.End.Task, nil
		case err == nil:
			g.take(e)
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

// growing tells of a task while it is worked on.
type growing struct {
	tell   func(string)
	quiet  bool
	status string
	text   []byte
	told   time.Time
}

func (g *growing) take(e respond.Event) {
	if g.quiet {
		return
	}
	switch {
	case e.Task != nil:
		if s := cmp.Or(e.Task.Status, string(e.Task.State)); s != g.status {
			g.status = s
			g.tell(a2a.Line(s, maxProgress))
		}
	case e.Text != "" || e.Restart:
		if e.Restart {
			g.text = g.text[:0]
		}
		g.text = append(g.text, e.Text...)
		if now := time.Now(); now.Sub(g.told) >= progressEvery {
			g.told = now
			g.tell(tail(g.text))
		}
	}
}

// tail is the end of a text as one line.
func tail(text []byte) string {
	if len(text) > 4*maxProgress {
		text = text[len(text)-4*maxProgress:]
	}
	line := []rune(a2a.Line(strings.ToValidUTF8(string(text), ""), 4*maxProgress))
	if len(line) > maxProgress {
		return "…" + string(line[len(line)-maxProgress+1:])
	}
	return string(line)
}

func (d *Door) stop(ctx context.Context, actor ident.Actor, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := d.cfg.Chat.StopTask(ctx, actor, id, "Stopped: who asked has cancelled the call."); err != nil && !fault.Is(err, fault.NotFound) {
		d.cfg.Log.Warn("stop a task whose caller went away", "task", id, "error", err)
	}
}

// outcome is what a call is told of a task that has ended, that asks for
// something, or, without an end, that goes on.
func (d *Door) outcome(ctx context.Context, c *endpoint.Call, t task.Task, end *respond.End) endpoint.Result {
	if end == nil {
		return d.shown(ctx, t, nil)
	}
	r := d.shown(ctx, t, &end.Message)
	if !t.State.Terminal() && c.Client.Elicitation {
		r.Wants = &endpoint.Wants{Requests: map[string]endpoint.Request{inputKey(end.Message.Seq): elicit(t, end.Message)},
			State: c.Seal(t.ID + " " + strconv.FormatInt(end.Message.Seq, 10))}
	}
	return r
}

package agentruntime

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Trier lets agents answer outside of any conversation. It implements
// hub.Trier.
type Trier struct {
	queue   *Queue
	drivers map[hub.Kind]task.Agent
}

// NewTrier returns a trier over the drivers of each kind. An agent of a kind without a driver is an
// Unavailable fault.
func NewTrier(queue *Queue, drivers map[hub.Kind]task.Agent) Trier { return Trier{queue, drivers} }

// Try implements hub.Trier. A driver's fault and the end of ctx are results of state failed with the
// text so far; err is only for defects of the portal, kinds without a driver, and a caller who has too
// much running, which is a RateLimited fault.
func (t Trier) Try(ctx context.Context, actor ident.Actor, a hub.Agent, secret, text string) (out hub.Tried,
	err error) {
	driver := t.drivers[a.Kind]
	if driver == nil {
		return out, fault.New(fault.Unavailable, "This portal cannot run agents of kind %q.", a.Kind)
	}
	call := task.Call{TaskID: ident.NewID(), ConversationID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1,
		Agent:  agentTarget(a, secret),
		Caller: task.Caller{Kind: string(actor.Kind), Handle: actor.Name, ID: actor.ID},
		Parts:  []task.Part{task.TextPart(text)}}
	job := CallerJob(string(actor.Kind), actor.ID, actor.AddrGroup())
	job.ID, job.Conversation, job.Agent, job.Owner, job.Provider = call.TaskID, call.ConversationID, a.ID, a.OwnerID, a.Host()
	if job.Agent == "" {
		job.Agent = "draft of " + actor.ID
	}
	if !t.queue.startJob(job) {
		return out, &fault.Error{Kind: fault.RateLimited, RetryAfter: tryAgainAfter,
			Safe: "Too much is running for you or for this agent. Try again in a few seconds."}
	}
	defer t.queue.freeJob(job.ID)
	s, log := &trySink{}, &tryLog{}
	if a.Kind == hub.Wasm {
		ctx = task.WithTrace(ctx, log)
		defer func() { out.Log = log.lines() }()
	}
	result, err := func() (r task.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("driver %s panicked: %v\n%s", a.Kind, p, debug.Stack())
			}
		}()
		return driver.Run(task.WithBehalf(ctx, call.OnBehalfOf()), call, s)
	}()
	if ctx.Err() != nil {
		return hub.Tried{State: string(task.Failed), Text: s.textSoFar(),
			Reason: "It did not finish in time for a try."}, nil
	}
	if err != nil {
		if f := fault.As(err); f.Kind != fault.Internal {
			return hub.Tried{State: string(task.Failed), Text: s.textSoFar(), Reason: f.Safe}, nil
		}
		return out, err
	}
	result = checkResult(result)
	out = hub.Tried{State: string(result.State), Text: task.PlainText(result.Parts), Reason: result.Reason}
	if out.Text == "" {
		out.Text = s.textSoFar()
	}
	return out, nil
}

// tryAgainAfter is when a try that found no free place may be repeated. Tries are bounded by seconds.
const tryAgainAfter = 5 * time.Second

// agentTarget returns the description of an agent for its driver. secret is the credential in clear
// text, "" for none.
func agentTarget(a hub.Agent, secret string) task.Target {
	return task.Target{ID: a.ID, Portal: a.PortalID, OwnerID: a.OwnerID, Name: a.Name,
		Handle: a.Handle(), Kind: string(a.Kind),
		Endpoint: a.Endpoint, Config: a.Config, Secret: secret}
}

// tryLog keeps the log of a hosted program during a try. It implements task.Tracer.
type tryLog struct {
	mu   sync.Mutex // guards kept
	kept []string
}

// AddTrace implements task.Tracer. It leaves out the requests to models, which the form does not show.
func (l *tryLog) AddTrace(t task.Traced) {
	if t.Head != task.TracedLog && t.Head != task.TracedTrap {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) < task.MaxTraces {
		l.kept = append(l.kept, t.Head+": "+clipText(t.Body))
	}
}

func (l *tryLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

// trySink keeps the text streamed so far, for a try that fails or does not end in time.
type trySink struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (s *trySink) textSoFar() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// Text implements task.Sink. It ignores text beyond chat.MaxAnswerBytes.
func (s *trySink) Text(delta string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.text)+len(delta) <= chat.MaxAnswerBytes {
		s.text = append(s.text, delta...)
	}
}

// Replace implements task.Sink. It ignores a text longer than chat.MaxAnswerBytes.
func (s *trySink) Replace(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) <= chat.MaxAnswerBytes {
		s.text = append(s.text[:0], text...)
	}
}

// Status implements task.Sink. It ignores the status, because the result of a try has no field for it.
func (s *trySink) Status(string) {}

// Artifact implements task.Sink. It appends the artifact's text to the answer, because the page of a try
// shows only text.
func (s *trySink) Artifact(a task.Artifact) {
	s.Text("\n\n" + task.PlainText(a.Parts))
}

// Checkpoint implements task.Sink. It stores nothing, because a try is never resumed.
func (s *trySink) Checkpoint(context.Context, json.RawMessage) error { return nil }

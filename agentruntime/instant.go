package agentruntime

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// Instant answers at once for agents of kinds that need only the question. It implements chat.Instant.
// Create it with NewInstant.
type Instant struct {
	hub     *hub.Service
	halts   Halts
	drivers map[hub.Kind]task.Agent
	queue   *Queue
	log     *slog.Logger
}

// instantTimeout is far longer than such an answer takes, and too short for people to notice.
const instantTimeout = 200 * time.Millisecond

// NewInstant returns an Instant over the drivers of kinds that have neither state nor effects. That is
// a condition, because the worker repeats a call that took too long.
func NewInstant(queue *Queue, agents *hub.Service, halts Halts,
	drivers map[hub.Kind]task.Agent, log *slog.Logger) *Instant {
	return &Instant{queue: queue, hub: agents, halts: halts, drivers: drivers, log: log}
}

// Kind reports whether agents of kind k can be answered at once, which means without the task queue.
func (i *Instant) Kind(k hub.Kind) bool { return i.drivers[k] != nil }

// AnswerNow implements chat.Instant. It gives up, with ok false, when no place is free for the caller
// or after instantTimeout. The driver may then still run until its context ends; its answer is dropped.
func (i *Instant) AnswerNow(ctx context.Context, t task.Task, m chat.Message) (task.Result, bool) {
	a, secret, err := i.hub.Open(ctx, t.AgentID)
	driver := i.drivers[a.Kind]
	if err != nil || driver == nil || i.halts.ReasonOf(a, "") != "" {
		return task.Result{}, false // The queue rejects the task of a halted agent.
	}
	job := AgentJob(CallerJob(t.CallerKind, t.CallerID, t.CallerGroup), a, i.hub)
	job.ID, job.Conversation = t.ID+runMark+"instant", t.ConversationID
	if job.Conversation == "" {
		job.Conversation = t.ID
	}
	if !i.queue.startJob(job) {
		return task.Result{}, false
	}
	r := &run{queue: i.queue, jobID: job.ID, begun: true}
	defer r.endTask()
	call := task.Call{TaskID: t.ID, ConversationID: t.ConversationID, MessageID: m.ID, Attempt: t.Attempt,
		Agent:   agentTarget(a, secret),
		Caller:  task.Caller{Kind: t.CallerKind, Handle: t.CallerHandle, ID: t.CallerID},
		Speaker: task.Speaker{Kind: m.Sender.Kind, Handle: m.Sender.Handle}, Parts: m.Parts, Via: t.Via,
		ClientID: knownClientID(m.ClientID)}
	ctx, cancel := context.WithTimeout(ctx, instantTimeout)
	defer cancel()
	done := make(chan task.Result, 1)
	sink := &instantSink{}
	// The driver runs in its own goroutine, so that one that does not return keeps only the caller waiting.
	go func() {
		defer r.endDriver()
		r, err := func() (r task.Result, err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("driver %s panicked: %v\n%s", a.Kind, p, debug.Stack())
				}
			}()
			return driver.Run(task.WithBehalf(ctx, call.OnBehalfOf()), call, sink)
		}()
		if err != nil {
			i.log.Debug("no answer at once", "task", t.ID, "agent", t.AgentID, "error", err)
			r = task.Result{State: task.Failed}
		}
		done <- r
	}()
	select {
	case r := <-done:
		return checkResult(r), !sink.more.Load()
	case <-ctx.Done():
		return task.Result{}, false
	}
}

// instantSink records whether a driver produced an artifact or a checkpoint. Such an answer cannot be
// given at once, so the task runs again through the queue.
type instantSink struct {
	trySink
	more atomic.Bool
}

// Artifact implements task.Sink. It makes the instant answer invalid, because only text is stored by
// this path.
func (s *instantSink) Artifact(task.Artifact) { s.more.Store(true) }

// Checkpoint implements task.Sink. It makes the instant answer invalid, because no task exists yet that
// could hold the state.
func (s *instantSink) Checkpoint(context.Context, json.RawMessage) error {
	s.more.Store(true)
	return nil
}

// knownClientID is a task.ClientID held in memory, for a message that is not stored yet.
type knownClientID string

// ReadClientID implements task.ClientID. It never fails; "" means that the message has no client id.
func (c knownClientID) ReadClientID(context.Context) (string, error) { return string(c), nil }

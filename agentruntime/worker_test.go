package agentruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"agentsite/agentruntime"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/liveness"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agentFunc is an agent made of its Run.
type agentFunc func(context.Context, task.Call, task.Sink) (task.Result, error)

func (f agentFunc) Run(ctx context.Context, c task.Call, s task.Sink) (task.Result, error) {
	return f(ctx, c, s)
}

// house is everything a worker needs, on a real database.
type house struct {
	t     testing.TB
	db    *storetest.DB
	chat  *chat.Service
	tasks *task.Service
	hub   *hub.Service
	calls *liveness.Service
	queue *agentruntime.Queue
	ada   ident.Actor
	agent hub.Agent
	stop  context.CancelCauseFunc
	ended chan struct{}
	// finished, if set, is called when an outcome is in the database and its
	// task has not left the queue.
	finished func(task.Task)
	// failing has for the name of a method of the store how often it still fails.
	failing map[string]*atomic.Int32
}

// ReasonOf implements agentruntime.Halts: every agent works.
func (h *house) ReasonOf(hub.Agent, string) string { return "" }

// fails returns an error for the next calls of a method that is set to fail.
func (h *house) fails(method string) error {
	if n := h.failing[method]; n != nil && n.Add(-1) >= 0 {
		return &fault.Error{Kind: fault.Unavailable, Safe: "The database does not answer.", RetryAfter: time.Second}
	}
	return nil
}

// workerStore is the database as the worker sees it.
type workerStore struct {
	*storetest.DB
	h *house
}

func (s workerStore) Queued(ctx context.Context, after int64, limit int) ([]task.Queued, error) {
	if err := s.h.fails("Queued"); err != nil {
		return nil, err
	}
	return s.DB.Queued(ctx, after, limit)
}

func (s workerStore) TaskByID(ctx context.Context, id string) (task.Task, error) {
	if err := s.h.fails("TaskByID"); err != nil {
		return task.Task{}, err
	}
	return s.DB.TaskByID(ctx, id)
}

func (s workerStore) Begin(ctx context.Context, id string, fence int64) (task.Task, error) {
	if err := s.h.fails("Begin"); err != nil {
		return task.Task{}, err
	}
	return s.DB.Begin(ctx, id, fence)
}

// chatStore is the database with a look at when an outcome is in it.
type chatStore struct {
	*storetest.DB
	h *house
}

func (s chatStore) Finish(ctx context.Context, e chat.Ended) (chat.Posted, error) {
	if err := s.h.fails("Finish"); err != nil {
		return chat.Posted{}, err
	}
	done, err := s.DB.Finish(ctx, e)
	if s.h.finished != nil && err == nil {
		s.h.finished(e.Task)
	}
	return done, err
}

// limits are those of a portal without settings.
var limits = scheduler.Limits{Running: 512, RunningPerAccount: 64, RunningPerRoom: 64, RunningPerAgent: 32, RunningPerOwner: 128,
	RunningPerProvider: 128, Waiting: 1000, WaitingPerAccount: 1000, WaitingPerRoom: 1000, WaitingPerAgent: 1000, WaitingPerOwner: 1000,
	WaitingPerProvider: 1000}

type sealer struct{}

func (sealer) Mark(a, b string) string                 { return a + b }
func (sealer) Seal(s, _ string) []byte                 { return []byte(s) }
func (sealer) Open(b []byte, _ string) (string, error) { return string(b), nil }

type directory struct{ hub *hub.Service }

func (d directory) Agent(ctx context.Context, a ident.Actor, h string) (chat.AgentRef, error) {
	x, err := d.hub.Callable(ctx, a, h)
	return chat.AgentRef{ID: x.ID, Handle: x.Handle(), Public: true}, err
}

func (d directory) Person(context.Context, ident.Actor, string) (chat.Member, error) {
	return chat.Member{}, fault.New(fault.NotFound, "nobody")
}

func (d directory) Admit(ctx context.Context, a ident.Actor, h string, size int) error {
	return d.hub.Admit(ctx, a, h, size)
}

func (d directory) Hosts(context.Context, []string) (map[string]string, error) { return nil, nil }

// anyAddress allows every address.
type anyAddress struct{}

func (anyAddress) CheckURL(string) error { return nil }

func build(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, db: storetest.New(t), queue: agentruntime.NewQueue(limits)}
	log := slog.New(slog.DiscardHandler)
	h.hub = hub.New(hub.Ports{Store: h.db, Index: index.New(), Sealer: sealer{}, Addresses: anyAddress{}}, hub.Config{Portal: "home.example", Kinds: []hub.Kind{hub.A2A}, Log: log})
	h.calls = liveness.New(liveness.Ports{Queue: liveness.NewQueue(h.db, log), Directory: h.hub, Notices: h.hub.Notices})
	h.chat = chat.New(chatStore{h.db, h}, directory{h.hub}, h.queue, chat.Config{Portal: "home.example", Log: log})
	h.tasks = task.NewService(h.db, h.queue, h.chat)
	owner := storetest.Account(t, h.db, "ada")
	h.ada = ident.Actor{Kind: ident.Person, ID: owner.ID, Name: owner.Name}
	h.agent = storetest.Agent(t, h.db, "helper", owner)
	t.Cleanup(h.shutdown)
	return h
}

// start runs a worker whose agents are all run by f.
func (h *house) start(f agentFunc) {
	h.t.Helper()
	h.startAs(f)
}

// startAs runs a worker whose agents are all run by a.
func (h *house) startAs(a task.Agent) {
	h.t.Helper()
	drivers := map[hub.Kind]task.Agent{h.agent.Kind: a}
	w := agentruntime.New(h.queue, workerStore{h.db, h}, h.chat, h.hub, h, h.calls, drivers, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancelCause(context.Background())
	h.stop, h.ended = stop, make(chan struct{})
	go func() {
		defer close(h.ended)
		if err := w.Run(ctx); err != nil {
			h.t.Errorf("worker: %v", err)
		}
	}()
}

// shutdown stops the worker as a stopping portal does.
func (h *house) shutdown() {
	if h.stop != nil {
		h.stop(task.ErrShutdown)
		<-h.ended
		h.stop = nil
	}
}

func (h *house) room() string {
	h.t.Helper()
	c, err := h.chat.Create(h.t.Context(), h.ada, "", []string{"helper"})
	if err != nil {
		h.t.Fatal(err)
	}
	return c.ID
}

func (h *house) say(room, text string) task.Task {
	h.t.Helper()
	p, err := h.chat.Post(h.t.Context(), h.ada, room, chat.Draft{ClientID: ident.NewID(), Parts: []task.Part{task.TextPart(text)}})
	if err != nil {
		h.t.Fatal(err)
	}
	if len(p.Tasks) != 1 {
		h.t.Fatalf("%d tasks", len(p.Tasks))
	}
	return p.Tasks[0]
}

// answers waits for n messages of the agent and returns them.
func (h *house) answers(room string, n int) []chat.Message {
	h.t.Helper()
	sub, err := h.chat.Subscribe(h.t.Context(), h.ada, room, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	defer sub.Close()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	var out []chat.Message
	for len(out) < n {
		u, err := sub.Next(ctx)
		if err != nil {
			h.t.Fatalf("after %d answers: %v", len(out), err)
		}
		if u.Message != nil && u.Message.Sender.Kind == "agent" {
			out = append(out, *u.Message)
		}
	}
	return out
}

func text(m chat.Message) string { return task.PlainText(m.Parts) }

func TestWorker_AnswersWithHistory(t *testing.T) {
	h := build(t)
	h.start(func(_ context.Context, c task.Call, s task.Sink) (task.Result, error) {
		s.Text("so ")
		return task.Done(fmt.Sprintf("%d earlier, now %s", len(c.History), task.PlainText(c.Parts))), nil
	})
	room := h.room()
	h.say(room, "one")
	h.answers(room, 1)
	k := h.say(room, "two")
	got := h.answers(room, 2)
	if text(got[1]) != "2 earlier, now two" || got[1].TaskID != k.ID || got[1].TaskState != task.Completed {
		t.Errorf("answer %+v", got[1])
	}
	if r := storetest.Sound(t, h.db); len(r.Faults) > 0 {
		t.Error(r.Faults)
	}
}

// A database that does not answer for a while delays an answer and never loses or changes it.
func TestWorker_WaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Queued", "TaskByID", "Begin", "Finish"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			h.failing = map[string]*atomic.Int32{method: new(atomic.Int32)}
			first := make(chan struct{})
			h.start(func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) {
				if task.PlainText(c.Parts) == "first" {
					<-first
				}
				return task.Done("yes to " + task.PlainText(c.Parts)), nil
			})
			one, other := h.room(), h.room()
			h.say(one, "first")
			h.failing[method].Store(3)
			h.say(other, "second")
			close(first) // the end of the first task wakes the worker while the second is unread
			for room, want := range map[string]string{one: "yes to first", other: "yes to second"} {
				if got := h.answers(room, 1)[0]; text(got) != want || got.TaskState != task.Completed {
					t.Errorf("answer %q, %s", text(got), got.TaskState)
				}
			}
		})
	}
}

func TestWorker_OutcomesOfBadAgents(t *testing.T) {
	for _, c := range []struct {
		name   string
		run    agentFunc
		state  task.State
		reason string
		kept   string
	}{
		{"an error with a safe sentence", func(context.Context, task.Call, task.Sink) (task.Result, error) {
			return task.Result{}, fault.New(fault.Unavailable, "No luck today.")
		}, task.Failed, "No luck today.", ""},
		{"any other error is not shown", func(context.Context, task.Call, task.Sink) (task.Result, error) {
			return task.Result{}, errors.New("password hunter2 wrong")
		}, task.Failed, "Something went wrong", ""},
		{"a panic", func(context.Context, task.Call, task.Sink) (task.Result, error) { panic("boom") }, task.Failed, "Something went wrong", ""},
		{"no outcome", func(context.Context, task.Call, task.Sink) (task.Result, error) { return task.Result{}, nil }, task.Failed, "without an outcome", ""},
		{"partial text is kept", func(_ context.Context, _ task.Call, s task.Sink) (task.Result, error) {
			s.Text("half a")
			return task.Result{}, fault.New(fault.Unavailable, "Cut off.")
		}, task.Failed, "Cut off.", "half a"},
		{"an enormous answer is refused", func(context.Context, task.Call, task.Sink) (task.Result, error) {
			return task.Done(strings.Repeat("x", 64<<20)), nil
		}, task.Failed, "too large", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := build(t)
			h.start(c.run)
			room := h.room()
			h.say(room, "go")
			got := h.answers(room, 1)[0]
			if got.TaskState != c.state || !strings.Contains(got.Reason, c.reason) || strings.Contains(got.Reason+text(got), "hunter2") {
				t.Errorf("state %s, reason %q", got.TaskState, got.Reason)
			}
			if c.kept != "" && text(got) != c.kept {
				t.Errorf("kept %q", text(got))
			}
		})
	}
}

func TestWorker_StopEndsWithinTheGraceAndKeepsTheText(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("deaf=%v", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(t)
				release := make(chan struct{})
				t.Cleanup(func() { close(release) })
				h.start(func(ctx context.Context, _ task.Call, s task.Sink) (task.Result, error) {
					s.Text("beginning")
					if deaf {
						<-release
						s.Text(" and a late word")
						return task.Done("too late"), nil
					}
					<-ctx.Done()
					return task.Result{}, ctx.Err()
				})
				room := h.room()
				k := h.say(room, "go")
				sub, err := h.chat.Subscribe(t.Context(), h.ada, room, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer sub.Close()
				for {
					u, err := sub.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if u.Delta != nil {
						break
					}
				}
				if _, err := h.tasks.Cancel(t.Context(), h.ada, k.ID); err != nil {
					t.Fatal(err)
				}
				got := h.answers(room, 1)[0]
				if got.TaskState != task.Canceled || text(got) != "beginning" {
					t.Errorf("state %s, text %q", got.TaskState, text(got))
				}
			})
		})
	}
}

func TestWorker_GoesOnAfterAShutdown(t *testing.T) {
	h := build(t)
	begun := make(chan struct{})
	h.start(func(ctx context.Context, c task.Call, s task.Sink) (task.Result, error) {
		if err := s.Checkpoint(ctx, json.RawMessage(`{"far":"7"}`)); err != nil {
			return task.Result{}, err
		}
		close(begun)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), task.ErrShutdown) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		return task.Result{}, ctx.Err()
	})
	room := h.room()
	k := h.say(room, "go")
	<-begun
	h.shutdown()
	if now, err := h.db.TaskByID(t.Context(), k.ID); err != nil || now.State.Terminal() {
		t.Fatalf("after the shutdown: %s, %v", now.State, err)
	}
	h.start(func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		return task.Done(fmt.Sprintf("attempt %d, %s", c.Attempt, c.Checkpoint)), nil
	})
	if got := text(h.answers(room, 1)[0]); got != `attempt 2, {"far":"7"}` {
		t.Errorf("answer %q", got)
	}
}

func TestWorker_GivesUpATaskThatTakesThePortalDownAgainAndAgain(t *testing.T) {
	h := build(t)
	room := h.room()
	h.say(room, "go")
	for range 3 {
		begun := make(chan struct{})
		h.start(func(ctx context.Context, _ task.Call, _ task.Sink) (task.Result, error) {
			close(begun)
			<-ctx.Done()
			return task.Result{}, ctx.Err()
		})
		<-begun
		h.shutdown()
	}
	h.start(func(context.Context, task.Call, task.Sink) (task.Result, error) {
		t.Error("begun a fourth time")
		return task.Done(""), nil
	})
	if got := h.answers(room, 1)[0]; got.TaskState != task.Failed {
		t.Errorf("state %s", got.TaskState)
	}
}

// A program that dials in holds its task through any number of restarts, as docs/link.md promises.
func TestWorker_KeepsTheTaskOfAProgramThatDialsIn(t *testing.T) {
	h := build(t)
	owner, err := h.db.AccountByID(t.Context(), h.ada.ID)
	if err != nil {
		t.Fatal(err)
	}
	h.agent = storetest.AgentOfKind(t, h.db, "dialer", owner, hub.Link)
	c, err := h.chat.Create(t.Context(), h.ada, "", []string{"dialer"})
	if err != nil {
		t.Fatal(err)
	}
	h.say(c.ID, "go")
	for i := range 5 {
		begun := make(chan struct{})
		h.start(func(ctx context.Context, c task.Call, s task.Sink) (task.Result, error) {
			if err := s.Checkpoint(ctx, fmt.Appendf(c.Checkpoint, "%d", i+1)); err != nil {
				return task.Result{}, err
			}
			close(begun)
			<-ctx.Done()
			return task.Result{}, ctx.Err()
		})
		<-begun
		h.shutdown()
	}
	h.start(func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		return task.Done(string(c.Checkpoint)), nil
	})
	if got := text(h.answers(c.ID, 1)[0]); got != "12345" {
		t.Errorf("answer %q", got)
	}
}

func TestWorker_OneAnswerOfAnAgentInAConversationAtATime(t *testing.T) {
	h := build(t)
	var mu sync.Mutex
	var now, most int
	var order []string
	h.start(func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		mu.Lock()
		now++
		most = max(most, now)
		order = append(order, task.PlainText(c.Parts))
		mu.Unlock()
		defer func() { mu.Lock(); now--; mu.Unlock() }()
		return task.Done("ok"), nil
	})
	room := h.room()
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint(i))
		h.say(room, fmt.Sprint(i))
	}
	h.answers(room, 20)
	if most != 1 || !slices.Equal(order, want) {
		t.Errorf("at most %d at once, order %v", most, order)
	}
}

func TestWorker_AHangingAgentHoldsOnlyItsOwnConversation(t *testing.T) {
	h := build(t)
	h.start(func(ctx context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		if task.PlainText(c.Parts) == "hang" {
			<-ctx.Done()
			return task.Result{}, ctx.Err()
		}
		return task.Done("ok"), nil
	})
	stuck := h.room()
	h.say(stuck, "hang")
	for range 10 {
		room := h.room()
		h.say(room, "go")
		h.answers(room, 1)
	}
}

func TestWorker_InputContinuesTheTask(t *testing.T) {
	h := build(t)
	h.start(func(ctx context.Context, c task.Call, s task.Sink) (task.Result, error) {
		if c.Checkpoint == nil {
			if err := s.Checkpoint(ctx, json.RawMessage(`{"asked":true}`)); err != nil {
				return task.Result{}, err
			}
			return task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart("Which colour?")}}, nil
		}
		return task.Done(fmt.Sprintf("attempt %d: %s", c.Attempt, task.PlainText(c.Parts))), nil
	})
	room := h.room()
	first := h.say(room, "paint it")
	h.answers(room, 1)
	second := h.say(room, "red")
	if first.ID != second.ID {
		t.Errorf("the answer began another task")
	}
	got := h.answers(room, 2)
	if got[0].TaskState != task.InputRequired || text(got[1]) != "attempt 1: red" || got[1].TaskState != task.Completed {
		t.Errorf("answers %+v", got)
	}
	if r := storetest.Sound(t, h.db); len(r.Faults) > 0 {
		t.Error(r.Faults)
	}
}

func TestWorker_StoppingWaitingWorkEndsItUnbegun(t *testing.T) {
	h := build(t)
	room := h.room()
	k := h.say(room, "go")
	if _, err := h.tasks.Cancel(t.Context(), h.ada, k.ID); err != nil {
		t.Fatal(err)
	}
	h.start(func(context.Context, task.Call, task.Sink) (task.Result, error) {
		t.Error("begun although it was stopped")
		return task.Done(""), nil
	})
	if got := h.answers(room, 1)[0]; got.TaskState != task.Canceled {
		t.Errorf("state %s", got.TaskState)
	}
}

// TestWorker_StopAndFinishRace has exactly one outcome whoever is first.
func TestWorker_StopAndFinishRace(t *testing.T) {
	h := build(t)
	h.start(func(context.Context, task.Call, task.Sink) (task.Result, error) { return task.Done("done"), nil })
	for range 50 {
		room := h.room()
		k := h.say(room, "go")
		_, err := h.tasks.Cancel(t.Context(), h.ada, k.ID)
		if err != nil && !fault.Is(err, fault.Conflict) {
			t.Fatal(err)
		}
		h.answers(room, 1)
		list, _, err := h.chat.Messages(t.Context(), h.ada, room, chat.Span{Limit: 50})
		if err != nil || len(list) != 2 {
			t.Fatalf("%d messages, %v", len(list), err)
		}
	}
	if r := storetest.Sound(t, h.db); len(r.Faults) > 0 {
		t.Error(r.Faults)
	}
}

func TestWorker_DispatchesManyConversations(t *testing.T) {
	h := build(t)
	h.start(func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) { return task.Done("ok"), nil })
	var wg sync.WaitGroup
	for range 100 {
		room := h.room()
		wg.Go(func() {
			h.say(room, "go")
			h.answers(room, 1)
		})
	}
	wg.Wait()
}

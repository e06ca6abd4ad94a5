package agentruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agentruntime"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// roomOf returns a new conversation of an account with the agent.
func (h *house) roomOf(who ident.Actor) string {
	h.t.Helper()
	c, err := h.chat.Create(h.t.Context(), who, "", []string{"helper"})
	if err != nil {
		h.t.Fatal(err)
	}
	return c.ID
}

func (h *house) sayAs(who ident.Actor, room, text string) task.Task {
	h.t.Helper()
	p, err := h.chat.Post(h.t.Context(), who, room, chat.Draft{ClientID: ident.NewID(), Parts: []task.Part{task.TextPart(text)}})
	if err != nil {
		h.t.Fatal(err)
	}
	return p.Tasks[0]
}

func (h *house) person(name string) ident.Actor {
	h.t.Helper()
	a := storetest.Account(h.t, h.db, name)
	return ident.Actor{Kind: ident.Person, ID: a.ID, Name: a.Name}
}

// One account has more tasks at an agent than it has places, and another asks one question.
func TestFair_AnotherAccountIsNextDuringAFlood(t *testing.T) {
	h := build(t)
	started := make(chan string, 200)
	h.start(func(ctx context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		started <- task.PlainText(c.Parts)
		if c.Caller.Handle == "bob" {
			return task.Done("for bob"), nil
		}
		<-ctx.Done()
		return task.Result{}, ctx.Err()
	})
	for i := range 40 {
		h.sayAs(h.ada, h.roomOf(h.ada), fmt.Sprint(i))
	}
	for range 16 {
		<-started
	}
	bob := h.person("bob")
	h.sayAs(bob, h.roomOf(bob), "one question")
	if got := <-started; got != "one question" {
		t.Errorf("%q is next, which is beyond half of the agent's places", got)
	}
	got := h.queue.Snapshot()
	if got.Accounts[0].Running != 16 || got.Accounts[0].Waiting != 24 || got.Accounts[0].Account != h.ada.ID {
		t.Errorf("%+v", got)
	}
}

// Waiting tasks take no attempt and are shown as waiting; a restart keeps all of them, in their order.
func TestFair_ARestartKeepsWhatWaits(t *testing.T) {
	h := build(t)
	begun := make(chan struct{}, 64)
	h.start(func(ctx context.Context, _ task.Call, _ task.Sink) (task.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return task.Result{}, ctx.Err()
	})
	var all []task.Task
	for i := range 30 {
		all = append(all, h.sayAs(h.ada, h.roomOf(h.ada), fmt.Sprint(i)))
	}
	for range 16 {
		<-begun
	}
	for range 4 { // more starts than attempts of one task
		h.shutdown()
		for i, k := range all {
			now, err := h.db.TaskByID(t.Context(), k.ID)
			if err != nil || now.State.Terminal() || i >= 16 && (now.State != task.Submitted || now.Attempt != 0) {
				t.Fatalf("task %d after the stop: %s, attempt %d, %v", i, now.State, now.Attempt, err)
			}
		}
		h.start(func(ctx context.Context, c task.Call, _ task.Sink) (task.Result, error) {
			<-ctx.Done()
			return task.Result{}, ctx.Err()
		})
	}
	h.shutdown()
	var mu sync.Mutex // guards order
	var order []string
	h.start(func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		mu.Lock()
		order = append(order, task.PlainText(c.Parts))
		mu.Unlock()
		return task.Done("ok"), nil
	})
	for i, k := range all {
		got := h.answers(k.ConversationID, 1)[0]
		if want := task.Completed; i >= 16 && got.TaskState != want {
			t.Errorf("task %d: %s, %s", i, got.TaskState, got.Reason)
		}
	}
	if got := h.queue.Snapshot(); got.Waiting != 0 {
		t.Errorf("%+v", got)
	}
}

// A driver that does not return after a cancel keeps counting for its account and agent, and not for the
// portal.
func TestFair_AHangingDriverKeepsItsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		release := make(chan struct{})
		begun := make(chan struct{}, 8)
		h.start(func(ctx context.Context, c task.Call, _ task.Sink) (task.Result, error) {
			begun <- struct{}{}
			<-release // whatever its context says
			return task.Done("late"), nil
		})
		k := h.sayAs(h.ada, h.roomOf(h.ada), "hang")
		<-begun
		if _, err := h.tasks.Cancel(t.Context(), h.ada, k.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := h.queue.Snapshot(); got.Running != 0 || len(got.Accounts) != 1 || got.Accounts[0].Running != 1 {
			t.Errorf("while the driver hangs: %+v", got)
		}
		close(release)
		synctest.Wait()
		if got := h.queue.Snapshot(); len(got.Accounts) != 0 {
			t.Errorf("after it returned: %+v", got)
		}
	})
}

// A canceled task that waits leaves the queue at once.
func TestFair_CancelFreesWhatWaits(t *testing.T) {
	h := build(t)
	begun := make(chan string, 8)
	h.start(func(ctx context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		begun <- task.PlainText(c.Parts)
		<-ctx.Done()
		return task.Result{}, ctx.Err()
	})
	room := h.roomOf(h.ada)
	h.sayAs(h.ada, room, "first")
	<-begun
	second := h.sayAs(h.ada, room, "second")
	if _, err := h.tasks.Cancel(t.Context(), h.ada, second.ID); err != nil {
		t.Fatal(err)
	}
	h.answers(room, 1)
	h.sayAs(h.ada, h.roomOf(h.ada), "elsewhere")
	<-begun // so the queue was read after the second task
	if got := h.queue.Snapshot(); got.Waiting != 0 || got.Running != 2 {
		t.Errorf("%+v", got)
	}
}

// A task whose question is answered while its run returns runs again.
func TestFair_AnAnswerAtOnceIsNotLost(t *testing.T) {
	h := build(t)
	h.start(func(ctx context.Context, c task.Call, s task.Sink) (task.Result, error) {
		if c.Checkpoint == nil {
			return task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart("Which?")}}, s.Checkpoint(ctx, json.RawMessage(`{}`))
		}
		return task.Done("ok"), nil
	})
	// The answer is posted before the runtime has removed the first run.
	var once sync.Once
	room := h.room()
	h.finished = func(k task.Task) {
		once.Do(func() { h.say(room, "that one") })
	}
	h.say(room, "do it")
	if got := h.answers(room, 2); got[1].TaskState != task.Completed {
		t.Errorf("%+v", got[1])
	}
}

// One account cannot take all places of instant answers, nor those of tries.
func TestFair_InstantAnswersAndTriesTakePlaces(t *testing.T) {
	h := build(t)
	calc := storetest.Agent(t, h.db, "calc", storetest.Account(t, h.db, "carl"))
	if _, _, err := h.hub.Open(t.Context(), calc.ID); err != nil { // cached from here on
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := agentFunc(func(context.Context, task.Call, task.Sink) (task.Result, error) {
			<-release
			return task.Done("late"), nil
		})
		queue := agentruntime.NewQueue(limits)
		drivers := map[hub.Kind]task.Agent{calc.Kind: stuck}
		i := agentruntime.NewInstant(queue, h.hub, h, drivers, slog.New(slog.DiscardHandler))
		ask := func(account string) {
			i.AnswerNow(t.Context(), task.Task{ID: ident.NewID(), AgentID: calc.ID, CallerKind: "person", CallerID: account}, chat.Message{ID: ident.NewID()})
		}
		for range 40 {
			ask("ada")
		}
		held := func(account string) int {
			for _, a := range queue.Snapshot().Accounts {
				if a.Account == account {
					return a.Running
				}
			}
			return 0
		}
		if n := held("ada"); n != 16 {
			t.Errorf("one account holds %d places of the agent", n)
		}
		ask("bob")
		if held("bob") != 1 {
			t.Error("no place is left for another account")
		}
		trier := agentruntime.NewTrier(queue, drivers)
		_, err := trier.Try(t.Context(), ident.Actor{Kind: ident.Person, ID: "ada"}, calc, "", "hello")
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.RateLimited || f.RetryAfter < time.Second {
			t.Errorf("a try beyond the bound: %v", err)
		}
		close(release)
		synctest.Wait()
		if got := queue.Snapshot(); got.Running != 0 || len(got.Accounts) != 0 {
			t.Errorf("places are not given back: %+v", got)
		}
		if _, err := trier.Try(t.Context(), ident.Actor{Kind: ident.Person, ID: "ada"}, calc, "", "hello"); err != nil {
			t.Error(err)
		}
	})
}

func TestCallerJob_GroupsGuestsAndPortals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		actor ident.Actor
		want  scheduler.Job
	}{
		{ident.Actor{Kind: ident.Person, ID: "p1", Addr: "192.0.2.7"}, scheduler.Job{Class: scheduler.Accounts, Account: "p1"}},
		{ident.Actor{Kind: ident.Guest, ID: "g1", Addr: "192.0.2.7"}, scheduler.Job{Class: scheduler.Guests, Account: "192.0.2.0/24"}},
		{ident.Actor{Kind: ident.Guest, ID: "g2", Addr: "2001:db8:1:2::"}, scheduler.Job{Class: scheduler.Guests, Account: "2001:db8:1:2::/64"}},
		{ident.Actor{Kind: ident.Guest, ID: "g4", Addr: "2001:db8:1:2::/64"}, scheduler.Job{Class: scheduler.Guests, Account: "2001:db8:1:2::/64"}},
		{ident.Actor{Kind: ident.Guest, ID: "g3"}, scheduler.Job{Class: scheduler.Guests, Account: "g3"}},
		{ident.Actor{Kind: ident.Portal, ID: "far.example/ann"}, scheduler.Job{Class: scheduler.Portals, Account: "far.example"}},
	} {
		if got := agentruntime.CallerJob(string(c.actor.Kind), c.actor.ID, c.actor.AddrGroup()); got != c.want {
			t.Errorf("%+v: %+v", c.actor, got)
		}
	}
}

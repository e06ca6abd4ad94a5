package agentruntime_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"agentsite/agentruntime"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func TestInstant_AnswersOrLeavesItToTheQueue(t *testing.T) {
	t.Parallel()
	h := build(t)
	calc := storetest.Agent(t, h.db, "calc", account.Account{})
	for name, c := range map[string]struct {
		run  agentFunc
		want bool
		text string
	}{
		"an answer": {func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) {
			return task.Done(c.Agent.Name + ": " + task.PlainText(c.Parts)), nil
		}, true, "calc: 2+2"},
		"an error": {func(context.Context, task.Call, task.Sink) (task.Result, error) {
			return task.Result{}, errors.New("no")
		}, true, ""},
		"a panic":   {func(context.Context, task.Call, task.Sink) (task.Result, error) { panic("no") }, true, ""},
		"no result": {func(context.Context, task.Call, task.Sink) (task.Result, error) { return task.Result{}, nil }, true, ""},
	} {
		i := agentruntime.NewInstant(h.queue, h.hub, h, map[hub.Kind]task.Agent{hub.Builtin: c.run}, slog.New(slog.DiscardHandler))
		r, ok := i.AnswerNow(t.Context(), task.Task{ID: ident.NewID(), AgentID: calc.ID, Attempt: 1}, chat.Message{ID: ident.NewID(), Parts: []task.Part{task.TextPart("2+2")}})
		if ok != c.want || task.PlainText(r.Parts) != c.text || (c.text == "") != (r.State == task.Failed) {
			t.Errorf("%s: %+v, %v", name, r, ok)
		}
	}
}

// What the worker hands on, an answer at once must not lack: the conformance
// agent, for one, does what the id of a message says.
func TestInstant_KnowsTheMessageAsTheWorkerDoes(t *testing.T) {
	t.Parallel()
	h := build(t)
	calc := storetest.Agent(t, h.db, "calc", account.Account{})
	driver := agentFunc(func(ctx context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		id, err := c.ClientID.ReadClientID(ctx)
		return task.Done(id + " " + c.Via.String()), err
	})
	i := agentruntime.NewInstant(h.queue, h.hub, h, map[hub.Kind]task.Agent{hub.Builtin: driver}, slog.New(slog.DiscardHandler))
	r, ok := i.AnswerNow(t.Context(), task.Task{ID: ident.NewID(), AgentID: calc.ID, Attempt: 1, Via: task.Chain{"far.example/x"}},
		chat.Message{ID: ident.NewID(), ClientID: "tck-input-required-1", Parts: []task.Part{task.TextPart("hello")}})
	if got := task.PlainText(r.Parts); !ok || got != "tck-input-required-1 far.example/x" {
		t.Errorf("%q, %v", got, ok)
	}
}

// What is more than an answer in text is the worker's: it would be lost.
func TestInstant_LeavesWhatHasMoreToTheQueue(t *testing.T) {
	t.Parallel()
	h := build(t)
	calc := storetest.Agent(t, h.db, "calc", account.Account{})
	for name, more := range map[string]func(context.Context, task.Sink) error{
		"an artifact": func(_ context.Context, s task.Sink) error {
			s.Artifact(task.Artifact{ID: "a", Parts: []task.Part{task.TextPart("a table")}})
			return nil
		},
		"a checkpoint": func(ctx context.Context, s task.Sink) error { return s.Checkpoint(ctx, []byte(`{"at":1}`)) },
	} {
		driver := agentFunc(func(ctx context.Context, _ task.Call, s task.Sink) (task.Result, error) {
			return task.Done("4"), more(ctx, s)
		})
		i := agentruntime.NewInstant(h.queue, h.hub, h, map[hub.Kind]task.Agent{hub.Builtin: driver}, slog.New(slog.DiscardHandler))
		if r, ok := i.AnswerNow(t.Context(), task.Task{ID: ident.NewID(), AgentID: calc.ID, Attempt: 1}, chat.Message{ID: ident.NewID()}); ok {
			t.Errorf("%s is lost: %+v", name, r)
		}
	}
}

func TestInstant_DoesNotWaitForWhatTakesLong(t *testing.T) {
	t.Parallel()
	h := build(t)
	calc := storetest.Agent(t, h.db, "calc", account.Account{})
	if _, _, err := h.hub.Open(t.Context(), calc.ID); err != nil { // remembered from here on
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		stuck := agentFunc(func(context.Context, task.Call, task.Sink) (task.Result, error) {
			<-let // whatever its context says
			return task.Done("late"), nil
		})
		i := agentruntime.NewInstant(h.queue, h.hub, h, map[hub.Kind]task.Agent{hub.Builtin: stuck}, slog.New(slog.DiscardHandler))
		ask := func() bool {
			_, ok := i.AnswerNow(t.Context(), task.Task{ID: ident.NewID(), AgentID: calc.ID, Attempt: 1}, chat.Message{ID: ident.NewID()})
			return ok
		}
		for range 40 { // more than there are slots: the last are refused at once
			if ask() {
				t.Fatal("an answer from a driver that says nothing")
			}
		}
		close(let)
		synctest.Wait()
		if !ask() {
			t.Error("slots were not given back")
		}
	})
}

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
	"agentsite/store/storetest"
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
		i := agentruntime.NewInstant(h.hub, map[hub.Kind]task.Agent{hub.Builtin: c.run}, slog.New(slog.DiscardHandler))
		r, ok := i.AnswerNow(t.Context(), task.Task{ID: ident.NewID(), AgentID: calc.ID, Attempt: 1}, chat.Message{ID: ident.NewID(), Parts: []task.Part{task.TextPart("2+2")}})
		if ok != c.want || task.PlainText(r.Parts) != c.text || (c.text == "") != (r.State == task.Failed) {
			t.Errorf("%s: %+v, %v", name, r, ok)
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
		i := agentruntime.NewInstant(h.hub, map[hub.Kind]task.Agent{hub.Builtin: stuck}, slog.New(slog.DiscardHandler))
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

package notify_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// over is a service over a real database.
func over(t *testing.T, db *storetest.DB, w *wire) *notify.Service {
	t.Helper()
	keys, err := ident.LoadKeys(storetest.Dir(db))
	if err != nil {
		t.Fatal(err)
	}
	return notify.New(notify.Ports{Store: db, Chat: reader{db}, Accounts: db, Sealer: keys, Transport: w, Wake: db.Hooked(),
		Push: func(_ context.Context, _ ident.Actor, k task.Task, _ string) ([]any, error) {
			return []any{map[string]any{"state": k.State, "seq": k.AnswerSeq}}, nil
		}}, notify.Config{Addresses: anyAddress{}, Log: slog.New(slog.DiscardHandler)})
}

// reader lets everybody read everything.
type reader struct{ *storetest.DB }

func (r reader) Task(ctx context.Context, _ ident.Actor, id string) (task.Task, error) {
	return r.TaskByID(ctx, id)
}

func (r reader) OwnTask(ctx context.Context, a ident.Actor, id string) (task.Task, error) {
	return r.Task(ctx, a, id)
}

func (r reader) Message(ctx context.Context, _ ident.Actor, id string, seq int64) (chat.Message, error) {
	return r.DB.Message(ctx, id, seq)
}

// A portal that is killed between a change and what is told of it tells it
// after its next start; one that is killed after it was told, but before that
// was noted, tells it again under the same id.
func TestRun_TellsAfterACrash(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper := storetest.Agent(t, db, "helper", ada)
	room := storetest.Conversation(t, db, ada, helper)
	k := storetest.Say(t, db, room, ada, "help", helper).Tasks[0]
	actor := ident.Actor{Kind: ident.Person, ID: ada.ID, Name: "ada"}
	address, types := "https://web.example/hook", []notify.Type{notify.TaskEnded}
	s := over(t, db, new(wire))
	if _, _, err := s.AddWebhook(t.Context(), actor, notify.Draft{URL: &address, Events: &types}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetPush(t.Context(), actor, notify.PushDraft{TaskID: k.ID, Version: "1.0", URL: "https://push.example/hook", Token: "tok"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Begin(t.Context(), k.ID, 1); err != nil {
		t.Fatal(err)
	}
	end := storetest.Finish(t, db, k, task.Completed, "Done.")
	if err := db.Close(); err != nil { // nobody was told
		t.Fatal(err)
	}

	db = storetest.Open(t, storetest.Dir(db))
	first := new(wire)
	stuck, cancel := context.WithCancel(t.Context())
	defer cancel()
	first.answer = func(context.Context, got) (int, http.Header, error) {
		cancel() // the process dies before it notes anything
		return 200, nil, nil
	}
	if err := over(t, db, first).Run(stuck); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	db = storetest.Open(t, storetest.Dir(db))
	again, done := new(wire), make(chan struct{}, 10)
	again.answer = func(context.Context, got) (int, http.Header, error) {
		done <- struct{}{}
		return 200, nil, nil
	}
	stop := run(t, over(t, db, again))
	for range 3 {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("not told after the restart")
		}
	}
	stop()
	told := map[string][]string{}
	for _, g := range again.all() {
		told[g.URL.Host] = append(told[g.URL.Host], g.body)
	}
	if p := told["push.example"]; len(p) != 2 || !strings.Contains(p[0], `"working"`) || !strings.Contains(p[1], `"completed"`) {
		t.Errorf("%q", p)
	}
	if p := told["web.example"]; len(p) != 1 || !strings.Contains(p[0], `"task.ended"`) || !strings.Contains(p[0], "Done.") || end.Seq == 0 {
		t.Errorf("%q", p)
	}
	for _, g := range first.all() {
		same := false
		for _, a := range again.all() {
			same = same || a.Header.Get("Webhook-Id") == g.Header.Get("Webhook-Id") && a.body == g.body
		}
		if !same {
			t.Errorf("told before the crash and not the same after: %s", g.body)
		}
	}
	if len(first.all()) == 0 {
		t.Error("nothing was told at first")
	}
}

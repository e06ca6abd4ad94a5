package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func webhook(t *testing.T, db *storetest.DB, who account.Account, types ...notify.Type) notify.Hook {
	t.Helper()
	now := clock.Now()
	h := notify.Hook{ID: ident.NewID(), Kind: notify.Webhook, OwnerKind: "person", OwnerID: who.ID, URL: "https://example.org/hook", Host: "example.org", Events: types,
		State: notify.Active, Sealed: []byte("sealed"), CreatedAt: now, UpdatedAt: now}
	if err := db.AddWebhook(t.Context(), h, 3); err != nil {
		t.Fatal(err)
	}
	return h
}

func push(t *testing.T, db *storetest.DB, k task.Task, name string) notify.Hook {
	t.Helper()
	now := clock.Now()
	h, err := db.PutPush(t.Context(), notify.Hook{ID: ident.NewID(), Kind: notify.Push, OwnerKind: k.CallerKind, OwnerID: k.CallerID, TaskID: k.ID, Name: name, Version: "1.0",
		URL: "https://example.org/push", Host: "example.org", State: notify.Active, Sealed: []byte("sealed"), CreatedAt: now, UpdatedAt: now}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// waiting takes out what waits for a hook, as "type state".
func waiting(t *testing.T, db *storetest.DB, h notify.Hook) (out []string) {
	t.Helper()
	for {
		_, e, err := db.NextEvent(t.Context(), h.ID)
		if fault.Is(err, fault.NotFound) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		s := string(e.Type)
		if e.Facts.State != "" {
			s += " " + string(e.Facts.State)
		}
		if e.Facts.Live != "" {
			s += " " + e.Facts.Was + ">" + e.Facts.Live
		}
		out = append(out, s)
		if e.ID == "" || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
		if err := db.Settle(t.Context(), notify.Outcome{HookID: h.ID, Seq: e.Seq, Gone: true, Attempt: &notify.Attempt{EventID: e.ID, Type: e.Type, At: e.At, Status: 200}}); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestHooks_AreToldInTheTransactionOfTheChange(t *testing.T) {
	t.Parallel()
	db, ada, helper, c, k := asked(t)
	bob := storetest.Account(t, db, "bob")
	adas, bobs := webhook(t, db, ada, notify.Types...), webhook(t, db, bob, notify.MessageSaid)
	select {
	case <-db.Hooked():
		t.Fatal("told of nothing")
	default:
	}
	if _, err := db.Join(t.Context(), c.ID, chat.Member{Kind: "person", ID: bob.ID, Handle: "bob", Role: chat.RoleMember}, "", chat.Message{ID: ident.NewID(), Kind: chat.Event, Sender: chat.Sender{Kind: "person", ID: bob.ID}, CreatedAt: clock.Now()}); err != nil {
		t.Fatal(err)
	}
	p := push(t, db, k, "mine")
	same(t, "a task that was only submitted", waiting(t, db, p))

	claim(t, db, 1)
	select {
	case <-db.Hooked():
	default:
		t.Error("nobody is woken")
	}
	same(t, "claimed", waiting(t, db, p), "task.state working")
	claim(t, db, 2) // by the same process: nothing is there
	claim(t, db, 3)
	same(t, "claimed again after a crash", waiting(t, db, p))
	storetest.Finish(t, db, k, task.InputRequired, "Which?")
	same(t, "asks", waiting(t, db, p), "task.state input_required")
	same(t, "asks its caller", waiting(t, db, adas), "message.said", "task.input_required input_required")
	same(t, "asks before others", waiting(t, db, bobs), "message.said")
	storetest.Say(t, db, c, ada, "This one.", helper)
	same(t, "own words", waiting(t, db, adas))
	same(t, "others' words", waiting(t, db, bobs), "message.said")
	claim(t, db, 3)
	storetest.Finish(t, db, k, task.Completed, "Done.")
	same(t, "goes on and ends", waiting(t, db, p), "task.state working", "task.state completed")
	same(t, "ends", waiting(t, db, adas), "message.said", "task.ended completed")

	late := push(t, db, k, "late")
	same(t, "one that comes late", waiting(t, db, late), "task.state completed")

	live := hub.Liveness{State: hub.Alive, CheckedAt: clock.Now()}
	for range 2 {
		if err := db.SetLiveness(t.Context(), helper.ID, live, clock.Now(), 0); err != nil {
			t.Fatal(err)
		}
	}
	helper.Version++
	if err := db.UpdateAgent(t.Context(), helper, 1, nil, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	mine := storetest.Agent(t, db, "mine", ada)
	storetest.Agent(t, db, "bobs", bob)
	if err := db.AddReport(t.Context(), hub.Report{ID: ident.NewID(), AgentID: mine.ID, AgentName: "mine", Reason: "spam", CreatedAt: clock.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteAgent(t.Context(), mine.ID); err != nil {
		t.Fatal(err)
	}
	same(t, "agents", waiting(t, db, adas), "agent.liveness unknown>alive", "agent.changed", "agent.registered", "agent.removed")
	storetest.Sound(t, db)
}

func TestHooks_ThatNobodyHasWakeNobody(t *testing.T) {
	t.Parallel()
	db, _, _, _, k := asked(t)
	claim(t, db, 1)
	storetest.Finish(t, db, k, task.Completed, "Done.")
	select {
	case <-db.Hooked():
		t.Error("somebody was woken")
	default:
	}
}

// What was committed and not sent is there after the process is gone, in
// order, and is told to a worker of the next one.
func TestHooks_SurviveARestart(t *testing.T) {
	t.Parallel()
	db, ada, _, c, k := asked(t)
	p, w := push(t, db, k, "a"), webhook(t, db, ada, notify.TaskEnded)
	claim(t, db, 1)
	storetest.Finish(t, db, k, task.Failed, "No.")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = storetest.Open(t, storetest.Dir(db))
	due, later, err := db.DueHooks(t.Context(), clock.Now(), notify.Busy{}, 10)
	if err != nil || len(due) != 2 || !later.IsZero() {
		t.Fatalf("%+v %v %v", due, later, err)
	}
	if due, _, _ = db.DueHooks(t.Context(), clock.Now(), notify.Busy{IDs: []string{p.ID}}, 10); len(due) != 1 || due[0].ID != w.ID {
		t.Errorf("%+v", due)
	}
	if due, _, _ = db.DueHooks(t.Context(), clock.Now(), notify.Busy{Hosts: []string{"example.org"}}, 10); len(due) != 0 {
		t.Errorf("%+v", due)
	}
	same(t, "push", waiting(t, db, p), "task.state working", "task.state failed")
	same(t, "webhook", waiting(t, db, w), "task.ended failed")
	// With the conversation all of it goes.
	push(t, db, k, "b")
	if err := db.DeleteRoom(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := db.Pushes(t.Context(), k.ID); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
	if _, _, err := db.NextEvent(t.Context(), p.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := db.Settle(t.Context(), notify.Outcome{HookID: p.ID, Seq: 1, Gone: true, Attempt: &notify.Attempt{}}); err != nil {
		t.Errorf("an attempt that ends after its hook: %v", err)
	}
	storetest.Sound(t, db)
}

func TestHooks_AreBounded(t *testing.T) {
	t.Parallel()
	db, ada, _, c, k := asked(t)
	bob := storetest.Account(t, db, "bob")
	for range 3 {
		webhook(t, db, bob, notify.MessageSaid)
	}
	now := clock.Now()
	h := notify.Hook{ID: ident.NewID(), Kind: notify.Webhook, OwnerID: bob.ID, URL: "https://x.example", Host: "x.example", Sealed: []byte("x"), CreatedAt: now, UpdatedAt: now}
	if err := db.AddWebhook(t.Context(), h, 3); !fault.Is(err, fault.Conflict) {
		t.Errorf("a fourth: %v", err)
	}
	for _, name := range []string{"a", "b", "c"} {
		push(t, db, k, name)
	}
	h.Kind, h.TaskID, h.Name = notify.Push, k.ID, "d"
	if _, err := db.PutPush(t.Context(), h, 3); !fault.Is(err, fault.Conflict) {
		t.Errorf("a fourth: %v", err)
	}
	first, again := push(t, db, k, "a"), push(t, db, k, "a")
	if first.ID != again.ID {
		t.Error("one of the same name is another")
	}
	h.TaskID = ident.NewID()
	if _, err := db.PutPush(t.Context(), h, 3); !fault.Is(err, fault.NotFound) {
		t.Errorf("a task that is not there: %v", err)
	}

	// What is too much is counted, not kept.
	w := webhook(t, db, ada, notify.MessageSaid)
	const over = 5
	for i := range notify.MaxWaiting + over {
		m := chat.Message{ConversationID: c.ID, ID: ident.NewID(), Sender: chat.Sender{Kind: "agent", ID: "x", Handle: "x"}, Kind: chat.Text, Parts: []task.Part{task.TextPart(fmt.Sprint(i))}, CreatedAt: now}
		if _, err := db.Append(t.Context(), chat.Post{Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	have, err := db.Webhook(t.Context(), ada.ID, w.ID)
	if err != nil || have.Waiting != notify.MaxWaiting || have.Missed != over {
		t.Errorf("%+v %v", have, err)
	}
	// A paused one forgets, is told nothing, and begins anew.
	have.State = notify.Paused
	if err := db.SetWebhook(t.Context(), have); err != nil {
		t.Fatal(err)
	}
	storetest.Say(t, db, c, bob0(t, db, c), "Hello?")
	have.State = notify.Active
	if err := db.SetWebhook(t.Context(), have); err != nil {
		t.Fatal(err)
	}
	if have, err = db.Webhook(t.Context(), ada.ID, w.ID); err != nil || have.Waiting != 0 || have.Missed != 0 {
		t.Errorf("%+v %v", have, err)
	}
	if _, err := db.Webhook(t.Context(), bob.ID, w.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if err := db.DropWebhook(t.Context(), bob.ID, w.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("somebody else's: %v", err)
	}
}

// bob0 is another person of the conversation.
func bob0(t *testing.T, db *storetest.DB, c chat.Conversation) account.Account {
	t.Helper()
	a := storetest.Account(t, db, "carl")
	if _, err := db.Join(t.Context(), c.ID, chat.Member{Kind: "person", ID: a.ID, Handle: "carl", Role: chat.RoleMember}, "", chat.Message{ID: ident.NewID(), Kind: chat.Event, Sender: chat.Sender{Kind: "person", ID: a.ID}, CreatedAt: clock.Now()}); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestHooks_EndWithANotice(t *testing.T) {
	t.Parallel()
	db, ada, _, c, k := asked(t)
	w := webhook(t, db, ada, notify.TaskEnded, notify.MessageSaid)
	claim(t, db, 1)
	storetest.Finish(t, db, k, task.Completed, "Done.")
	at := clock.Now()
	a := notify.Attempt{EventID: "evt_x", Type: notify.TaskEnded, At: at, Status: 500, Error: "it answered with status 500"}
	_, e, err := db.NextEvent(t.Context(), w.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Settle(t.Context(), notify.Outcome{HookID: w.ID, Seq: e.Seq, Attempt: &a, Failures: 1, FailingSince: at, NextAt: at.Add(time.Hour), Reason: a.Error}); err != nil {
		t.Fatal(err)
	}
	due, later, err := db.DueHooks(t.Context(), at, notify.Busy{}, 10)
	if err != nil || len(due) != 0 || later.Sub(at).Round(time.Second) != time.Hour {
		t.Errorf("%+v %v %v", due, later, err)
	}
	for well, want := range map[bool]int{false: 1, true: 0} {
		if due, _, err := db.DueHooks(t.Context(), at.Add(2*time.Hour), notify.Busy{Trying: well}, 10); err != nil || len(due) != want {
			t.Errorf("%v: %+v %v", well, due, err)
		}
	}
	if have, _ := db.Webhook(t.Context(), ada.ID, w.ID); have.Waiting != 2 || have.Failures != 1 || have.Reason != a.Error || have.State != notify.Active {
		t.Errorf("%+v", have)
	}
	if err := db.Settle(t.Context(), notify.Outcome{HookID: w.ID, Seq: e.Seq, Attempt: &a, Failures: 2, FailingSince: at, Reason: "gone", Failed: true,
		Notice: hub.Notice{Kind: hub.NoticeWebhook, Subject: "example.org", Text: "Stopped.", Href: "/account/webhooks", CreatedAt: at}}); err != nil {
		t.Fatal(err)
	}
	have, _ := db.Webhook(t.Context(), ada.ID, w.ID)
	if have.State != notify.Failed || have.Waiting != 0 || have.Reason != "gone" {
		t.Errorf("%+v", have)
	}
	if list, err := db.Notices(t.Context(), ada.ID, 10); err != nil || len(list) != 1 || list[0].Text != "Stopped." {
		t.Errorf("%+v %v", list, err)
	}
	storetest.Say(t, db, c, bob0(t, db, c), "Hello?")
	same(t, "a failed one", waiting(t, db, w))
	for range notify.MaxAttempts + 3 {
		if err := db.AddAttempt(t.Context(), w.ID, a); err != nil {
			t.Fatal(err)
		}
	}
	list, err := db.Attempts(t.Context(), w.ID, 1000)
	if err != nil || len(list) != notify.MaxAttempts || list[0].Error != a.Error || list[0].Status != 500 {
		t.Errorf("%d %v", len(list), err)
	}
	if err := db.DropWebhook(context.Background(), ada.ID, w.ID); err != nil {
		t.Error(err)
	}
	if list, _ := db.Attempts(t.Context(), w.ID, 10); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// Who was told last has its turn after whoever waits.
func TestHooks_TakeTurns(t *testing.T) {
	t.Parallel()
	db, ada, _, c, _ := asked(t)
	var hooks []notify.Hook
	for range 3 {
		hooks = append(hooks, webhook(t, db, ada, notify.MessageSaid))
	}
	carl := bob0(t, db, c)
	for range 2 {
		storetest.Say(t, db, c, carl, "Hello")
	}
	next := func(busy notify.Busy) string {
		due, _, err := db.DueHooks(t.Context(), clock.Now().Add(time.Minute), busy, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(due) == 0 {
			return ""
		}
		return due[0].ID
	}
	first := next(notify.Busy{})
	h, e, err := db.NextEvent(t.Context(), first)
	if err != nil || h.NextAt.IsZero() {
		t.Fatalf("%+v %v", h, err)
	}
	if err := db.Settle(t.Context(), notify.Outcome{HookID: first, Seq: e.Seq, Gone: true, NextAt: h.NextAt.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	if got := next(notify.Busy{}); got == first {
		t.Error("the one that was told before others")
	}
	rest := []string{hooks[0].ID, hooks[1].ID, hooks[2].ID}
	rest = slices.DeleteFunc(rest, func(id string) bool { return id == first })
	if got := next(notify.Busy{IDs: rest}); got != first {
		t.Errorf("%q has something left, got %q", first, got)
	}
	if got := next(notify.Busy{Owners: []string{ada.ID}}); got != "" {
		t.Errorf("of an owner who has enough: %q", got)
	}
}

func TestHooks_BeginPausedAndMove(t *testing.T) {
	t.Parallel()
	db, ada, _, c, _ := asked(t)
	now := clock.Now()
	w := notify.Hook{ID: ident.NewID(), Kind: notify.Webhook, OwnerKind: "person", OwnerID: ada.ID, URL: "https://old.example", Host: "old.example", Events: []notify.Type{notify.MessageSaid},
		State: notify.Paused, Sealed: []byte("sealed"), CreatedAt: now, UpdatedAt: now}
	if err := db.AddWebhook(t.Context(), w, 3); err != nil {
		t.Fatal(err)
	}
	carl := bob0(t, db, c)
	storetest.Say(t, db, c, carl, "Hello")
	have, err := db.Webhook(t.Context(), ada.ID, w.ID)
	if err != nil || have.State != notify.Paused || have.Waiting != 0 {
		t.Errorf("%+v %v", have, err)
	}
	have.State = notify.Active
	if err := db.SetWebhook(t.Context(), have); err != nil {
		t.Fatal(err)
	}
	storetest.Say(t, db, c, carl, "Hello again")
	_, e, err := db.NextEvent(t.Context(), w.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Settle(t.Context(), notify.Outcome{HookID: w.ID, Seq: e.Seq, Failures: 4, FailingSince: now, NextAt: now.Add(time.Hour), Reason: "no such name"}); err != nil {
		t.Fatal(err)
	}
	// At another address it is tried at once; another label changes nothing.
	have.Label = "mine"
	for _, url := range []string{"https://old.example", "https://new.example"} {
		have.URL = url
		if err := db.SetWebhook(t.Context(), have); err != nil {
			t.Fatal(err)
		}
		due, _, err := db.DueHooks(t.Context(), clock.Now(), notify.Busy{}, 1)
		if moved := url != "https://old.example"; err != nil || (len(due) == 1) != moved {
			t.Errorf("%s: %+v %v", url, due, err)
		}
	}
}

// A config that is made again, as somebody does whose address was wrong, is
// tried at once, and told where the task stands if nothing waits any more.
func TestPutPush_AgainBeginsAnew(t *testing.T) {
	t.Parallel()
	db, _, _, _, k := asked(t)
	p := push(t, db, k, "mine")
	claim(t, db, 1)
	settle := func(o notify.Outcome) {
		t.Helper()
		_, e, err := db.NextEvent(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		o.HookID, o.Seq, o.FailingSince, o.Failures, o.NextAt = p.ID, e.Seq, clock.Now(), 3, clock.Now().Add(time.Hour)
		if err := db.Settle(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	woken := func(what string) {
		t.Helper()
		select {
		case <-db.Hooked():
		default:
			t.Errorf("%s: nobody is woken", what)
		}
		if due, _, err := db.DueHooks(t.Context(), clock.Now(), notify.Busy{}, 1); err != nil || len(due) != 1 || due[0].Failures != 0 {
			t.Errorf("%s: %+v %v", what, due, err)
		}
	}
	settle(notify.Outcome{})
	<-db.Hooked()
	push(t, db, k, "mine")
	woken("one that failed")
	settle(notify.Outcome{Failed: true})
	storetest.Finish(t, db, k, task.Completed, "Done.")
	same(t, "one that was given up", waiting(t, db, p))
	select {
	case <-db.Hooked():
	default:
	}
	push(t, db, k, "mine")
	woken("one that was given up")
	same(t, "made again", waiting(t, db, p), "task.state completed")
	push(t, db, k, "mine")
	same(t, "made once more", waiting(t, db, p))
}

// An attempt at the address that was says nothing of the one that is.
func TestSettle_OfWhatWasChangedSince(t *testing.T) {
	t.Parallel()
	db, _, _, _, k := asked(t)
	p := push(t, db, k, "mine")
	claim(t, db, 1)
	h, e, err := db.NextEvent(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	o := notify.Outcome{HookID: h.ID, Seq: e.Seq, Of: h.UpdatedAt.Add(-time.Second), Failures: 9, FailingSince: clock.Now(), NextAt: clock.Now().Add(time.Hour), Failed: true}
	for _, want := range []int{1, 0} {
		if err := db.Settle(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if due, _, err := db.DueHooks(t.Context(), clock.Now(), notify.Busy{}, 1); err != nil || len(due) != want {
			t.Errorf("%+v %v", due, err)
		}
		o.Of = h.UpdatedAt
	}
}

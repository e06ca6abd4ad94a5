package task_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// hands is a runner and an ender in one: what runs is stopped by stop, what
// waits is ended in the store, as the worker and the chat do.
type hands struct {
	db *storetest.DB

	mu      sync.Mutex // guards the rest
	running map[string]func()
	ended   []task.Result
	refuse  map[string]error
}

func (h *hands) Wake() {}

func (*hands) AwaitStop(context.Context, string) error { return nil }

func (h *hands) Stop(id string) bool {
	h.mu.Lock()
	stop := h.running[id]
	delete(h.running, id)
	h.mu.Unlock()
	if stop == nil {
		return false
	}
	stop()
	return true
}

func (h *hands) Ended(task.Task) {}

func (h *hands) WaitOf(string) (task.Wait, bool) { return task.Wait{}, false }

func (h *hands) EndTask(ctx context.Context, k task.Task, r task.Result) error {
	h.mu.Lock()
	h.ended = append(h.ended, r)
	err := h.refuse[k.ID]
	h.mu.Unlock()
	if err != nil {
		return err
	}
	k, m := storetest.Answer(k, r.State, "")
	k.Reason, m.Reason = r.Reason, r.Reason
	_, err = h.db.Finish(ctx, chat.Ended{Task: k, Message: m})
	return err
}

type world struct {
	*task.Service
	t        *testing.T
	db       *storetest.DB
	hands    *hands
	ada, bob account.Account
	agent    hub.Agent
	room     chat.Conversation
}

func open(t *testing.T) *world {
	db := storetest.New(t)
	h := &hands{db: db, running: make(map[string]func()), refuse: make(map[string]error)}
	w := &world{Service: task.NewService(db, h, h), t: t, db: db, hands: h, ada: storetest.Account(t, db, "ada"), bob: storetest.Account(t, db, "bob")}
	w.agent = storetest.Agent(t, db, "helper", w.bob)
	w.room = storetest.Conversation(t, db, w.ada, w.agent)
	return w
}

// ask has ada ask the agent for something.
func (w *world) ask() task.Task {
	w.t.Helper()
	return storetest.Say(w.t, w.db, w.room, w.ada, "please", w.agent).Tasks[0]
}

func person(a account.Account) ident.Actor {
	return ident.Actor{Kind: ident.Person, ID: a.ID, Name: a.Name}
}

func kind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func TestGet_OnlyTheCallerSees(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.ask()
	if got, err := w.Get(t.Context(), person(w.ada), k.ID); err != nil || got.ID != k.ID || got.State != task.Submitted {
		t.Fatal(got, err)
	}
	narrow := person(w.ada)
	narrow.Narrowed, narrow.Scopes = true, []ident.Scope{ident.Tasks}
	if _, err := w.Get(t.Context(), narrow, k.ID); err != nil {
		t.Error(err)
	}
	narrow.Scopes = []ident.Scope{ident.ChatRead, ident.ChatWrite}
	op := ident.Actor{Kind: ident.Operator, ID: ident.NewID(), Name: "boss"}
	absent := ident.NewID()
	said := make(map[string]bool)
	for _, c := range []struct {
		actor ident.Actor
		id    string
		want  fault.Kind
	}{
		{person(w.bob), k.ID, fault.NotFound}, {op, k.ID, fault.NotFound}, {ident.Actor{Kind: ident.Guest, ID: ident.NewID()}, k.ID, fault.NotFound},
		{person(w.ada), absent, fault.NotFound}, {person(w.ada), "' OR 1=1 --", fault.NotFound}, {person(w.ada), "", fault.NotFound},
		{ident.Actor{}, k.ID, fault.Unauthenticated}, {narrow, k.ID, fault.Forbidden},
	} {
		_, err := w.Get(t.Context(), c.actor, c.id)
		kind(t, "get", err, c.want)
		if c.want == fault.NotFound && c.id != "" {
			said[strings.ReplaceAll(err.Error(), c.id, "X")] = true
		}
		_, err = w.Cancel(t.Context(), c.actor, c.id)
		kind(t, "cancel", err, c.want)
	}
	if len(said) != 1 {
		t.Errorf("absent and foreign differ: %v", said)
	}
	if len(w.hands.ended) != 0 {
		t.Error("somebody else stopped it")
	}
}

func TestCancel_EndsAQueuedTaskAndWhatWaits(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.ask()
	got, err := w.Cancel(t.Context(), person(w.ada), k.ID)
	if err != nil || got.State != task.Canceled || got.Reason != "Stopped by ada." {
		t.Fatal(got, err)
	}
	got, err = w.Cancel(t.Context(), person(w.ada), k.ID)
	kind(t, "again", err, fault.Conflict)
	if got.State != task.Canceled {
		t.Error("the conflict does not show the task")
	}
	k = w.ask()
	storetest.Finish(t, w.db, k, task.InputRequired, "Which one?")
	if got, err = w.Cancel(t.Context(), person(w.ada), k.ID); err != nil || got.State != task.Canceled {
		t.Error(got, err)
	}
	for _, state := range []task.State{task.Completed, task.Failed, task.Rejected} {
		k = w.ask()
		storetest.Finish(t, w.db, k, state, "Done.")
		_, err = w.Cancel(t.Context(), person(w.ada), k.ID)
		kind(t, string(state), err, fault.Conflict)
	}
	storetest.Sound(t, w.db)
}

func TestCancel_StopsARunningTaskThroughItsRunner(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.ask()
	w.hands.running[k.ID] = func() { storetest.Finish(t, w.db, k, task.Canceled, "half an answer") }
	got, err := w.Cancel(t.Context(), person(w.ada), k.ID)
	if err != nil || got.State != task.Canceled || len(w.hands.ended) != 0 {
		t.Error(got, err, w.hands.ended)
	}
}

func TestCancel_LosesToAnAnswerInBetween(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.ask()
	w.hands.running[k.ID] = func() { storetest.Finish(t, w.db, k, task.Completed, "the answer") }
	if got, err := w.Cancel(t.Context(), person(w.ada), k.ID); err != nil || got.State != task.Completed {
		t.Error(got, err)
	}
	k = w.ask()
	w.hands.refuse[k.ID] = fault.New(fault.Conflict, "The task has ended.")
	storetest.Finish(t, w.db, k, task.Completed, "the answer")
	if n, err := w.StopConversation(t.Context(), person(w.ada), w.room.ID); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestList_OwnTasksByCursor(t *testing.T) {
	t.Parallel()
	w := open(t)
	var want []string
	for range 7 {
		want = append([]string{w.ask().ID}, want...)
	}
	other := storetest.Conversation(t, w.db, w.bob, w.agent)
	storetest.Say(t, w.db, other, w.bob, "mine", w.agent)
	var got []string
	cursor := ""
	for pages := 0; ; pages++ {
		list, next, err := w.List(t.Context(), person(w.ada), "", "", cursor, 3)
		if err != nil || pages > 3 {
			t.Fatal(err, pages)
		}
		for _, k := range list {
			got = append(got, k.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v\nwant %v", got, want)
	}
	if list, next, err := w.List(t.Context(), person(w.ada), "", "", "", 7); err != nil || len(list) != 7 || next != "" {
		t.Error("a page that holds all names a next one", len(list), next, err)
	}
	storetest.Finish(t, w.db, mustGet(w, want[2]), task.Completed, "done")
	if list, _, err := w.List(t.Context(), person(w.ada), w.room.ID, task.Completed, "", 0); err != nil || len(list) != 1 || list[0].ID != want[2] {
		t.Error(list, err)
	}
	for what, c := range map[string]struct {
		cursor string
		limit  int
	}{"limit": {"", 101}, "negative": {"", -1}, "cursor": {"~", 10}} {
		_, _, err := w.List(t.Context(), person(w.ada), "", "", c.cursor, c.limit)
		kind(t, what, err, fault.Invalid)
	}
	if list, _, err := w.List(t.Context(), person(w.ada), other.ID, "", "", 0); err != nil || len(list) != 0 {
		t.Error("a foreign conversation shows tasks", list, err)
	}
	_, _, err := w.List(t.Context(), ident.Actor{}, "", "", "", 0)
	kind(t, "nobody", err, fault.Unauthenticated)
}

func mustGet(w *world, id string) task.Task {
	w.t.Helper()
	k, err := w.db.TaskByID(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

func TestStopCaller_StopsAllTheirsAndNothingElse(t *testing.T) {
	t.Parallel()
	w := open(t)
	queued, running, stuck, last := w.ask(), w.ask(), w.ask(), w.ask()
	other := storetest.Conversation(t, w.db, w.bob, w.agent)
	bobs := storetest.Say(t, w.db, other, w.bob, "mine", w.agent).Tasks[0]
	w.hands.running[running.ID] = func() { storetest.Finish(t, w.db, running, task.Canceled, "") }
	w.hands.refuse[stuck.ID] = errors.New("the disk is full")
	n, err := w.StopCaller(t.Context(), w.ada.ID)
	if n != 3 || err == nil {
		t.Error(n, err)
	}
	for _, k := range []task.Task{queued, running, last} {
		if got := mustGet(w, k.ID); got.State != task.Canceled {
			t.Errorf("%s goes on", got.State)
		}
	}
	if got := mustGet(w, bobs.ID); got.State != task.Submitted {
		t.Error("somebody else's work was stopped")
	}
	if r := w.hands.ended[0].Reason; !strings.Contains(r, "disabled") {
		t.Error(r)
	}
	if n, err := w.StopCaller(t.Context(), ""); n != 0 || err != nil {
		t.Error("nobody's work:", n, err)
	}
}

// slow is a store whose task ends at a time.
type slow struct {
	task.Reads
	at    time.Time
	reads int
}

func (s *slow) TaskByID(context.Context, string) (task.Task, error) {
	s.reads++
	k := task.Task{CallerID: "ada", State: task.Working}
	if !time.Now().Before(s.at) {
		k.State = task.Canceled
	}
	return k, nil
}

type willing struct{}

func (willing) Wake()                                                 {}
func (willing) WaitOf(string) (task.Wait, bool)                       { return task.Wait{}, false }
func (willing) Ended(task.Task)                                       {}
func (willing) AwaitStop(context.Context, string) error               { return nil }
func (willing) Stop(string) bool                                      { return true }
func (willing) EndTask(context.Context, task.Task, task.Result) error { return errors.New("not here") }

func TestCancel_WaitsAMomentForARunningAgentToLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ada := ident.Actor{Kind: ident.Person, ID: "ada", Name: "ada"}
		start := time.Now()
		k, err := task.NewService(&slow{at: start.Add(490 * time.Millisecond)}, willing{}, willing{}).Cancel(t.Context(), ada, ident.NewID())
		if took := time.Since(start); err != nil || k.State != task.Canceled || took > 520*time.Millisecond {
			t.Errorf("%v after %v: %v", k.State, took, err)
		}
		start = time.Now()
		k, err = task.NewService(&slow{at: start.Add(time.Hour)}, willing{}, willing{}).Cancel(t.Context(), ada, ident.NewID())
		if took := time.Since(start); err != nil || k.State != task.Working || took != 2*time.Second {
			t.Errorf("%v after %v: %v", k.State, took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		if _, err := task.NewService(&slow{at: start.Add(time.Hour)}, willing{}, willing{}).Cancel(ctx, ada, ident.NewID()); err != nil || time.Since(start) != 100*time.Millisecond {
			t.Errorf("who left is waited for %v: %v", time.Since(start), err)
		}
	})
}

func TestPlainText_NamesWhatIsNoText(t *testing.T) {
	t.Parallel()
	got := task.PlainText([]task.Part{{Text: "a"}, {URL: "https://x"}, {Raw: []byte("x"), Filename: "f.bin"}, {Data: []byte(`{"n":1}`)}, {}})
	if want := "a\n\n[file https://x]\n\n[file f.bin]\n\n{\"n\":1}"; strings.TrimSpace(got) != want {
		t.Errorf("%q", got)
	}
	for s, want := range map[task.State]string{task.InputRequired: "TASK_STATE_INPUT_REQUIRED", task.Completed: "TASK_STATE_COMPLETED"} {
		if s.A2A() != want {
			t.Error(s.A2A())
		}
	}
	for _, s := range []task.State{task.Submitted, task.Working, task.InputRequired, task.AuthRequired, task.Completed, task.Failed, task.Canceled, task.Rejected} {
		if s.Active() && s.Terminal() {
			t.Error(s)
		}
	}
}

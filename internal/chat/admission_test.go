package chat_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// gate admits the tasks of agents that are not full, and holds the ids of those it admitted.
type gate struct {
	mu   sync.Mutex // guards the rest
	full map[string]time.Duration
	held []string
}

func (g *gate) Admit(_ context.Context, t task.Task) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait, full := g.full[t.AgentHandle]; full {
		return wait, false
	}
	g.held = append(g.held, t.ID)
	return 0, true
}

func (g *gate) Withdraw(ids ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = slices.DeleteFunc(g.held, func(id string) bool { return slices.Contains(ids, id) })
}

// openFull is a world in which these agents have no room for tasks.
func openFull(t *testing.T, i chat.Instant, full ...string) (*world, *gate) {
	w, g := open(t), &gate{full: make(map[string]time.Duration)}
	for _, name := range full {
		g.full[name] = 39*time.Second + time.Millisecond
	}
	w.Service = chat.New(w.db, w.book, w.hands, chat.Config{Portal: "home.example", Admission: g, Instant: i})
	return w, g
}

// holds checks that the gate holds exactly the unfinished tasks of the rooms.
func (g *gate) holds(w *world, what string, rooms ...string) {
	w.t.Helper()
	var want []string
	for _, r := range rooms {
		for _, k := range w.active(r) {
			want = append(want, k.ID)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.Sort(want)
	slices.Sort(g.held)
	if !slices.Equal(g.held, want) {
		w.t.Errorf("%s: admitted are %v, in the queue %v", what, g.held, want)
	}
}

func TestPost_StoresTheMessageAndRefusesTheTasksOfBusyAgents(t *testing.T) {
	t.Parallel()
	w, g := openFull(t, nil, "calc")
	room := w.room(w.ada, "calc", "guide")
	d := w.draft("@calc @guide 2+2")
	done := w.post(w.ada, room, d)
	if names(done.Tasks) != "guide" || len(done.Refused) != 1 {
		t.Fatalf("%+v", done)
	}
	g.holds(w, "one of two is refused", room)
	const why = "calc is busy, about 40 s. Try again then."
	k := w.task(done.Refused[0].Task.ID)
	if k.State != task.Rejected || k.Reason != why || k.AnswerSeq != done.Message.Seq+1 || k.MessageSeq != done.Message.Seq {
		t.Errorf("the task is %+v", k)
	}
	m := w.last(room)
	wait, ok := m.RetryAfter()
	if !ok || wait != 40*time.Second || m.Kind != chat.Event || m.Sender.Handle != "calc" || m.TaskID != k.ID || m.TaskState != task.Rejected ||
		m.Reason != why || task.PlainText(m.Parts) != why {
		t.Errorf("the message is %+v", m)
	}
	if n := w.book.calls[w.ada.ID+" calc"]; n != 0 {
		t.Errorf("%d calls of the busy agent were counted", n)
	}
	if again := w.post(w.ada, room, d); !again.Repeat || again.Message.Seq != done.Message.Seq || w.last(room).Seq != m.Seq {
		t.Errorf("sent again: %+v", again)
	}
	g.holds(w, "sent again", room)
	if r, err := w.db.Verify(t.Context()); err != nil || !r.OK() {
		t.Errorf("the database has faults: %v, %v", r.Faults, err)
	}

	// Once there is room, the refused task is asked for again and its answer takes the place.
	_, err := w.Regenerate(t.Context(), w.ada, room, m.Seq, "page")
	if f := fault.As(err); !fault.Is(err, fault.RateLimited) || f.RetryAfter != 40*time.Second || f.Safe != why {
		t.Errorf("again, still busy: %v", err)
	}
	delete(g.full, "calc")
	next, err := w.Regenerate(t.Context(), w.ada, room, m.Seq, "page")
	if err != nil {
		t.Fatal(err)
	}
	g.holds(w, "asked for again", room)
	w.answer(w.task(next.ID), "4")
	for _, x := range w.messages(room) {
		if x.Seq == m.Seq && x.Now.NewerSeq == 0 {
			t.Errorf("the refusal stays in place: %+v", x)
		}
	}
}

func TestAsk_RefusesBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	w, g := openFull(t, instant(func(task.Task, chat.Message) (task.Result, bool) {
		t.Error("a refused question reached the agent")
		return task.Result{}, false
	}), "calc")
	ref := w.book.agents["calc"]
	ref.Instant = true
	w.book.agents["calc"] = ref
	room := w.room(w.ada, "calc")
	before := len(w.messages(room))
	for name, ask := range map[string]chat.Ask{
		"in a new conversation": {Agent: "calc", ClientID: "1", Parts: text("2+2")},
		"with an instant agent": {Agent: "calc", ClientID: "2", Parts: text("2+2"), Wait: true},
		"once":                  {Agent: "calc", ClientID: "3", Parts: text("2+2"), Once: true},
		"in a conversation":     {Agent: "calc", Context: room, ClientID: "4", Parts: text("2+2")},
	} {
		_, err := w.Ask(t.Context(), w.ada, ask)
		if f := fault.As(err); !fault.Is(err, fault.RateLimited) || f.RetryAfter != 40*time.Second {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := w.List(t.Context(), w.ada, chat.RoomFilter{Limit: 10})
	if err != nil || len(list) != 1 || len(w.messages(room)) != before {
		t.Errorf("stored %+v, %v", list, err)
	}
	g.holds(w, "refused", room)
}

// A task that is not stored gives its place back, and a stored one keeps it.
func TestAdmission_IsGivenBackWithoutATask(t *testing.T) {
	t.Parallel()
	w, g := openFull(t, instant(func(task.Task, chat.Message) (task.Result, bool) { return task.Done("4"), true }))
	room := w.room(w.ada, "calc", "guide")
	d := w.draft("@calc 1")
	w.post(w.ada, room, d)
	w.post(w.ada, room, d)
	g.holds(w, "a repeated message", room)

	w.book.full["guide"] = fault.New(fault.Forbidden, "No.")
	_, err := w.Post(t.Context(), w.ada, room, w.draft("@calc @guide 2"))
	kind(t, "an agent whose owner refuses", err, fault.Forbidden)
	delete(w.book.full, "guide")
	g.holds(w, "refused by an owner", room)

	ref := w.book.agents["calc"]
	ref.Instant = true
	w.book.agents["calc"] = ref
	a := question("calc", "2+2")
	a.Wait = true
	done := w.ask(w.ada, a)
	g.holds(w, "answered at once", room, done.ConversationID)

	// An answer to a question of an agent continues its task, which was admitted before.
	k := w.active(room)[0]
	if err := w.Finish(t.Context(), k, task.Result{State: task.InputRequired, Parts: text("Which?")}); err != nil {
		t.Fatal(err)
	}
	g.full["calc"] = time.Minute
	more := w.post(w.ada, room, w.draft("@calc that one"))
	if len(more.Tasks) != 1 || more.Tasks[0].ID != k.ID || len(more.Refused) != 0 {
		t.Errorf("the answer to the agent: %+v", more)
	}
	delete(g.full, "calc")
	if err := w.Finish(t.Context(), more.Tasks[0], task.Result{State: task.InputRequired, Parts: text("Which?")}); err != nil {
		t.Fatal(err)
	}
	w.post(w.ada, room, w.draft("@calc the other"))
	g.holds(w, "the second answer", room)
}

func TestFinish_DoesNotAskBusyAgents(t *testing.T) {
	t.Parallel()
	w, g := openFull(t, nil, "guide")
	room := w.room(w.ada, "calc", "guide", "keeper")
	w.answer(w.say(w.ada, room, "@calc go").Tasks[0], "@guide and @keeper, help me")
	if got := names(w.active(room)); got != "keeper" {
		t.Errorf("asked: %s", got)
	}
	if note := task.PlainText(w.last(room).Parts); !strings.Contains(note, "Not asked: guide. guide is busy, about 40 s.") {
		t.Errorf("the note is %q", note)
	}
	g.mu.Lock()
	g.held = slices.DeleteFunc(g.held, func(id string) bool { return w.task(id).State.Terminal() })
	g.mu.Unlock()
	g.holds(w, "asked by an agent", room)
}

func TestRetryAfter_OnlyOfRefusals(t *testing.T) {
	t.Parallel()
	busy := chat.Message{Kind: chat.Event, Sender: chat.Sender{Kind: "agent"}, TaskState: task.Rejected,
		Parts: []task.Part{{Text: "x", Metadata: []byte(`{"retry_after":7}`)}}}
	for name, edit := range map[string]func(*chat.Message){
		"a text":        func(m *chat.Message) { m.Kind = chat.Text },
		"of a person":   func(m *chat.Message) { m.Sender.Kind = "person" },
		"completed":     func(m *chat.Message) { m.TaskState = task.Completed },
		"without parts": func(m *chat.Message) { m.Parts = nil },
		"without data":  func(m *chat.Message) { m.Parts = text("x") },
		"zero":          func(m *chat.Message) { m.Parts = []task.Part{{Metadata: []byte(`{"retry_after":0}`)}} },
	} {
		m := busy
		edit(&m)
		if _, ok := m.RetryAfter(); ok {
			t.Errorf("%s is a refusal", name)
		}
	}
	if wait, ok := busy.RetryAfter(); !ok || wait != 7*time.Second {
		t.Error(wait, ok)
	}
}

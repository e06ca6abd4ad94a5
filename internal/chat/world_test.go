package chat_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// book is who is there: agents by handle, some of them only for some people.
type book struct {
	mu     sync.Mutex // guards the rest
	agents map[string]chat.AgentRef
	only   map[string]string // handle to the id of whom it is for
	people map[string]chat.Member
	full   map[string]error // handle to why it takes no call
	calls  map[string]int   // counted, by "caller agent"
	admit  func()           // called by Admit, if it is set
}

func (b *book) Agent(_ context.Context, actor ident.Actor, handle string) (chat.AgentRef, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.agents[handle]
	if !ok || b.only[handle] != "" && b.only[handle] != actor.ID {
		return chat.AgentRef{}, fault.New(fault.NotFound, "There is no agent %q.", handle)
	}
	return a, nil
}

func (b *book) Person(_ context.Context, _ ident.Actor, name string) (chat.Member, error) {
	if m, ok := b.people[name]; ok {
		return m, nil
	}
	return chat.Member{}, fault.New(fault.NotFound, "There is nobody called %q.", name)
}

func (b *book) Admit(_ context.Context, actor ident.Actor, handle string, _ int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.full[handle]; err != nil {
		return err
	}
	if b.calls == nil {
		b.calls = make(map[string]int)
	}
	b.calls[actor.ID+" "+handle]++
	if b.admit != nil {
		b.admit()
	}
	return nil
}

func (b *book) Hosts(_ context.Context, ids []string) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]string)
	for _, a := range b.agents {
		if a.Remote != "" && slices.Contains(ids, a.ID) {
			out[a.ID] = a.Remote
		}
	}
	return out, nil
}

// hands is a runtime that runs what the test says.
type hands struct {
	mu      sync.Mutex // guards the rest
	running map[string]func()
	stopped []string
	ended   []string
}

func (h *hands) Wake() {}

func (h *hands) WaitOf(string) (task.Wait, bool) { return task.Wait{}, false }

func (h *hands) Ended(k task.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = append(h.ended, k.ID)
}

func (*hands) AwaitStop(context.Context, string) error { return nil }

func (h *hands) Stop(id string) bool {
	h.mu.Lock()
	stop := h.running[id]
	h.stopped = append(h.stopped, id)
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
	return stop != nil
}

// world is a service over a real store with people and agents.
type world struct {
	*chat.Service
	t             *testing.T
	db            *storetest.DB
	book          *book
	hands         *hands
	ada, bob, eve ident.Actor
	accounts      map[string]account.Account
	agents        map[string]hub.Agent
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: storetest.New(t), hands: &hands{running: make(map[string]func())}, accounts: make(map[string]account.Account), agents: make(map[string]hub.Agent)}
	w.book = &book{agents: make(map[string]chat.AgentRef), only: make(map[string]string), people: make(map[string]chat.Member), full: make(map[string]error)}
	person := func(name string) ident.Actor {
		a := storetest.Account(t, w.db, name)
		w.accounts[name] = a
		w.book.people[name] = chat.Member{Kind: "person", ID: a.ID, Handle: name, Role: chat.RoleMember}
		return ident.Actor{Kind: ident.Person, ID: a.ID, Name: name, Addr: "192.0.2.1"}
	}
	w.ada, w.bob, w.eve = person("ada"), person("bob"), person("eve")
	storetest.Acquaint(t, w.db, w.accounts["ada"], w.accounts["bob"], w.accounts["eve"])
	for _, name := range []string{"calc", "guide", "keeper"} {
		w.agent(name, "")
	}
	w.agent("far", "far.example")
	w.Service = chat.New(w.db, w.book, w.hands, chat.Config{Portal: "home.example", URL: "https://home.example", FileKey: []byte("of this test")})
	return w
}

func (w *world) agent(name, remote string) {
	a := storetest.Agent(w.t, w.db, name, w.accounts["ada"])
	w.agents[name] = a
	w.book.agents[name] = chat.AgentRef{ID: a.ID, Handle: name, Title: name, Public: true, Remote: remote}
}

func guest() ident.Actor {
	return ident.Actor{Kind: ident.Guest, ID: ident.NewID(), Addr: ident.NewID()}
}

func (w *world) room(owner ident.Actor, handles ...string) string {
	w.t.Helper()
	c, err := w.Create(w.t.Context(), owner, "", handles)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.ID
}

func text(s string) []task.Part { return []task.Part{task.TextPart(s)} }

func (w *world) draft(s string) chat.Draft {
	return chat.Draft{ClientID: ident.NewID(), Parts: text(s), Face: "api"}
}

func (w *world) say(who ident.Actor, room, s string) chat.Posted {
	w.t.Helper()
	return w.post(who, room, w.draft(s))
}

func (w *world) post(who ident.Actor, room string, d chat.Draft) chat.Posted {
	w.t.Helper()
	done, err := w.Post(w.t.Context(), who, room, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

// answer ends a task with a text.
func (w *world) answer(k task.Task, s string) {
	w.t.Helper()
	if err := w.Finish(w.t.Context(), k, task.Done(s)); err != nil {
		w.t.Fatal(err)
	}
}

// active are the tasks of a room that have not ended.
func (w *world) active(room string) []task.Task {
	w.t.Helper()
	list, err := w.db.ActiveTasks(w.t.Context(), room, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) task(id string) task.Task {
	w.t.Helper()
	k, err := w.db.TaskByID(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

func (w *world) messages(room string) []chat.Message {
	w.t.Helper()
	return storetest.Messages(w.t, w.db, room)
}

func (w *world) last(room string) chat.Message {
	w.t.Helper()
	list := w.messages(room)
	if len(list) == 0 {
		w.t.Fatal("nothing was said")
	}
	return list[len(list)-1]
}

// names lists whom tasks are for.
func names(list []task.Task) string {
	var out []string
	for _, k := range list {
		out = append(out, k.AgentHandle)
	}
	return strings.Join(out, " ")
}

func kind(t testing.TB, what string, err error, want fault.Kind) {
	t.Helper()
	if want == "" && err != nil || want != "" && !fault.Is(err, want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

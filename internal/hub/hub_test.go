package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/liveness"
	"agentsite/internal/testing/storetest"
)

// prober says what it was told to; with gate set it waits for that first.
type prober struct {
	mu    sync.Mutex // guards says, asked
	says  hub.Liveness
	asked []hub.Target
	gate  func(ctx context.Context, t hub.Target)
}

func (p *prober) Probe(ctx context.Context, t hub.Target) hub.Liveness {
	if p.gate != nil {
		p.gate(ctx, t)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, t)
	return p.says
}

// reader describes every address alike.
type reader struct {
	mu   sync.Mutex // guards the rest; tests without anybody beside them need it not
	says hub.Described
	err  error
	read []string
	as   []hub.Target
}

func (r *reader) ReadAs(ctx context.Context, t hub.Target) (hub.Described, error) {
	r.mu.Lock()
	r.as = append(r.as, t)
	r.mu.Unlock()
	return r.Read(ctx, t.Endpoint)
}

func (r *reader) Read(_ context.Context, address string) (hub.Described, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = append(r.read, address)
	return r.says, r.err
}

// monitor lets a world embed the monitor beside the directory.
type monitor = liveness.Service

// world is a hub on a database and an index of its own, which runs.
type world struct {
	*hub.Service
	*monitor
	t       *testing.T
	db      *storetest.DB
	keys    *ident.Keys
	prober  *prober
	reader  *reader
	witness *witness
	index   *index.Index

	movedMu sync.Mutex // guards moved
	moved   []string   // agents whose rights changed

	ada, bob, boss ident.Actor
}

// Drop implements hub.Connections.
func (w *world) Drop(id string) {
	w.movedMu.Lock()
	defer w.movedMu.Unlock()
	w.moved = append(w.moved, id)
}

// outsideOnly allows addresses of https outside of the network of the portal.
type outsideOnly struct{}

func (outsideOnly) CheckURL(s string) error {
	if !strings.HasPrefix(s, "https://") || strings.Contains(s, "10.0.0.1") {
		return errors.New("may not be called")
	}
	return nil
}

func open(t *testing.T) *world {
	t.Helper()
	db := storetest.New(t)
	keys, err := ident.LoadKeys(storetest.Dir(db))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, keys: keys, prober: &prober{says: hub.Liveness{State: hub.Alive}}, reader: &reader{}, witness: &witness{tokens: map[string]bool{}, signed: map[string]hub.Described{}}, index: index.New()}
	queue := liveness.NewQueue(db, slog.New(slog.DiscardHandler))
	w.Service = hub.New(hub.Ports{Store: db, Index: w.index, Probes: queue, Reader: w.reader, Witness: w.witness, Trier: tryer{}, Sealer: keys, Addresses: outsideOnly{}, Connections: w, Models: noModels{}}, hub.Config{Portal: "home.example", Kinds: []hub.Kind{hub.A2A, hub.MCP, hub.OpenAI, hub.Prompt, hub.Link},
		Log: slog.New(slog.DiscardHandler)})
	person := func(name string, kind ident.ActorKind) ident.Actor {
		a := storetest.Account(t, db, name)
		return ident.Actor{Kind: kind, ID: a.ID, Name: a.Name}
	}
	w.ada, w.bob, w.boss = person("ada", ident.Person), person("bob", ident.Person), person("boss", ident.Operator)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	m := liveness.New(liveness.Ports{Queue: queue, Prober: w.prober, Directory: w.Service, Notices: w.Notices, Proofs: w.Proofs})
	w.monitor = m
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func narrowed(a ident.Actor, scopes ...ident.Scope) ident.Actor {
	a.Narrowed, a.Scopes = true, scopes
	return a
}

func ptr[T any](v T) *T { return &v }

// draft is a whole agent, changed by edit.
func draft(name string, edit ...func(*hub.Draft)) hub.Draft {
	d := hub.Draft{Name: &name, Description: ptr("It helps."), Kind: ptr(hub.OpenAI), Endpoint: ptr("https://models.example/v1"),
		Config: map[string]json.RawMessage{"model": json.RawMessage(`"m-1"`)}}
	for _, e := range edit {
		e(&d)
	}
	return d
}

// publish registers an agent.
func (w *world) publish(actor ident.Actor, d hub.Draft) hub.Agent {
	w.t.Helper()
	a, err := w.Publish(w.t.Context(), actor, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func kind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

// found are the names a search for everything finds.
func (w *world) found() string {
	w.t.Helper()
	p, err := w.Search(w.t.Context(), ident.Actor{Kind: ident.Guest}, hub.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, r := range p.Results {
		names = append(names, r.Agent.Name)
	}
	return strings.Join(names, " ")
}

// call stores that somebody called an agent, and returns the task.
func (w *world) call(who ident.Actor, a hub.Agent) string {
	w.t.Helper()
	room := storetest.Conversation(w.t, w.db, account.Account{ID: who.ID, Name: who.Name}, a)
	return storetest.Say(w.t, w.db, room, account.Account{ID: who.ID, Name: who.Name}, "hello", a).Tasks[0].ID
}

// noModels implements hub.Models.
type noModels struct{}

func (noModels) NamedModel(_, _ string) (model, host string, ok bool) { return "", "", false }

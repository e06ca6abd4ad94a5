package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/liveness"
	"agentsite/internal/registry"
	"agentsite/internal/testing/storetest"
)

// prober finds every agent alive.
type prober struct{}

func (prober) Probe(context.Context, hub.Target) hub.Liveness { return hub.Liveness{State: hub.Alive} }

// reader finds no description of any address.
type reader struct{}

func (reader) Read(context.Context, string) (hub.Described, error) { return hub.Described{}, nil }

func (reader) ReadAs(context.Context, hub.Target) (hub.Described, error) { return hub.Described{}, nil }

// secureOnly allows addresses of https.
type secureOnly struct{}

func (secureOnly) CheckURL(s string) error {
	if !strings.HasPrefix(s, "https://") {
		return errors.New("may not be called")
	}
	return nil
}

// directory lets a world embed the directory beside the registry.
type directory = hub.Service

// world is a registry and a directory on a database and an index of their own.
type world struct {
	*registry.Service
	*directory
	t  *testing.T
	db *storetest.DB

	ada, bob, boss ident.Actor
}

func open(t *testing.T) *world {
	t.Helper()
	db := storetest.New(t)
	keys, err := ident.LoadKeys(storetest.Dir(db))
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	w := &world{t: t, db: db}
	queue := liveness.NewQueue(db, log)
	w.directory = hub.New(hub.Ports{Store: db, Index: index.New(), Probes: queue, Reader: reader{}, Sealer: keys, Addresses: secureOnly{}},
		hub.Config{Portal: "home.example", Kinds: []hub.Kind{hub.A2A, hub.MCP, hub.OpenAI}, Log: log})
	w.Service = registry.New(db, w.directory, registry.Config{Portal: "home.example", Log: log})
	person := func(name string, kind ident.ActorKind) ident.Actor {
		a := storetest.Account(t, db, name)
		return ident.Actor{Kind: kind, ID: a.ID, Name: a.Name}
	}
	w.ada, w.bob, w.boss = person("ada", ident.Person), person("bob", ident.Person), person("boss", ident.Operator)
	monitor := liveness.New(liveness.Ports{Queue: queue, Prober: prober{}, Directory: w.directory, Notices: w.directory.Notices})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- monitor.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func narrowed(a ident.Actor, scopes ...ident.Scope) ident.Actor {
	a.Narrowed, a.Scopes = true, scopes
	return a
}

func ptr[T any](v T) *T { return &v }

// draft is a whole agent, changed by edit.
func draft(name string, edit ...func(*hub.Draft)) hub.Draft {
	d := hub.Draft{Name: &name, Description: ptr("It helps."), Kind: ptr(hub.OpenAI),
		Endpoint: ptr("https://models.example/v1"), Config: map[string]json.RawMessage{"model": json.RawMessage(`"m-1"`)}}
	for _, e := range edit {
		e(&d)
	}
	return d
}

// publish registers an agent.
func (w *world) publish(actor ident.Actor, d hub.Draft) hub.Agent {
	w.t.Helper()
	a, err := w.Publish(w.t.Context(), actor, d)
	must(w.t, err)
	return a
}

// found are the names that a search for everything finds.
func (w *world) found() string {
	w.t.Helper()
	p, err := w.Search(w.t.Context(), ident.Actor{Kind: ident.Guest}, hub.Query{})
	must(w.t, err)
	var names []string
	for _, r := range p.Results {
		names = append(names, r.Agent.Name)
	}
	return strings.Join(names, " ")
}

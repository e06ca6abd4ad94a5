package hub_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/index"
	"agentsite/internal/testing/storetest"
)

// distant is a network of agents by handle and of portals by id.
type distant struct {
	hub.Network
	agents map[string]hub.Agent
	ways   map[string]string // origin by portal
	shut   map[string]bool
}

func (f *distant) Find(_ context.Context, name, portal string) (hub.Agent, error) {
	a, ok := f.agents[name+"@"+portal]
	if !ok {
		return hub.Agent{}, fault.New(fault.NotFound, "There is no agent %s@%s.", name, portal)
	}
	return a, nil
}

func (f *distant) Load(context.Context) error { return nil }

func (f *distant) Source(hub.Agent) hub.Source { return hub.Source{ID: portalB} }

func (f *distant) Way(_ context.Context, portal string) (string, error) {
	if f.shut[portal] {
		return "", fault.New(fault.Forbidden, "This portal does not use agents there.")
	}
	at, ok := f.ways[portal]
	if !ok {
		return "", fault.New(fault.Unavailable, "Nobody knows where that portal is.")
	}
	return at, nil
}

const portalB = "p1bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

func remoteAgent(name, host, id string) hub.Agent {
	return hub.Agent{ID: id, Name: name, Portal: host, Title: "Far " + name, Kind: hub.Builtin, Visibility: hub.Public, Status: hub.Status{State: hub.Active},
		OwnerID: "somebody", Limits: hub.Limits{PerMinute: 1}}
}

func away(t *testing.T) (*world, *distant) {
	w := open(t)
	f := &distant{agents: map[string]hub.Agent{"guide@b.example:8443": remoteAgent("guide", "b.example:8443", portalB+"/01g")},
		ways: map[string]string{portalB: "https://b.example:8443"}, shut: map[string]bool{}}
	w.Service = hub.New(hub.Ports{Store: w.db, Index: index.New(), Sealer: w.keys, Network: f, Ways: f}, hub.Config{Portal: "home.example", Kinds: []hub.Kind{hub.A2A}, Log: slog.New(slog.DiscardHandler)})
	return w, f
}

func TestCallable_AgentsElsewhereByHandle(t *testing.T) {
	t.Parallel()
	w, f := away(t)
	ctx := t.Context()
	a, err := w.Callable(ctx, w.ada, "@guide@B.example:8443")
	if err != nil || a.Kind != hub.Peer || a.NetworkID != portalB+"/01g" || a.PortalID != portalB || !ident.ValidID(a.ID) || a.Handle() != "guide@b.example:8443" || w.TextGoesTo(a) != "b.example:8443" {
		t.Fatalf("%+v %v", a, err)
	}
	if a.OwnerID != "" || a.Limits.PerMinute != 0 {
		t.Error("what its record says decides who may call it here")
	}
	visitor := ident.Actor{Kind: ident.Guest, ID: "g", Addr: "192.0.2.1"}
	if again, err := w.Talkable(ctx, visitor, "guide@b.example:8443"); err != nil || again.ID != a.ID {
		t.Error("visitors:", again.ID, err)
	}
	for range 3 { // its owner's limits are kept there
		if err := w.Admit(ctx, visitor, a.Handle(), 10); err != nil {
			t.Error(err)
		}
	}
	// Who comes from elsewhere does not go on from here.
	_, err = w.Callable(ctx, ident.PortalActor(portalB, "c.example", "m", "carl"), a.Handle())
	if !fault.Is(err, fault.NotFound) {
		t.Error("this portal stands in between:", err)
	}
	for _, name := range []string{"other@b.example:8443", "guide@c.example", "guide@", "@@guide@b.example:8443", "gu ide@b.example:8443", "@" + strings.ToLower(a.ID), "@@" + strings.ToLower(a.ID)} {
		if _, err := w.Callable(ctx, w.ada, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := w.Callable(ctx, narrowed(w.ada, ident.Tasks), a.Handle()); !fault.Is(err, fault.Forbidden) {
		t.Error("a token without the scope:", err)
	}
	f.shut[portalB] = true
	if _, err := w.Callable(ctx, w.ada, a.Handle()); !fault.Is(err, fault.Forbidden) {
		t.Error("the portal is shut out:", err)
	}
}

func TestOpen_AsksWhereThePortalIsNow(t *testing.T) {
	t.Parallel()
	w, f := away(t)
	ctx := t.Context()
	a, err := w.Callable(ctx, w.ada, "guide@b.example:8443")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Open(ctx, a.ID); !fault.Is(err, fault.NotFound) {
		t.Error("nobody asked it yet:", err)
	}
	for range 2 {
		if err := w.Met(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	got, secret, err := w.Open(ctx, a.ID)
	if err != nil || secret != "" || got.Endpoint != "https://b.example:8443/agents/guide/a2a" || got.Kind != hub.Peer || got.PortalID != portalB || got.Handle() != a.Handle() {
		t.Fatalf("%+v %v", got, err)
	}
	// It moves, and with it the handle; the old one leads to it still, for those
	// who know it.
	f.ways[portalB] = "https://new.example"
	delete(f.agents, "guide@b.example:8443")
	f.agents["guide@new.example"] = remoteAgent("guide", "new.example", portalB+"/01g")
	if got, _, err = w.Open(ctx, a.ID); err != nil || got.Endpoint != "https://new.example/agents/guide/a2a" {
		t.Error(got.Endpoint, err)
	}
	moved, err := w.Callable(ctx, w.ada, "guide@b.example:8443")
	if err != nil || moved.ID != a.ID || moved.Handle() != "guide@new.example" {
		t.Errorf("%+v %v", moved, err)
	}
	if err := w.Met(ctx, moved); err != nil {
		t.Fatal(err)
	}
	if kept, err := w.db.AgentByID(ctx, a.ID); err != nil || kept.Handle() != "guide@new.example" {
		t.Error(kept.Handle(), err)
	}
	// Somebody else's portal at the old address is somebody else.
	f.agents["guide@b.example:8443"] = remoteAgent("guide", "b.example:8443", "p1other/01g")
	f.ways["p1other"] = "https://b.example:8443"
	if other, err := w.Callable(ctx, w.ada, "guide@b.example:8443"); err != nil || other.ID == a.ID {
		t.Error(other.ID, err)
	}
	f.shut[portalB] = true
	if _, _, err := w.Open(ctx, a.ID); !fault.Is(err, fault.Forbidden) {
		t.Error("shut out since:", err)
	}
	storetest.Sound(t, w.db)
}

func TestMet_ShowsInNoListAndNoCount(t *testing.T) {
	t.Parallel()
	w, _ := away(t)
	ctx := t.Context()
	storetest.Agent(t, w.db, "mine", storetest.Account(t, w.db, "mina"))
	before, err := w.db.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a, err := w.Callable(ctx, w.ada, "guide@b.example:8443")
	if err == nil {
		err = w.Met(ctx, a)
	}
	if err != nil {
		t.Fatal(err)
	}
	after, err := w.db.Stats(ctx)
	if err != nil || after["agents"] != before["agents"] {
		t.Error(before["agents"], after["agents"], err)
	}
	if err := w.db.AllAgents(ctx, func(x hub.Agent) bool {
		if x.Kind == hub.Peer {
			t.Errorf("%+v is published", x)
		}
		return true
	}); err != nil {
		t.Error(err)
	}
	due, err := w.db.Due(ctx, time.Now().Add(1000*time.Hour), 100)
	for _, c := range due {
		if err != nil || c.Agent.Kind == hub.Peer {
			t.Errorf("%+v is checked: %v", c.Agent, err)
		}
	}
	if _, err := w.db.AgentByName(ctx, "@"+strings.ToLower(a.ID)); !fault.Is(err, fault.NotFound) {
		t.Error("it is found by the name of its row:", err)
	}
	if err := w.Load(ctx); err != nil || w.Count() != 1 { // but for mine
		t.Error(w.Count(), err)
	}
	if _, err := w.Update(ctx, w.boss, "@"+strings.ToLower(a.ID), hub.Draft{}); err == nil {
		t.Error("the operator edits it")
	}
	storetest.Sound(t, w.db)
}

func TestLimits_ListPeopleOfOtherPortals(t *testing.T) {
	t.Parallel()
	ada := ident.PortalActor(portalB, "b.example:8443", "mark-1", "ada@evil.example")
	if ada.Name != "ada@b.example:8443" {
		t.Fatal("the host is what was claimed:", ada.Name)
	}
	eve := ident.PortalActor(portalB, "b.example:8443", "mark-2", "Eve <b>")
	if eve.Name != "somebody@b.example:8443" || eve.ID == ada.ID {
		t.Fatal(eve)
	}
	elsewhere := ident.PortalActor("p1other", "c.example", "mark-1", "ada")
	if elsewhere.ID == ada.ID {
		t.Fatal("two portals have one person")
	}
	for _, c := range []struct {
		limits hub.Limits
		actor  ident.Actor
		want   bool
	}{
		{hub.Limits{}, ada, true},
		{hub.Limits{Callers: hub.AccountCallers}, ada, false},
		{hub.Limits{Callers: hub.ListedCallers, Listed: []string{"ada"}}, ada, false},
		{hub.Limits{Callers: hub.ListedCallers, Listed: []string{"ada@b.example:8443"}}, ada, true},
		{hub.Limits{Callers: hub.ListedCallers, Listed: []string{"ada@b.example:8443"}}, eve, false},
		{hub.Limits{Callers: hub.ListedCallers, Listed: []string{"@b.example:8443"}}, eve, true},
		{hub.Limits{Callers: hub.ListedCallers, Listed: []string{"@b.example:8443"}}, elsewhere, false},
		{hub.Limits{Callers: hub.ListedCallers, Listed: []string{"@b.example:8443"}}, ident.Actor{Kind: ident.Guest, ID: "g", Name: "x@b.example:8443"}, false},
		{hub.Limits{Callers: hub.ListedCallers, Listed: []string{"@b.example:8443"}}, ident.PortalActor(portalB, "b.example:8443", "", ""), false},
	} {
		if err := (hub.Agent{Name: "x", Limits: c.limits}).MayCall(c.actor); (err == nil) != c.want {
			t.Errorf("%+v for %s: %v", c.limits, c.actor.Name, err)
		}
	}
	w := open(t)
	list := func(names ...string) error {
		_, err := w.Publish(t.Context(), w.ada, draft("agent-"+strings.ToLower(ident.NewID()[20:]), func(d *hub.Draft) {
			d.Limits = &hub.Limits{Callers: hub.ListedCallers, Listed: names}
		}))
		return err
	}
	if err := list("@bob", "ada@b.example:8443", "@c.example", "@localhost:8080"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"ada@", "A B@c.example", "ada@c.example/x", "ada@x@c.example", "@c.example?", "@c.example:99999x"} {
		if err := list(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAdmit_APortalCannotMakeUpPeople(t *testing.T) {
	t.Parallel()
	w := open(t)
	if _, err := w.Publish(t.Context(), w.ada, draft("small", func(d *hub.Draft) { d.Limits = &hub.Limits{PerMinute: 2} })); err != nil {
		t.Fatal(err)
	}
	admit := func(mark string) error {
		return w.Admit(t.Context(), ident.PortalActor(portalB, "b.example", mark, "x"), "small", 1)
	}
	for range 2 {
		if err := admit("one"); err != nil {
			t.Fatal(err)
		}
	}
	if err := admit("one"); !fault.Is(err, fault.RateLimited) {
		t.Error("one person has no limit:", err)
	}
	n := 0
	for range 100 {
		if admit(ident.NewID()) == nil {
			n++
		}
	}
	if n < 10 || n > 20 {
		t.Errorf("a portal called %d times", n)
	}
	if err := w.Admit(t.Context(), ident.PortalActor("p1other", "c.example", "one", "x"), "small", 1); err != nil {
		t.Error("another portal pays for it:", err)
	}
}

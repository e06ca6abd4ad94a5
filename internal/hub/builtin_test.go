package hub_test

import (
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// TestCallable_BuiltInAgentsOfOtherPortals calls a built-in agent of another portal, of which no portal has a
// record: this portal's own describes it.
func TestCallable_BuiltInAgentsOfOtherPortals(t *testing.T) {
	t.Parallel()
	w, f := away(t)
	ctx := t.Context()
	storetest.Agent(t, w.db, "calc", account.Account{})
	storetest.Agent(t, w.db, "words", storetest.Account(t, w.db, "mina"))
	if err := w.Load(ctx); err != nil {
		t.Fatal(err)
	}
	const handle = "calc@b.example:8443"
	shown, err := w.Get(ctx, w.ada, handle)
	if err != nil || shown.Handle() != handle || shown.Kind != hub.Builtin || shown.Description != "An agent of a test." || shown.Signed() || shown.OwnerID != "" {
		t.Fatalf("%+v %v", shown, err)
	}
	a, err := w.Callable(ctx, w.ada, "@"+handle)
	if err != nil || a.Kind != hub.Peer || a.PortalID != portalB || a.NetworkID != shown.ID || !ident.ValidID(a.ID) || a.Handle() != handle {
		t.Fatalf("%+v %v", a, err)
	}
	if err := w.Met(ctx, a); err != nil {
		t.Fatal(err)
	}
	if open, _, err := w.Open(ctx, a.ID); err != nil || open.Endpoint != "https://b.example:8443/agents/calc/a2a" {
		t.Errorf("%+v %v", open, err)
	}
	// Only built-in agents are alike on all portals, and a portal need not have more than this one.
	for _, name := range []string{"words@b.example:8443", "guide@c.example", "sort@b.example:8443"} {
		if got, err := w.Callable(ctx, w.ada, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %+v %v", name, got, err)
		}
	}
	// A registered agent of that name has a record, which counts.
	f.agents[handle] = remoteAgent("calc", "b.example:8443", portalB+"/01c")
	if named, err := w.Callable(ctx, w.ada, handle); err != nil || named.NetworkID != portalB+"/01c" {
		t.Errorf("%+v %v", named, err)
	}
	delete(f.agents, handle)
	// The portal moves, and conversations go on.
	f.ways[portalB] = "https://new.example"
	if moved, err := w.Callable(ctx, w.ada, "calc@new.example"); err != nil || moved.PortalID != portalB {
		t.Errorf("%+v %v", moved, err)
	}
	f.shut[portalB] = true
	for _, actor := range []ident.Actor{w.ada, {Kind: ident.Guest, ID: "g", Addr: "192.0.2.1"}} {
		if _, err := w.Callable(ctx, actor, handle); err == nil {
			t.Error("an agent of a denied portal is called")
		}
	}
	storetest.Sound(t, w.db)
}

// TestCallable_GoesOnWithABuiltInAgentThatHadARecord has a conversation from a version in which built-in agents
// were published.
func TestCallable_GoesOnWithABuiltInAgentThatHadARecord(t *testing.T) {
	t.Parallel()
	w, f := away(t)
	ctx := t.Context()
	storetest.Agent(t, w.db, "guide", account.Account{})
	if err := w.Load(ctx); err != nil {
		t.Fatal(err)
	}
	const handle = "guide@b.example:8443"
	before, err := w.Callable(ctx, w.ada, handle)
	if err == nil {
		err = w.Met(ctx, before)
	}
	if err != nil || before.NetworkID != portalB+"/01g" {
		t.Fatalf("%+v %v", before, err)
	}
	delete(f.agents, handle) // it is withdrawn
	after, err := w.Callable(ctx, w.ada, handle)
	if err != nil || after.ID != before.ID || after.NetworkID != before.NetworkID {
		t.Errorf("%+v, before %+v: %v", after, before, err)
	}
	if got, _, err := w.Open(ctx, before.ID); err != nil || !strings.HasSuffix(got.Endpoint, "/agents/guide/a2a") {
		t.Errorf("%+v %v", got, err)
	}
}

package store_test

import (
	"slices"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestSetLiveness_KeepsTheLast(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	a := storetest.Agent(t, db, "helper", storetest.Account(t, db, "ada"))
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	states := []hub.Live{hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable, hub.Unknown}
	const n = hub.MaxHistory + 30
	for i := range n {
		l := hub.Liveness{State: states[i%len(states)], CheckedAt: start.Add(time.Duration(i) * time.Minute), Latency: time.Duration(i) * 13 * time.Millisecond, Reason: "Because."}
		if err := db.SetLiveness(t.Context(), a.ID, l, start.Add(time.Hour), i); err != nil {
			t.Fatal(err)
		}
		if got := byID(t, db, a.ID); got.Liveness != l {
			t.Fatalf("%+v, want %+v", got.Liveness, l)
		}
	}
	// Nothing happened: this is no contact.
	if err := db.SetLiveness(t.Context(), a.ID, hub.Liveness{State: hub.Unknown}, start, 0); err != nil {
		t.Fatal(err)
	}
	list, err := db.History(t.Context(), a.ID)
	if err != nil || len(list) != hub.MaxHistory {
		t.Fatal(len(list), err)
	}
	for k, c := range list {
		i := k + 30
		exact := time.Duration(i) * 13 * time.Millisecond
		if !c.At.Equal(start.Add(time.Duration(i)*time.Minute)) || c.State != states[i%len(states)] || (c.Latency-exact).Abs() > exact/10 {
			t.Fatalf("contact %d: %+v", k, c)
		}
	}
	c, err := db.Checkup(t.Context(), a.ID)
	if err != nil || !slices.Equal(c.History, list) || c.Failures != 0 || c.Agent.ID != a.ID {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := db.Checkup(t.Context(), ident.NewID()); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

func TestDue_WhoAndWhen(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	now := clock.Now()
	add := func(name string, change func(*hub.Agent)) hub.Agent {
		t.Helper()
		a := full(ada, name)
		a.Liveness.CheckedAt = now.Add(-time.Hour)
		change(&a)
		if err := db.CreateAgent(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		return a
	}
	add("second", func(a *hub.Agent) { a.Status = hub.Status{State: hub.Active} })
	add("first", func(a *hub.Agent) { a.Liveness.CheckedAt = time.Time{} })
	add("third", func(a *hub.Agent) {
		a.Status.State, a.Liveness.CheckedAt, a.Kind = hub.StatusDraft, now.Add(-time.Minute), hub.Prompt
	})
	later := add("later", func(a *hub.Agent) { a.Liveness.CheckedAt = now.Add(time.Minute) })
	add("withdrawn", func(a *hub.Agent) { a.Status.State = hub.Withdrawn })
	add("linked", func(a *hub.Agent) { a.Kind = hub.Link })
	add("built-in", func(a *hub.Agent) { a.Kind, a.OwnerID = hub.Builtin, "" })
	add("disabled", func(a *hub.Agent) { a.OwnerID = bob.ID })
	if err := db.SetDisabled(t.Context(), bob.ID, now, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	due := func(limit int, want ...string) {
		t.Helper()
		list, err := db.Due(t.Context(), now, limit)
		var got []string
		for _, c := range list {
			got = append(got, c.Agent.Name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("due %v, want %v, %v", got, want, err)
		}
	}
	due(10, "first", "second", "third")
	due(2, "first", "second")
	if err := db.DueAt(t.Context(), later.ID, now.Add(time.Hour)); err != nil { // no later than it is
		t.Fatal(err)
	}
	due(10, "first", "second", "third")
	if err := db.DueAt(t.Context(), later.ID, now.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	due(10, "first", "second", "third", "later")
	if err := db.SetLiveness(t.Context(), later.ID, hub.Liveness{State: hub.Unreachable, CheckedAt: now}, now.Add(-2*time.Hour), 4); err != nil {
		t.Fatal(err)
	}
	due(10, "first", "later", "second", "third")
	list, err := db.Due(t.Context(), now, 2)
	if err != nil || list[1].Failures != 4 || len(list[1].History) != 1 || len(list[0].History) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}

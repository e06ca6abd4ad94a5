package store_test

import (
	"slices"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestCoOwners(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
	a := storetest.Agent(t, db, "zebra", ada)
	storetest.Agent(t, db, "mine", bob)
	for _, who := range []account.Account{eve, bob, bob} { // again changes nothing
		if err := db.AddCoOwner(t.Context(), a.ID, who.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.AddCoOwner(t.Context(), a.ID, ada.ID); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if err := db.AddCoOwner(t.Context(), a.ID, ident.NewID()); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if list, err := db.CoOwners(t.Context(), a.ID); err != nil || !slices.Equal(list, []hub.Owner{{ID: bob.ID, Name: "bob"}, {ID: eve.ID, Name: "eve"}}) {
		t.Error(list, err)
	}
	if got := byID(t, db, a.ID); len(got.CoOwnerIDs) != 2 || !slices.Contains(got.CoOwnerIDs, bob.ID) || !slices.Contains(got.CoOwnerIDs, eve.ID) {
		t.Errorf("%+v", got.CoOwnerIDs)
	}
	of := func(who account.Account, want ...string) {
		t.Helper()
		list, err := db.AgentsOf(t.Context(), who.ID)
		var got []string
		for _, a := range list {
			got = append(got, a.Name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v, %v", who.Name, got, want, err)
		}
	}
	of(ada, "zebra")
	of(bob, "mine", "zebra")
	of(eve, "zebra")
	if err := db.SetDisabled(t.Context(), ada.ID, clock.Now(), ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	of(ada, "zebra") // to be taken out of the index
	of(bob, "mine")
	if err := db.SetDisabled(t.Context(), ada.ID, time.Time{}, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	if err := db.RemoveCoOwner(t.Context(), a.ID, bob.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.RemoveCoOwner(t.Context(), a.ID, bob.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	of(bob, "mine")
	storetest.Sound(t, db)
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
	a := storetest.Agent(t, db, "helper", ada)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	conflict := func(err error) {
		t.Helper()
		if !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	conflict(db.Transfer(t.Context(), a.ID, bob.ID, false, 10)) // no offer
	conflict(db.SetOffer(t.Context(), a.ID, ada.ID))
	if err := db.SetOffer(t.Context(), a.ID, ident.NewID()); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if _, has, err := db.OfferOf(t.Context(), a.ID); err != nil || has {
		t.Error(has, err)
	}
	ok(db.SetOffer(t.Context(), a.ID, eve.ID))
	ok(db.SetOffer(t.Context(), a.ID, bob.ID)) // in its place
	if to, has, err := db.OfferOf(t.Context(), a.ID); err != nil || !has || to != (hub.Owner{ID: bob.ID, Name: "bob"}) {
		t.Error(to, has, err)
	}
	conflict(db.Transfer(t.Context(), a.ID, eve.ID, false, 10))
	offers, err := db.Offers(t.Context(), bob.ID)
	if err != nil || len(offers) != 1 || offers[0].Agent.Name != "helper" || offers[0].To.Name != "bob" || offers[0].Created.IsZero() {
		t.Fatalf("%+v %v", offers, err)
	}
	if offers, err := db.Offers(t.Context(), eve.ID); err != nil || len(offers) != 0 {
		t.Errorf("%+v %v", offers, err)
	}
	ok(db.SetOffer(t.Context(), a.ID, ""))
	conflict(db.Transfer(t.Context(), a.ID, bob.ID, false, 10)) // taken back
	ok(db.SetOffer(t.Context(), a.ID, bob.ID))
	storetest.Agent(t, db, "other", bob)
	conflict(db.Transfer(t.Context(), a.ID, bob.ID, false, 1)) // has enough
	ok(db.AddCoOwner(t.Context(), a.ID, bob.ID))
	ok(db.SetProof(t.Context(), a.ID, ada.ID, hub.Proof{Method: hub.ProofToken, Origin: "https://agent.example", At: clock.Now()}))
	ok(db.Transfer(t.Context(), a.ID, bob.ID, true, 2))
	got := byID(t, db, a.ID)
	if got.OwnerID != bob.ID || got.OwnerName != "bob" || !slices.Equal(got.CoOwnerIDs, []string{ada.ID}) || got.Proof.State != hub.Unproven {
		t.Errorf("%+v", got)
	}
	conflict(db.Transfer(t.Context(), a.ID, bob.ID, true, 10)) // once
	// What the address itself signed is true of every owner.
	ok(db.SetProof(t.Context(), a.ID, bob.ID, hub.Proof{Method: hub.ProofCard, Origin: "https://agent.example", At: clock.Now()}))
	ok(db.SetOffer(t.Context(), a.ID, eve.ID))
	ok(db.Transfer(t.Context(), a.ID, eve.ID, false, 2))
	got = byID(t, db, a.ID)
	if got.OwnerID != eve.ID || !slices.Equal(got.CoOwnerIDs, []string{ada.ID}) || got.Proof.State != hub.Proved {
		t.Errorf("%+v", got)
	}
	// A disabled account is given nothing.
	ok(db.SetOffer(t.Context(), a.ID, bob.ID))
	ok(db.SetDisabled(t.Context(), bob.ID, clock.Now(), ident.Actor{}))
	if err := db.Transfer(t.Context(), a.ID, bob.ID, false, 10); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

func TestOwnersByName(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	op := account.Account{ID: ident.NewID(), Name: "boss", PasswordHash: "x", Operator: true, CreatedAt: clock.Now()}
	if err := db.CreateAccount(t.Context(), op, ""); err != nil {
		t.Fatal(err)
	}
	if o, err := db.Account(t.Context(), "ada"); err != nil || o != (hub.Owner{ID: ada.ID, Name: "ada"}) {
		t.Error(o, err)
	}
	if ids, err := db.Operators(t.Context()); err != nil || !slices.Equal(ids, []string{op.ID}) {
		t.Error(ids, err)
	}
	for _, id := range []string{ada.ID, op.ID} {
		if err := db.SetDisabled(t.Context(), id, clock.Now(), ident.Actor{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Account(t.Context(), "ada"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if ids, err := db.Operators(t.Context()); err != nil || len(ids) != 0 {
		t.Error(ids, err)
	}
}

// A proof is of an origin: it holds wherever that is written differently, and
// nowhere else.
func TestProof(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	at := clock.Now()
	for i, tt := range []struct {
		kind               hub.Kind
		endpoint, origin   string
		state, wouldOrigin string
	}{
		{hub.A2A, "https://Agent.Example:443/a2a", "https://agent.example", hub.Proved, "https://agent.example"},
		{hub.MCP, "https://agent.example:8443/mcp", "https://AGENT.example:8443/x", hub.Proved, "https://agent.example:8443"},
		{hub.OpenAI, "https://agent.example/v1", "http://agent.example", hub.Unproven, ""},
		{hub.A2A, "https://agent.example/v1", "https://agent.example:8443", hub.Unproven, ""},
		{hub.A2A, "https://agent.example/v1", "https://agent.example.org", hub.Unproven, ""},
		{hub.A2A, "https://agent.example/v1", "", hub.Unproven, ""},
		{hub.Prompt, "", "https://agent.example", hub.Hosted, ""},
		{hub.Prompt, "https://agent.example/v1", "", hub.Hosted, ""},
		{hub.Link, "", "", hub.Hosted, ""},
	} {
		a := full(ada, "agent-"+string(rune('a'+i)))
		a.Kind, a.Endpoint = tt.kind, tt.endpoint
		if err := db.CreateAgent(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		if err := db.SetProof(t.Context(), a.ID, a.OwnerID, hub.Proof{Method: hub.ProofToken, Origin: tt.origin, At: at}); err != nil {
			t.Fatal(err)
		}
		want := hub.Proof{State: tt.state}
		if tt.state == hub.Proved {
			want = hub.Proof{State: hub.Proved, Method: hub.ProofToken, Origin: tt.wouldOrigin, At: at}
		}
		if got := byID(t, db, a.ID).Proof; got != want {
			t.Errorf("%s by %q: %+v, want %+v", tt.endpoint, tt.origin, got, want)
		}
		if err := db.SetProof(t.Context(), a.ID, a.OwnerID, hub.Proof{}); err != nil {
			t.Fatal(err)
		}
		if got := byID(t, db, a.ID).Proof; got.State == hub.Proved {
			t.Errorf("%s: ended, but %+v", tt.endpoint, got)
		}
	}
}

func TestDomains(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	set := func(who account.Account, domain string, proved bool) {
		t.Helper()
		if err := db.SetDomain(t.Context(), who.ID, domain, proved); err != nil {
			t.Fatal(err)
		}
	}
	has := func(who account.Account, failures int, want ...string) {
		t.Helper()
		list, err := db.Domains(t.Context(), who.ID)
		var got []string
		for _, d := range list {
			got = append(got, d.Domain)
			if d.AccountID != who.ID || d.ProvedAt.IsZero() || d.CheckedAt.Before(d.ProvedAt) || d.Failures != failures {
				t.Errorf("%+v", d)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v, %v", who.Name, got, want, err)
		}
	}
	set(ada, "b.example", false) // was never proved
	has(ada, 0)
	set(ada, "b.example", true)
	set(ada, "a.example:8443", true)
	set(bob, "b.example", true)
	has(ada, 0, "a.example:8443", "b.example")
	for range 4 {
		set(bob, "b.example", false)
	}
	has(bob, 4, "b.example")
	set(bob, "b.example", true)
	has(bob, 0, "b.example")
	for range 5 {
		set(bob, "b.example", false)
	}
	has(bob, 0)
	has(ada, 0, "a.example:8443", "b.example")
	if list, err := db.StaleDomains(t.Context(), clock.Now().Add(time.Hour), 1); err != nil || len(list) != 1 || list[0].AccountID != ada.ID {
		t.Error(list, err)
	}
	if list, err := db.StaleDomains(t.Context(), clock.Now().Add(-time.Hour), 10); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	if err := db.SetDomain(t.Context(), ident.NewID(), "c.example", true); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := db.RemoveDomain(t.Context(), ada.ID, "b.example"); err != nil {
		t.Fatal(err)
	}
	if err := db.RemoveDomain(t.Context(), ada.ID, "b.example"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	has(ada, 0, "a.example:8443")
}

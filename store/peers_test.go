package store_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/storetest"
)

func TestPeers_ComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	now := time.UnixMilli(1_795_345_200_000).UTC()
	f := federation.Facts{ID: "p1x", URL: "https://a.example", Name: "A", Keys: []record.KeyID{"k"}, Rule: federation.Rule{Stand: federation.Pin, Note: "n", MaxAgents: 3},
		Known: now, Seen: now, Failed: now, Failures: 2, Why: "no", RTT: 5 * time.Millisecond, Agents: 4, Listed: 5, Truncated: true, Head: record.Version{Epoch: 1, Seq: 2},
		HeadIssued: now, HeadExpires: now, Waits: now, RefusedUntil: now, RefusedWhy: "signature", Quarantined: true}
	address := federation.Facts{URL: "https://b.example", Known: now}
	changes := []federation.Change{{Key: "p1x", State: federation.Active, At: now}, {Key: "p1x", State: federation.Silent, Reason: "no", At: now.Add(time.Second)}}
	if err := db.SavePeers(t.Context(), []federation.Facts{f, address}, nil, changes); err != nil {
		t.Fatal(err)
	}
	got, err := db.Peers(t.Context())
	if err != nil || len(got) != 2 || !reflect.DeepEqual(got[1], f) || !reflect.DeepEqual(got[0], address) {
		t.Fatalf("%+v %v", got, err)
	}
	h, err := db.PeerChanges(t.Context(), "p1x", 1)
	if err != nil || len(h) != 1 || h[0] != changes[1] {
		t.Errorf("%+v %v", h, err)
	}
	for range 120 {
		if err := db.SavePeers(t.Context(), nil, nil, changes[:1]); err != nil {
			t.Fatal(err)
		}
	}
	if h, _ = db.PeerChanges(t.Context(), "p1x", 1000); len(h) != 100 {
		t.Errorf("%d changes are kept", len(h))
	}
	if err := db.SavePeers(t.Context(), nil, []string{"p1x"}, nil); err != nil {
		t.Fatal(err)
	}
	if got, _ = db.Peers(t.Context()); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if h, _ = db.PeerChanges(t.Context(), "p1x", 1000); len(h) != 0 {
		t.Errorf("%d changes are left of who was forgotten", len(h))
	}
}

func TestDecisions_AreKeptWithWhoAndWhy(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	if _, ok, err := db.PeerPolicy(t.Context()); ok || err != nil {
		t.Errorf("a policy before one was set: %v", err)
	}
	pol := federation.DefaultPolicy()
	pol.DenyNets = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	rule := federation.Facts{ID: "p1x", URL: "https://a.example", Rule: federation.Rule{Stand: federation.Deny}}
	by := ident.Actor{Kind: ident.Operator, ID: ada.ID}
	for _, d := range []federation.Decided{
		{By: by, Act: "peer.deny", Subject: "p1x", Why: "spam", Save: &rule},
		{By: ident.Actor{Kind: ident.System}, Act: "peers.policy", Subject: "open", Policy: &pol},
		{By: by, Act: "peer.forget", Subject: "p1x", Forget: "p1x"},
	} {
		if err := db.DecidePeers(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	// Decisions of other kinds are in the same log, not in this list.
	if err := db.SetDisabled(t.Context(), ada.ID, time.Now(), by); err != nil {
		t.Fatal(err)
	}
	list, err := db.Decisions(t.Context(), 0, 10)
	if err != nil || len(list) != 3 || list[0].Act != "peer.forget" || list[1].By != "command line" || list[2].By != "ada" || list[2].Why != "spam" {
		t.Fatalf("%+v %v", list, err)
	}
	if more, _ := db.Decisions(t.Context(), list[1].ID, 10); len(more) != 1 || more[0].Act != "peer.deny" {
		t.Errorf("%+v", more)
	}
	if got, ok, err := db.PeerPolicy(t.Context()); !ok || err != nil || !reflect.DeepEqual(got.DenyNets, pol.DenyNets) {
		t.Errorf("%+v %v", got, err)
	}
	if got, _ := db.Peers(t.Context()); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	storetest.Sound(t, db)
}

package store_test

import (
	"fmt"
	"slices"
	"testing"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
	"agentsite/internal/testing/storetest"
)

// kinds are the kinds of notices that an account can switch off.
var kinds = []string{hub.NoticeMention, hub.NoticeInvited, hub.NoticeAdded, hub.NoticeDown, hub.NoticeUp, hub.NoticeOffer,
	hub.NoticeTaken, hub.NoticeShared, hub.NoticeUnshared, hub.NoticeReport, hub.NoticeProof, hub.NoticeWebhook,
	memory.NoticeKind, hub.NoticePeer}

// A kind that is switched off keeps out its own notices, and no others: "shared" is part of "unshared".
func TestProfiles_SwitchesOffOneKind(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for i, off := range kinds {
		ada := storetest.Account(t, db, fmt.Sprintf("ada-%d", i))
		p, err := db.Profiles.Profile(t.Context(), ada.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		p.Muted = []string{off}
		if err := db.Profiles.SaveProfile(t.Context(), p, clock.Now()); err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			if err := db.AddNotice(t.Context(), hub.Notice{ID: ident.NewID(), AccountID: ada.ID, Kind: kind, Subject: "helper",
				Text: "It happened.", Href: "/agents", CreatedAt: clock.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := db.Notices(t.Context(), ada.ID, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range list {
			got = append(got, n.Kind)
		}
		want := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == off })
		slices.Reverse(want)
		if !slices.Equal(got, want) {
			t.Errorf("without %s: %v", off, got)
		}
	}
}

// A profile keeps its picture over changes of the rest, and lists public agents in the order of their registration.
func TestProfiles(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	read := func() (display, picture string, shown bool) {
		t.Helper()
		p, err := db.Profiles.Profile(t.Context(), "", "ada")
		if err != nil || p.AccountID != ada.ID || p.Name != "ada" {
			t.Fatalf("%+v %v", p, err)
		}
		return p.DisplayName, p.Picture, p.Shown
	}
	if display, picture, shown := read(); display != "" || picture != "" || shown {
		t.Errorf("a new account has %q, %q, %v", display, picture, shown)
	}
	if _, err := db.Profiles.Picture(t.Context(), ada.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := db.Profiles.SavePicture(t.Context(), ada.ID, "abcd", []byte("a picture"), clock.Now()); err != nil {
		t.Fatal(err)
	}
	p, err := db.Profiles.Profile(t.Context(), ada.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	p.DisplayName, p.Shown, p.Theme = "Ada L.", true, "dark"
	if err := db.Profiles.SaveProfile(t.Context(), p, clock.Now()); err != nil {
		t.Fatal(err)
	}
	if display, picture, shown := read(); display != "Ada L." || picture != "abcd" || !shown {
		t.Errorf("%q, %q, %v", display, picture, shown)
	}
	if png, err := db.Profiles.Picture(t.Context(), ada.ID); err != nil || string(png) != "a picture" {
		t.Errorf("%q %v", png, err)
	}
	if err := db.Profiles.SavePicture(t.Context(), ada.ID, "", nil, clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Profiles.Picture(t.Context(), ada.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	var want []string
	for _, name := range []string{"zebra", "apple", "mango"} {
		want = append(want, storetest.Agent(t, db, name, ada).Name)
	}
	for limit := range len(want) + 2 {
		got, err := db.Profiles.PublicAgents(t.Context(), ada.ID, limit)
		if err != nil || !slices.Equal(got, want[:min(limit, len(want))]) {
			t.Errorf("%d: %v %v", limit, got, err)
		}
	}
	if _, err := db.Profiles.Profile(t.Context(), "", "nobody"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

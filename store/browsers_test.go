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
	"agentsite/internal/webpush"
)

// A notice waits for each browser of its account, in order, until it is settled or the browser's session ends.
func TestBrowsers_QueueNotices(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ann, bob := storetest.Account(t, db, "ann"), storetest.Account(t, db, "bob")
	one := storetest.Credential(t, db, ann, account.SessionCredential, time.Hour)
	two := storetest.Credential(t, db, ann, account.SessionCredential, time.Hour)
	old := storetest.Credential(t, db, ann, account.SessionCredential, -time.Hour)
	token := storetest.Credential(t, db, ann, account.TokenCredential, time.Hour)
	put := func(session, accountID string) error {
		return db.Browsers.PutBrowser(ctx, webpush.Browser{SessionID: session, AccountID: accountID, Host: "push.example", Sealed: []byte("x"), CreatedAt: clock.Now()})
	}
	for name, err := range map[string]error{"a token": put(token.ID, ann.ID), "a session of another": put(one.ID, bob.ID), "no session": put("x", ann.ID)} {
		if !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range []account.Credential{one, two, old, one} {
		if err := put(s.ID, ann.ID); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := db.Browsers.Browsers(ctx, ann.ID); err != nil || len(list) != 3 {
		t.Errorf("%d browsers, %v", len(list), err)
	}
	var ids []string
	for _, who := range []string{ann.ID, bob.ID, ann.ID} {
		n := hub.Notice{ID: ident.NewID(), AccountID: who, Kind: hub.NoticeAdded, Text: "t", Href: "/chat", CreatedAt: clock.Now()}
		if err := db.AddNotice(ctx, n); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, n.ID)
	}
	due := func() map[string]string {
		t.Helper()
		list, _, err := db.Browsers.DuePushes(ctx, clock.Now(), 10)
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]string)
		for _, w := range list {
			out[w.Browser.SessionID] = w.Notice.ID
		}
		return out
	}
	expect := func(when string, want map[string]string) {
		t.Helper()
		got := due()
		if len(got) != len(want) {
			t.Errorf("%s: %v", when, got)
		}
		for session, id := range want {
			if got[session] != id {
				t.Errorf("%s: %v", when, got)
			}
		}
	}
	settle := func(o webpush.Outcome) {
		t.Helper()
		list, err := db.Browsers.Browsers(ctx, ann.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list {
			if b.SessionID == o.SessionID && o.Of.IsZero() {
				o.Of = b.CreatedAt
			}
		}
		if err := db.Browsers.SettlePush(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	expect("the oldest, not for an expired session", map[string]string{one.ID: ids[0], two.ID: ids[0]})
	settle(webpush.Outcome{SessionID: one.ID, NoticeID: ids[0], Done: true})
	expect("the next", map[string]string{one.ID: ids[2], two.ID: ids[0]})
	later := clock.Now().Add(time.Hour)
	settle(webpush.Outcome{SessionID: one.ID, NoticeID: ids[2], Failures: 1, NextAt: later})
	expect("a failure", map[string]string{two.ID: ids[0]})
	if _, at, err := db.Browsers.DuePushes(ctx, clock.Now(), 10); err != nil || !at.Equal(later.Truncate(time.Millisecond)) {
		t.Errorf("the next attempt is at %v, %v", at, err)
	}
	settle(webpush.Outcome{SessionID: two.ID, NoticeID: ids[0], Gone: true, Of: clock.Now().Add(-time.Hour)})
	expect("the end of an earlier subscription", map[string]string{two.ID: ids[0]})
	settle(webpush.Outcome{SessionID: two.ID, NoticeID: ids[0], Gone: true})
	expect("a browser that is gone", nil)
	if err := put(two.ID, ann.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := db.DeleteCredentials(ctx, ann.ID, two.ID, account.SessionCredential); err != nil {
		t.Fatal(err)
	}
	list, err := db.Browsers.Browsers(ctx, ann.ID)
	if err != nil || len(list) == 0 || slices.ContainsFunc(list, func(b webpush.Browser) bool { return b.SessionID == two.ID }) {
		t.Errorf("a session has ended, and the browsers are %v, %v", list, err)
	}
	if err := db.Browsers.DropBrowsers(ctx, ann.ID, ""); err != nil {
		t.Fatal(err)
	}
	if list, err := db.Browsers.Browsers(ctx, ann.ID); err != nil || len(list) != 0 {
		t.Errorf("%d browsers are left, %v", len(list), err)
	}
}

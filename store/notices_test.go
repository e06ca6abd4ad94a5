package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestReports(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper, other := storetest.Agent(t, db, "helper", ada), storetest.Agent(t, db, "other", ada)
	report := func(a hub.Agent) hub.Report {
		return hub.Report{ID: ident.NewID(), AgentID: a.ID, AgentName: a.Name, ReporterKind: "person", ReporterID: ada.ID, ReporterHandle: "ada", Reason: "spam", Text: "It sells.", CreatedAt: clock.Now()}
	}
	one, two, three := report(helper), report(other), report(helper)
	for _, r := range []hub.Report{one, two, three} {
		if err := db.AddReport(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	list := func(open bool, agent string, limit int, want ...hub.Report) {
		t.Helper()
		if got, err := db.Reports(t.Context(), open, agent, limit); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n%v %v", got, want, err)
		}
	}
	list(true, "", 10, one, two, three)
	list(true, "", 2, one, two)
	list(true, helper.ID, 10, one, three)
	list(false, "", 10)
	closed := one
	got, err := db.CloseReport(t.Context(), one.ID, "boss", "Looked at.")
	closed.ClosedAt, closed.ClosedBy, closed.Outcome = got.ClosedAt, "boss", "Looked at."
	if err != nil || got != closed || got.ClosedAt.IsZero() {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := db.CloseReport(t.Context(), one.ID, "eve", ""); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if _, err := db.CloseReport(t.Context(), ident.NewID(), "eve", ""); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	list(true, "", 10, two, three)
	list(false, "", 10, closed)
	list(false, other.ID, 10)
	for range 199 {
		if err := db.AddReport(t.Context(), report(helper)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.AddReport(t.Context(), report(helper)); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if err := db.AddReport(t.Context(), report(other)); err != nil {
		t.Error(err)
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	var all []hub.Notice
	for i := range 205 {
		n := hub.Notice{ID: ident.NewID(), AccountID: ada.ID, Kind: hub.NoticeDown, Subject: "helper", Text: fmt.Sprint(i), Href: "/agents/helper", CreatedAt: clock.Now()}
		if err := db.AddNotice(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	if err := db.AddNotice(t.Context(), hub.Notice{ID: ident.NewID(), AccountID: bob.ID}); err != nil {
		t.Fatal(err)
	}
	if err := db.AddNotice(t.Context(), hub.Notice{ID: ident.NewID(), AccountID: ident.NewID()}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	slices.Reverse(all)
	if list, err := db.Notices(t.Context(), ada.ID, 300); err != nil || !slices.Equal(list, all[:200]) {
		t.Error(len(list), err)
	}
	if list, err := db.Notices(t.Context(), ada.ID, 3); err != nil || !slices.Equal(list, all[:3]) {
		t.Error(list, err)
	}
	unread := func(who string, want int) {
		t.Helper()
		if n, err := db.Unread(t.Context(), who); err != nil || n != want {
			t.Errorf("%d unread, want %d, %v", n, want, err)
		}
	}
	unread(ada.ID, 200)
	if err := db.MarkNotices(t.Context(), ada.ID, all[4].ID); err != nil {
		t.Fatal(err)
	}
	unread(ada.ID, 4)
	unread(bob.ID, 1)
	list, err := db.Notices(t.Context(), ada.ID, 5)
	if err != nil || !list[3].ReadAt.IsZero() || list[4].ReadAt.IsZero() {
		t.Error(list, err)
	}
}

func TestSearches(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	now := clock.Now()
	one := hub.Saved{ID: ident.NewID(), AccountID: ada.ID, Title: "Images", Query: "q=image", SeenAt: now, CreatedAt: now}
	two := hub.Saved{ID: ident.NewID(), AccountID: ada.ID, Title: "Maps", Query: "q=map", SeenAt: now, CreatedAt: now}
	for _, s := range []hub.Saved{one, two} {
		if err := db.SaveSearch(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SaveSearch(t.Context(), one); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	two.SeenAt = now.Add(time.Hour)
	if err := db.SeenSearch(t.Context(), ada.ID, two.ID, two.SeenAt); err != nil {
		t.Fatal(err)
	}
	if err := db.SeenSearch(t.Context(), ada.ID, two.ID, now); err != nil { // older news
		t.Fatal(err)
	}
	if list, err := db.SavedSearches(t.Context(), ada.ID); err != nil || !slices.Equal(list, []hub.Saved{one, two}) {
		t.Errorf("%+v %v", list, err)
	}
	for what, err := range map[string]error{"see": db.SeenSearch(t.Context(), bob.ID, one.ID, now), "delete": db.DeleteSearch(t.Context(), bob.ID, one.ID)} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s somebody else's: %v", what, err)
		}
	}
	if err := db.DeleteSearch(t.Context(), ada.ID, one.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := db.SavedSearches(t.Context(), ada.ID); err != nil || len(list) != 1 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestModelDays(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	spent := func(day string, want map[string]int64) {
		t.Helper()
		if got, err := db.Spent(t.Context(), day); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v, %v", day, got, want, err)
		}
	}
	add := func(day, who string, tokens int64) {
		t.Helper()
		if err := db.Add(t.Context(), day, who, tokens); err != nil {
			t.Fatal(err)
		}
	}
	add("2026-01-01", "ada", 5)
	add("2026-01-01", "ada", 6)
	add("2026-01-01", "bob", 1)
	add("2026-01-02", "bob", 2)
	spent("2026-01-01", map[string]int64{"ada": 11, "bob": 1})
	spent("2026-01-03", map[string]int64{})
	for range 3 {
		add("2026-01-02", "eve", 1<<63-1) // no sum overflows
	}
	spent("2026-01-02", map[string]int64{"bob": 2, "eve": 1 << 50})
	add("2026-03-02", "ada", 0)
	spent("2026-01-01", map[string]int64{"ada": 11, "bob": 1})
	add("2026-03-03", "ada", 1)
	spent("2026-01-01", map[string]int64{})
	spent("2026-01-02", map[string]int64{"bob": 2, "eve": 1 << 50})
	for _, err := range []error{db.Add(t.Context(), "2026-01-01", "ada", -1), db.Add(t.Context(), "yesterday", "ada", 1)} {
		if !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
	}
}

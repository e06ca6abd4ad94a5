package hub_test

import (
	"context"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCoOwner_ChangesButDoesNotGiveAway(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Visibility = ptr(hub.Private) }))
	_, err := w.Get(ctx, w.bob, "helper")
	kind(t, "a stranger sees a private agent", err, fault.NotFound)
	must(t, w.AddCoOwner(ctx, w.ada, "helper", "@bob"))
	must(t, w.AddCoOwner(ctx, w.ada, "helper", "bob")) // again does nothing

	if _, err := w.Update(ctx, w.bob, "helper", hub.Draft{Title: ptr("By Bob")}); err != nil {
		t.Errorf("a co-owner cannot edit: %v", err)
	}
	if _, err := w.Callable(ctx, w.bob, "helper"); err != nil {
		t.Errorf("a co-owner cannot call: %v", err)
	}
	if _, err := w.Usage.Stats(ctx, w.bob, "helper"); err != nil {
		t.Errorf("a co-owner cannot see the use: %v", err)
	}
	mine, _, err := w.Mine(ctx, w.bob, "")
	if err != nil || len(mine) != 1 || mine[0].Name != "helper" {
		t.Errorf("a co-owner's list: %v, %v", mine, err)
	}
	kind(t, "a co-owner removes it", w.Delete(ctx, w.bob, "helper"), fault.Forbidden)
	kind(t, "a co-owner gives it away", w.Offer(ctx, w.bob, "helper", "boss"), fault.Forbidden)
	kind(t, "a co-owner adds another", w.AddCoOwner(ctx, w.bob, "helper", "boss"), fault.Forbidden)
	kind(t, "nobody of that name", w.AddCoOwner(ctx, w.ada, "helper", "nobody"), fault.Invalid)
	list, err := w.CoOwners(ctx, w.ada, "helper")
	if err != nil || len(list) != 1 || list[0].Name != "bob" {
		t.Errorf("co-owners: %v, %v", list, err)
	}
	if n := w.notices(w.bob); len(n) != 1 || n[0].Kind != hub.NoticeShared {
		t.Errorf("the co-owner was told %v", n)
	}
	must(t, w.RemoveCoOwner(ctx, w.bob, "helper", "bob")) // leaves
	_, err = w.Get(ctx, w.bob, "helper")
	kind(t, "who left still sees it", err, fault.NotFound)
}

// notices is what an account was told, newest first.
func (w *world) notices(who ident.Actor) []hub.Notice {
	w.t.Helper()
	list, err := w.Notices.List(context.Background(), who)
	must(w.t, err)
	return list
}

func TestTransfer_NeedsBothSides(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	a := w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-1") }))
	kind(t, "without an offer", w.Answer(ctx, w.bob, "helper", true), fault.NotFound)
	kind(t, "to oneself", w.Offer(ctx, w.ada, "helper", "ada"), fault.Invalid)
	must(t, w.Offer(ctx, w.ada, "helper", "bob"))
	if to, ok, err := w.Offered(ctx, w.ada, "helper"); err != nil || !ok || to.Name != "bob" {
		t.Errorf("offered to %v, %v, %v", to, ok, err)
	}
	kind(t, "somebody else accepts", w.Answer(ctx, w.boss, "helper", true), fault.NotFound)
	must(t, w.Offer(ctx, w.ada, "helper", "")) // taken back
	kind(t, "an offer that was taken back", w.Answer(ctx, w.bob, "helper", true), fault.NotFound)

	must(t, w.Offer(ctx, w.ada, "helper", "bob"))
	must(t, w.Answer(ctx, w.bob, "helper", false))
	kind(t, "a declined offer", w.Answer(ctx, w.bob, "helper", true), fault.NotFound)

	must(t, w.Offer(ctx, w.ada, "helper", "bob"))
	offers, err := w.Offers(ctx, w.bob)
	if err != nil || len(offers) != 1 || offers[0].Agent.Name != "helper" {
		t.Fatalf("offers: %v, %v", offers, err)
	}
	must(t, w.Answer(ctx, w.bob, "helper", true))
	now, err := w.Get(ctx, w.bob, "helper")
	if err != nil || now.OwnerName != "bob" || now.ID != a.ID {
		t.Fatalf("%+v, %v", now, err)
	}
	_, err = w.Update(ctx, w.ada, "helper", hub.Draft{Title: ptr("Still mine")})
	kind(t, "the former owner edits", err, fault.Forbidden)
	if _, err := w.Update(ctx, w.bob, "helper", hub.Draft{Title: ptr("Now mine")}); err != nil {
		t.Error(err)
	}
	page, err := w.Search(ctx, ident.Actor{}, hub.Query{Text: "now mine"})
	if err != nil || len(page.Results) != 1 || page.Results[0].Agent.OwnerName != "bob" {
		t.Errorf("the search shows %v, %v", page.Results, err)
	}
}

func TestHold_OwnerCannotUndo(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	_, err := w.Hold(ctx, w.bob, "helper", true, "")
	kind(t, "a stranger", err, fault.Forbidden)
	a, err := w.Hold(ctx, w.boss, "helper", true, "It pretends to be a bank.")
	if err != nil || a.Status.State != hub.Withdrawn || !a.Status.Held {
		t.Fatal(a.Status, err)
	}
	_, err = w.Update(ctx, w.ada, "helper", hub.Draft{Status: &hub.Status{State: hub.Active}})
	kind(t, "the owner puts it back", err, fault.Forbidden)
	if a, err := w.Update(ctx, w.ada, "helper", hub.Draft{Title: ptr("Harmless")}); err != nil || !a.Status.Held || a.Status.State != hub.Withdrawn {
		t.Errorf("an edit of the owner: %+v, %v", a.Status, err)
	}
	if _, err := w.Rollback(ctx, w.ada, "helper", 1, 0); err != nil {
		t.Error(err)
	}
	if a, err := w.Get(ctx, w.ada, "helper"); err != nil || a.Status.State != hub.Withdrawn || !a.Status.Held {
		t.Errorf("after going back to version 1: %+v, %v", a.Status, err)
	}
	_, err = w.Callable(ctx, w.ada, "helper")
	kind(t, "called while held", err, fault.Conflict)
	if n := w.notices(w.ada); len(n) == 0 || n[0].Kind != hub.NoticeHeld {
		t.Errorf("the owner was told %v", n)
	}
	if a, err = w.Hold(ctx, w.boss, "helper", false, ""); err != nil || a.Status.State != hub.Active || a.Status.Held {
		t.Error(a.Status, err)
	}
}

func TestReport_ReachesTheOperatorsAndComesBack(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	for _, c := range []struct{ reason, text string }{{"", "x"}, {"nonsense", "x"}, {"other", " "}} {
		kind(t, c.reason, w.Complaints.Submit(ctx, w.bob, "helper", c.reason, c.text), fault.Invalid)
	}
	must(t, w.Complaints.Submit(ctx, w.bob, "helper", "spam", "It sells things.\x00\u202e"))
	_, err := w.Complaints.List(ctx, w.ada, true)
	kind(t, "the owner reads reports", err, fault.Forbidden)
	list, err := w.Complaints.List(ctx, w.boss, true)
	if err != nil || len(list) != 1 || list[0].Text != "It sells things." || list[0].ReporterHandle != "bob" || list[0].AgentName != "helper" {
		t.Fatalf("%+v, %v", list, err)
	}
	must(t, w.Complaints.Close(ctx, w.boss, list[0].ID, "We asked its owner to stop."))
	if list, err = w.Complaints.List(ctx, w.boss, true); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err = w.Complaints.List(ctx, w.boss, false); err != nil || len(list) != 1 || list[0].ClosedBy != "boss" {
		t.Errorf("%v, %v", list, err)
	}
	if n := w.notices(w.bob); len(n) != 1 || n[0].Kind != hub.NoticeReport {
		t.Errorf("the reporter was told %v", n)
	}
	limited := false
	for range 10 {
		limited = limited || fault.Is(w.Complaints.Submit(ctx, w.bob, "helper", "spam", "again"), fault.RateLimited)
	}
	if !limited {
		t.Error("nobody bounds reports")
	}
}

func TestNotices_AreSeenOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	must(t, w.Offer(ctx, w.ada, "helper", "bob"))
	if n, err := w.Notices.CountUnread(ctx, w.bob); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	list := w.notices(w.bob)
	kind(t, "no id", w.Notices.MarkRead(ctx, w.bob, "x"), fault.Invalid)
	must(t, w.Notices.MarkRead(ctx, w.ada, list[0].ID)) // another's: changes nothing
	if n, _ := w.Notices.CountUnread(ctx, w.bob); n != 1 {
		t.Error("somebody else read it")
	}
	must(t, w.Notices.MarkRead(ctx, w.bob, list[0].ID))
	if n, _ := w.Notices.CountUnread(ctx, w.bob); n != 0 {
		t.Error("still unread")
	}
}

func TestSaved_KeptOnceAndBounded(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	one, err := w.Searches.Save(ctx, w.ada, "", "q=pdf+reader&kind=mcp&cursor=abc")
	if err != nil || one.Title != "pdf reader" || one.Query != "kind=mcp&q=pdf+reader" {
		t.Fatalf("%+v, %v", one, err)
	}
	again, err := w.Searches.Save(ctx, w.ada, "Mine", "kind=mcp&q=pdf+reader")
	if err != nil || again.ID != one.ID {
		t.Errorf("the same search twice: %+v, %v", again, err)
	}
	_, err = w.Searches.Save(ctx, w.ada, "", "%zz")
	kind(t, "no query", err, fault.Invalid)
	_, err = w.Searches.Save(ctx, ident.Actor{Kind: ident.Guest, ID: ident.NewID()}, "", "q=x")
	kind(t, "a guest", err, fault.Unauthenticated)
	kind(t, "another's", w.Searches.Delete(ctx, w.bob, one.ID), fault.NotFound)
	list, err := w.Searches.List(ctx, w.ada, func(query string, since time.Time) int {
		if query != one.Query || since.IsZero() {
			t.Errorf("asked for %q since %v", query, since)
		}
		return 3
	})
	if err != nil || len(list) != 1 || list[0].New != 3 {
		t.Errorf("%+v, %v", list, err)
	}
	must(t, w.Searches.Delete(ctx, w.ada, one.ID))
	if list, _ = w.Searches.List(ctx, w.ada, func(string, time.Time) int { return 0 }); len(list) != 0 {
		t.Error("still there")
	}
}

func TestTraces_AreWhoseTheCallWas(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	a := w.publish(w.ada, draft("helper"))
	id := w.call(w.ada, a)
	w.Usage.AddTraces(ctx, a.ID, id, []hub.Trace{{Sent: true, Head: "POST /", Body: "what Ada said"}})
	if list, err := w.Usage.Traces(ctx, w.ada, "helper", id); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	must(t, w.AddCoOwner(ctx, w.ada, "helper", "bob"))
	if list, err := w.Usage.Traces(ctx, w.bob, "helper", id); err != nil || len(list) != 0 {
		t.Errorf("a co-owner reads %v, %v", list, err)
	}
	_, err := w.Usage.Traces(ctx, w.boss, "helper", id)
	kind(t, "the operator", err, fault.Forbidden)
	must(t, w.Offer(ctx, w.ada, "helper", "boss"))
	must(t, w.Answer(ctx, w.boss, "helper", true))
	if list, err := w.Usage.Traces(ctx, w.boss, "helper", id); err != nil || len(list) != 0 {
		t.Errorf("the next owner reads %v, %v", list, err)
	}
	stats, err := w.Usage.Stats(ctx, w.boss, "helper")
	if err != nil || len(stats.Calls) != 1 || stats.Calls[0].Own {
		t.Errorf("%+v, %v", stats, err)
	}
}

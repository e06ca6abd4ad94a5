package hub_test

import (
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func TestAdmit_OwnersLimits(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	guest := ident.Actor{Kind: ident.Guest, ID: ident.NewID(), Addr: "192.0.2.1"}
	w.publish(w.ada, draft("helper"))
	limits := func(l hub.Limits) {
		t.Helper()
		if _, err := w.Update(ctx, w.ada, "helper", hub.Draft{Limits: &l}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Admit(ctx, guest, "helper", 1<<16))

	limits(hub.Limits{Callers: hub.AccountCallers})
	kind(t, "a guest of an agent for accounts", w.Admit(ctx, guest, "helper", 1), fault.Forbidden)
	must(t, w.Admit(ctx, w.bob, "helper", 1))

	limits(hub.Limits{Callers: hub.ListedCallers, Listed: []string{"@Boss", "boss"}})
	kind(t, "somebody not listed", w.Admit(ctx, w.bob, "helper", 1), fault.Forbidden)
	must(t, w.Admit(ctx, w.boss, "helper", 1))
	must(t, w.Admit(ctx, w.ada, "helper", 1))

	limits(hub.Limits{MaxBytes: 10})
	must(t, w.Admit(ctx, w.bob, "helper", 10))
	kind(t, "too long", w.Admit(ctx, w.bob, "helper", 11), fault.Invalid)
	must(t, w.Admit(ctx, w.ada, "helper", 11))

	limits(hub.Limits{PerMinute: 3})
	for range 3 {
		must(t, w.Admit(ctx, w.bob, "helper", 1))
	}
	kind(t, "the fourth of a minute", w.Admit(ctx, w.bob, "helper", 1), fault.RateLimited)
	must(t, w.Admit(ctx, guest, "helper", 1)) // each caller by itself
	must(t, w.Admit(ctx, w.ada, "helper", 1))

	for _, bad := range []hub.Limits{{Callers: "friends"}, {Callers: hub.ListedCallers}, {PerMinute: -1}, {PerDay: 1 << 40}, {MaxBytes: -5}, {Callers: hub.ListedCallers, Listed: []string{"a b"}}} {
		_, err := w.Update(ctx, w.ada, "helper", hub.Draft{Limits: &bad})
		kind(t, bad.String(), err, fault.Invalid)
	}
}

func TestAdmit_PerDayCountsEverybody(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	a := w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Limits = &hub.Limits{PerDay: 2} }))
	for range 2 {
		must(t, w.Admit(ctx, w.bob, "helper", 1))
		w.call(w.bob, a)
	}
	kind(t, "the third of a day", w.Admit(ctx, w.boss, "helper", 1), fault.RateLimited)
	must(t, w.Admit(ctx, w.ada, "helper", 1))
	u, err := w.Usage.Count(ctx, a)
	if err != nil || u.Calls != 2 || u.Week != 2 {
		t.Errorf("%+v, %v", u, err)
	}
}

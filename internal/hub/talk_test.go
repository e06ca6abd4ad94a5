package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func TestTalkableList_OwnAndPublicOnes(t *testing.T) {
	t.Parallel()
	w := open(t)
	of := func(v hub.Visibility) func(*hub.Draft) { return func(d *hub.Draft) { d.Visibility = &v } }
	w.publish(w.bob, draft("open-one", of(hub.Public)))
	w.publish(w.ada, draft("by-name", of(hub.Unlisted)))
	w.publish(w.ada, draft("mine-only", of(hub.Private)))
	w.publish(w.ada, draft("at-rest"))
	if _, err := w.Update(t.Context(), w.ada, "at-rest", hub.Draft{Status: &hub.Status{State: hub.Withdrawn}}); err != nil {
		t.Fatal(err)
	}
	guest := ident.Actor{Kind: ident.Guest}
	names := func(who ident.Actor, limit int) string {
		list, err := w.TalkableList(t.Context(), who, limit)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range list {
			out = append(out, a.Name)
			// Each of them is one by its name too.
			if _, err := w.Talkable(t.Context(), who, a.Name); err != nil {
				t.Error(err)
			}
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		who  ident.Actor
		want string
	}{{guest, "open-one"}, {w.bob, "open-one"}, {w.ada, "by-name mine-only open-one"}, {narrowed(w.ada, ident.ChatWrite), "by-name mine-only open-one"}} {
		if got := names(c.who, 100); len(strings.Fields(got)) != len(strings.Fields(c.want)) {
			t.Errorf("%s may talk to %q, want %q", c.who.Name, got, c.want)
		}
	}
	if n := len(strings.Fields(names(w.ada, 2))); n != 2 {
		t.Errorf("%d of at most 2", n)
	}
	_, err := w.TalkableList(t.Context(), narrowed(w.ada, ident.Tasks), 10)
	kind(t, "without a scope", err, fault.Forbidden)
	_, err = w.Talkable(t.Context(), guest, "by-name")
	kind(t, "a visitor asks for an unlisted one", err, fault.NotFound)
}

func TestTalkableList_IsBounded(t *testing.T) {
	t.Parallel()
	w := open(t)
	for i := range 120 {
		w.index.Put(hub.Agent{ID: ident.NewID(), Name: fmt.Sprintf("a-%03d", i), Visibility: hub.Public, Liveness: hub.Liveness{State: []hub.Live{hub.Unreachable, hub.Alive}[i%2]}})
	}
	list, err := w.TalkableList(t.Context(), ident.Actor{Kind: ident.Guest}, 110)
	if err != nil || len(list) != 110 {
		t.Fatal(len(list), err)
	}
	for i, a := range list {
		if (a.Liveness.State == hub.Alive) != (i < 60) || i > 0 && i != 60 && a.Name <= list[i-1].Name {
			t.Fatalf("%d is %s, which is %s", i, a.Name, a.Liveness.State)
		}
	}
}

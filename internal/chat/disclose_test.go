package chat_test

import (
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func TestPost_TextLeavesOnlyOnceTold(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "far", "calc", "bob")
	page := func(s string) chat.Draft {
		d := w.draft(s)
		d.Face, d.MustTell = "page", true
		return d
	}
	d := page("@far hello")
	_, err := w.Post(t.Context(), w.ada, room, d)
	kind(t, "untold", err, fault.Conflict)
	if f := fault.As(err); !strings.Contains(f.Fields["told"], "far.example") || !strings.Contains(f.Fields["told"], "far") {
		t.Errorf("%+v", f)
	}
	if n := len(w.messages(room)); n != 0 || w.book.calls[w.ada.ID+" far"] != 0 {
		t.Errorf("%d messages are there, %v", n, w.book.calls)
	}
	if got := w.post(w.ada, room, page("@calc hello")); names(got.Tasks) != "calc" {
		t.Error("one that stays here must be told of")
	}
	d.Told, d.Share = []string{"@far"}, chat.ShareOwn
	if k := w.post(w.ada, room, d).Tasks[0]; k.Share != string(chat.ShareOwn) {
		t.Errorf("%+v", k)
	}
	if k := w.post(w.ada, room, page("@far and again")).Tasks[0]; k.Share != string(chat.ShareOwn) {
		t.Errorf("it is not remembered: %+v", k)
	}
	_, err = w.Post(t.Context(), w.bob, room, page("@far hello"))
	kind(t, "told to somebody else", err, fault.Conflict)
	list, err := w.Disclosures(t.Context(), w.ada, room)
	if err != nil || len(list) != 1 || list[0].Agent != "far" || list[0].Host != "far.example" || list[0].ToldAt.IsZero() || list[0].Share != chat.ShareOwn {
		t.Errorf("%+v %v", list, err)
	}
	// Elsewhere now: told of the old place is not told.
	ref := w.book.agents["far"]
	ref.Remote = "farther.example"
	w.book.agents["far"] = ref
	_, err = w.Post(t.Context(), w.ada, room, page("@far hello"))
	kind(t, "of another host", err, fault.Conflict)
	if list, err = w.Disclosures(t.Context(), w.ada, room); err != nil || list[0].Host != "farther.example" || !list[0].ToldAt.IsZero() {
		t.Errorf("%+v %v", list, err)
	}
	if k := w.say(w.ada, room, "@far by a program").Tasks[0]; k.AgentHandle != "far" {
		t.Error("programs are exempt")
	}
	c, err := w.Get(t.Context(), w.ada, room)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Members {
		if want := map[string]string{"far": "farther.example"}[m.Handle]; m.Remote != want {
			t.Errorf("%s is at %q", m.Handle, m.Remote)
		}
	}
	// Told with a message to somebody else is told.
	d = page("@calc hello")
	d.Told, d.Share = []string{"far", "calc", "stranger"}, chat.ShareNothing
	w.post(w.bob, room, d)
	if k := w.post(w.bob, room, page("@far hello")).Tasks[0]; k.Share != string(chat.ShareNothing) {
		t.Errorf("%+v", k)
	}
	d = page("@far hello")
	d.Share = "some"
	_, err = w.Post(t.Context(), w.ada, room, d)
	kind(t, "an unknown share", err, fault.Invalid)
}

func TestDisclose(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "far", "calc")
	tell := func(who ident.Actor, agent string, s chat.Share) error {
		return w.Disclose(t.Context(), who, room, agent, s)
	}
	kind(t, "a stranger", tell(w.bob, "far", chat.ShareAll), fault.NotFound)
	kind(t, "one that stays here", tell(w.ada, "calc", chat.ShareAll), fault.Conflict)
	kind(t, "one that is not here", tell(w.ada, "guide", chat.ShareAll), fault.NotFound)
	kind(t, "an unknown share", tell(w.ada, "far", "x"), fault.Invalid)
	kind(t, "told", tell(w.ada, "@far", chat.ShareNothing), "")
	d := w.draft("@far hello")
	d.MustTell = true
	if k := w.post(w.ada, room, d).Tasks[0]; k.Share != string(chat.ShareNothing) {
		t.Errorf("%+v", k)
	}
	g := guest()
	c, err := w.Create(t.Context(), g, "", []string{"far"})
	if err != nil {
		t.Fatal(err)
	}
	kind(t, "a guest", w.Disclose(t.Context(), g, c.ID, "far", chat.ShareAll), "")
}

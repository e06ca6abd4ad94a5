package chat_test

import (
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func TestSet_AllOrNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "bob")
	before, err := w.Get(t.Context(), w.ada, room)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]chat.Change{
		"speaks": {Speaks: ptr(chat.Speaks("x"))}, "speaker": {Speaker: ptr("keeper")}, "no speaker": {Speaks: ptr(chat.SpeaksAgent)}, "a person speaks": {Speaker: ptr("bob")},
		"past": {Past: ptr(chat.Past("x"))}, "hops": {Hops: ptr(chat.MaxSettings.Hops + 1)}, "turns": {Turns: ptr(-1)}, "budget": {Budget: ptr(chat.MaxSettings.Budget + 1)},
		"title": {Title: ptr(" \u202e ")}, "long": {Title: ptr(strings.Repeat("x", chat.MaxTitleRunes+1))}, "notify": {Notify: ptr(chat.Notify("x"))},
	} {
		c.Pinned = ptr(true) // right in itself
		if c.Title == nil {
			c.Title = ptr("Another")
		}
		_, err := w.Set(t.Context(), w.ada, room, c)
		kind(t, what, err, fault.Invalid)
	}
	after, err := w.Get(t.Context(), w.ada, room)
	if err != nil || after.Settings != before.Settings || after.Mine != before.Mine || after.Title != before.Title || len(w.messages(room)) != 0 {
		t.Errorf("%+v became %+v", before, after)
	}
	c, err := w.Set(t.Context(), w.ada, room, chat.Change{Speaker: ptr("@guide"), Past: ptr(chat.PastNothing), Hops: ptr(1), Turns: ptr(2), Budget: ptr(3 << 10), Title: ptr("Plans"), Notify: ptr(chat.NotifyMentions), Archived: ptr(true)})
	want := chat.Settings{Speaks: chat.SpeaksAgent, SpeakerID: w.agents["guide"].ID, Past: chat.PastNothing, Hops: 1, Turns: 2, Budget: 3 << 10}
	if err != nil || c.Settings != want || c.Title != "Plans" || c.Mine.Notify != chat.NotifyMentions || !c.Mine.Archived || c.Mine.Pinned {
		t.Errorf("%+v %v", c, err)
	}
	list := w.messages(room)
	if len(list) != 2 || !strings.Contains(task.PlainText(list[1].Parts), "ada lets guide answer what is said to nobody") {
		t.Errorf("%+v", list)
	}
	if bobs, err := w.Get(t.Context(), w.bob, room); err != nil || bobs.Mine.Archived || bobs.Mine.Notify != "" {
		t.Errorf("what is ada's own became bob's: %+v %v", bobs.Mine, err)
	}
	if _, err := w.Set(t.Context(), w.ada, room, chat.Change{Hops: ptr(1)}); err != nil || len(w.messages(room)) != 2 {
		t.Error("no change, and something was said", err)
	}
	if c, err = w.Set(t.Context(), w.ada, room, chat.Change{Speaks: ptr(chat.SpeaksTurns)}); err != nil || c.Settings.SpeakerID != "" {
		t.Errorf("%+v %v", c.Settings, err)
	}
	storetest.Sound(t, w.db)
}

func TestSetRole_KeepsAnOwner(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "bob")
	role := func(who ident.Actor, handle, r string) error { return w.SetRole(t.Context(), who, room, handle, r) }
	kind(t, "the last owner steps down", role(w.ada, "ada", chat.RoleMember), fault.Conflict)
	kind(t, "a member", role(w.bob, "bob", chat.RoleOwner), fault.Forbidden)
	kind(t, "an agent", role(w.ada, "calc", chat.RoleReader), fault.Conflict)
	kind(t, "nobody", role(w.ada, "eve", chat.RoleReader), fault.NotFound)
	kind(t, "no role", role(w.ada, "bob", "king"), fault.Invalid)
	k := w.say(w.bob, room, "@calc go").Tasks[0]
	kind(t, "a reader", role(w.ada, "@bob", chat.RoleReader), "")
	if s := task.PlainText(w.last(room).Parts); w.task(k.ID).State != task.Canceled || !strings.Contains(s, "may only read") {
		t.Errorf("its work goes on: %s, %q", w.task(k.ID).State, s)
	}
	kind(t, "an owner", role(w.ada, "bob", chat.RoleOwner), "")
	if s := task.PlainText(w.last(room).Parts); s != "ada made bob an owner" {
		t.Errorf("%q", s)
	}
	_, secret := w.link(w.ada, room, chat.LinkDraft{Kind: chat.JoinLink})
	kind(t, "one of two steps down", role(w.ada, "ada", chat.RoleReader), "")
	kind(t, "who is one no more", role(w.ada, "ada", chat.RoleOwner), fault.Forbidden)
	_, err := w.JoinByLink(t.Context(), w.eve, secret)
	kind(t, "by the word of who is no owner any more", err, fault.NotFound)
	storetest.Sound(t, w.db)
}

func TestPrefs(t *testing.T) {
	t.Parallel()
	w := open(t)
	for what, p := range map[string]chat.Prefs{"notify": {Notify: "x"}, "from": {QuietFrom: 1440}, "to": {QuietTo: -1}, "zone": {Zone: "Mars/Base"}, "path": {Zone: "../../etc/passwd"}, "local": {Zone: "Local"}} {
		kind(t, what, w.Preferences.Set(t.Context(), w.ada, p), fault.Invalid)
	}
	want := chat.Prefs{Notify: chat.NotifyMentions, QuietFrom: 1320, QuietTo: 420, Zone: "Europe/Berlin"}
	kind(t, "good ones", w.Preferences.Set(t.Context(), w.ada, want), "")
	if p, err := w.Preferences.Get(t.Context(), w.ada); err != nil || p != want {
		t.Error(p, err)
	}
	if p, err := w.Preferences.Get(t.Context(), w.bob); err != nil || p != (chat.Prefs{}) {
		t.Error(p, err)
	}
	_, err := w.Preferences.Get(t.Context(), guest())
	kind(t, "a guest", err, fault.Unauthenticated)
	kind(t, "a guest", w.Preferences.Set(t.Context(), guest(), want), fault.Unauthenticated)
}

func TestSearch_OnlyWhatOneSees(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "bob")
	w.say(w.ada, room, "an elephant before")
	w.set(room, chat.Change{Past: ptr(chat.PastNothing)})
	if _, err := w.Invite(t.Context(), w.ada, room, "eve"); err != nil {
		t.Fatal(err)
	}
	w.say(w.ada, room, "an elephant after")
	for who, want := range map[*ident.Actor]int{&w.ada: 2, &w.eve: 1} {
		list, _, err := w.Search(t.Context(), *who, "elephant", chat.Point{}, 10)
		if err != nil || len(list) != want {
			t.Errorf("%s finds %d, want %d: %v", who.Name, len(list), want, err)
		}
	}
	if list, _, err := w.Search(t.Context(), guest(), "elephant", chat.Point{}, 10); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	for _, q := range []string{"", " \n", strings.Repeat("x", chat.MaxSearchBytes+1)} {
		_, _, err := w.Search(t.Context(), w.ada, q, chat.Point{}, 10)
		kind(t, q, err, fault.Invalid)
	}
	for _, q := range []string{`"`, `a"b`, "NEAR(", "*", "room:x", "a AND", "-", "^x", "{a b}:c", "'; DROP TABLE messages; --"} {
		if _, _, err := w.Search(t.Context(), w.ada, q, chat.Point{}, 10); err != nil {
			t.Errorf("%q: %v", q, err)
		}
	}
}

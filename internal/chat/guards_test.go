package chat_test

import (
	"context"
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// TestGuards_WhoMayDoWhat tries every operation on a conversation as everybody
// there is. What is absent and what is not one's own look alike.
func TestGuards_WhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	token := func(a ident.Actor, scopes ...ident.Scope) ident.Actor {
		a.Narrowed, a.Scopes = true, scopes
		return a
	}
	op := w.eve
	op.Kind = ident.Operator
	type actor struct {
		name string
		ident.Actor
	}
	strangers := []actor{{"a stranger", w.eve}, {"an operator", op}, {"a guest", guest()}}
	powerless := []actor{{"a token without scopes", token(w.ada)}, {"a token for tasks", token(w.ada, ident.Tasks)}}
	reader := token(w.ada, ident.ChatRead)
	const hash = "0000000000000000000000000000000000000000000000000000000000000000"
	ops := []struct {
		name   string
		writes bool
		person bool // guests are told to sign in
		do     func(ctx context.Context, a ident.Actor, room string, seq int64) error
	}{
		{"get", false, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, err := w.Get(ctx, a, room)
			return err
		}},
		{"messages", false, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, _, err := w.Messages(ctx, a, room, chat.Span{Limit: 10, Newest: true})
			return err
		}},
		{"message", false, false, func(ctx context.Context, a ident.Actor, room string, seq int64) error {
			_, err := w.Message(ctx, a, room, seq)
			return err
		}},
		{"edits", false, false, func(ctx context.Context, a ident.Actor, room string, seq int64) error {
			_, _, err := w.Edits(ctx, a, room, seq, 0)
			return err
		}},
		{"read", false, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error { return w.Read(ctx, a, room, 1) }},
		{"links", false, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, err := w.Links(ctx, a, room)
			return err
		}},
		{"disclosures", false, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, err := w.Disclosures(ctx, a, room)
			return err
		}},
		{"post", true, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, err := w.Post(ctx, a, room, w.draft("x @bob"))
			return err
		}},
		{"edit", true, false, func(ctx context.Context, a ident.Actor, room string, seq int64) error {
			_, err := w.Edit(ctx, a, room, seq, text("y"))
			return err
		}},
		{"react", true, false, func(ctx context.Context, a ident.Actor, room string, seq int64) error {
			_, err := w.React(ctx, a, room, seq, "👍", true)
			return err
		}},
		{"branch", true, false, func(ctx context.Context, a ident.Actor, room string, seq int64) error {
			_, err := w.Branch(ctx, a, room, seq)
			return err
		}},
		{"set", true, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, err := w.Set(ctx, a, room, chat.Change{Hops: ptr(2)})
			return err
		}},
		{"role", true, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			return w.SetRole(ctx, a, room, "bob", chat.RoleMember)
		}},
		{"invite", true, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, err := w.Invite(ctx, a, room, "calc")
			return err
		}},
		{"disclose", true, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			return w.Disclose(ctx, a, room, "far", chat.ShareAll)
		}},
		{"new link", true, true, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			_, _, err := w.NewLink(ctx, a, room, chat.LinkDraft{Kind: chat.ReadLink})
			return err
		}},
		{"unsay", true, false, func(ctx context.Context, a ident.Actor, room string, seq int64) error {
			_, err := w.DeleteMessage(ctx, a, room, seq)
			return err
		}},
		{"remove", true, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			return w.Remove(ctx, a, room, "bob")
		}},
		{"delete", true, false, func(ctx context.Context, a ident.Actor, room string, _ int64) error {
			return w.DeleteConversation(ctx, a, room)
		}},
	}
	for _, op := range ops {
		room := w.room(w.ada, "bob", "far")
		m := w.say(w.ada, room, "hello @bob").Message
		for _, who := range strangers {
			here, absent, odd := op.do(ctx, who.Actor, room, m.Seq), op.do(ctx, who.Actor, ident.NewID(), m.Seq), op.do(ctx, who.Actor, "' OR 1=1 --", m.Seq)
			want := fault.NotFound
			if op.person && who.Kind == ident.Guest {
				want = fault.Unauthenticated
			}
			kind(t, op.name+" by "+who.name, here, want)
			if here != nil && (absent == nil || absent.Error() != here.Error() || odd.Error() != here.Error()) {
				t.Errorf("%s by %s: %v here, %v of one that is absent", op.name, who.name, here, absent)
			}
		}
		for _, who := range powerless {
			kind(t, op.name+" by "+who.name, op.do(ctx, who.Actor, room, m.Seq), fault.Forbidden)
		}
		kind(t, op.name+" by nobody", op.do(ctx, ident.Actor{}, room, m.Seq), fault.Unauthenticated)
		if op.writes {
			kind(t, op.name+" by a reading token", op.do(ctx, reader, room, m.Seq), fault.Forbidden)
		} else {
			kind(t, op.name+" by a reading token", op.do(ctx, reader, room, m.Seq), "")
		}
		kind(t, op.name+" by its owner", op.do(ctx, w.ada, room, m.Seq), "")
	}
	for _, a := range []ident.Actor{w.ada, guest()} {
		_, _, err := w.Files.Open(ctx, a, hash)
		_, _, odd := w.Files.Open(ctx, a, "../../portal.key")
		if !fault.Is(err, fault.NotFound) || odd.Error() != err.Error() {
			t.Error(err, odd)
		}
	}
}

func TestGuests_HaveOwnConversationsWithPublicAgents(t *testing.T) {
	t.Parallel()
	w := open(t)
	g := guest()
	ref := w.book.agents["keeper"]
	ref.Public = false
	w.book.agents["keeper"] = ref
	room := w.room(g, "calc")
	_, err := w.Invite(t.Context(), g, room, "keeper")
	kind(t, "an agent that is not public", err, fault.NotFound)
	_, err = w.Invite(t.Context(), g, room, "bob")
	kind(t, "a person", err, fault.NotFound)
	for handle, says := range map[string]bool{"anna@other.example": true, "anna@home.example": false, "anna": false} {
		if _, err := w.Invite(t.Context(), w.ada, w.room(w.ada, "calc"), handle); strings.Contains(err.Error(), "People of other portals") != says {
			t.Errorf("%s: %v", handle, err)
		}
	}
	_, err = w.Post(t.Context(), g, room, w.draft(strings.Repeat("x", chat.MaxGuestTextBytes+1)))
	kind(t, "a long text", err, fault.Invalid)
	w.answer(w.say(g, room, "hello").Tasks[0], "@keeper @calc and @guide")
	if n := w.active(room); len(n) != 0 {
		t.Errorf("%q", names(n))
	}
	if _, err := w.Regenerate(t.Context(), g, room, 2, "api"); err != nil {
		t.Error(err)
	}
	if _, err := w.Set(t.Context(), g, room, chat.Change{Title: ptr("Mine")}); err != nil {
		t.Error(err)
	}
	limited := false
	for range 40 {
		_, err = w.Post(t.Context(), g, room, w.draft("more"))
		limited = limited || fault.Is(err, fault.RateLimited)
	}
	if !limited {
		t.Error("a guest may say anything")
	}
}

// A program with one token that asks as fast as it gets answers is not held
// up for some seconds; one that never ends is.
func TestPost_LimitsAPersonToWhatAProgramNeeds(t *testing.T) {
	t.Parallel()
	w := open(t)
	long := strings.Repeat("x", chat.MaxTitleRunes+1) // refused after it was counted, so that nothing is stored
	n := 0
	for n < 200_000 {
		if _, err := w.Create(t.Context(), w.ada, long, nil); fault.Is(err, fault.RateLimited) {
			break
		}
		n++
	}
	if n < 10_000 || n == 200_000 {
		t.Errorf("held up after %d", n)
	}
}

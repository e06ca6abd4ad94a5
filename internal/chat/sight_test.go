package chat_test

import (
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// Whoever joins a room that shows nothing of its past is not told of it by
// what changes there afterwards.
func TestSight_AmendmentsOfThePastSayNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	room := w.room(w.ada)
	nothing := chat.PastNothing
	if _, err := w.Set(ctx, w.ada, room, chat.Change{Past: &nothing}); err != nil {
		t.Fatal(err)
	}
	secret := w.say(w.ada, room, "the first form").Message
	if _, err := w.Invite(ctx, w.ada, room, "bob"); err != nil {
		t.Fatal(err)
	}
	live, err := w.Subscribe(ctx, w.bob, room, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if _, err := w.Edit(ctx, w.ada, room, secret.Seq, text("the second form")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.React(ctx, w.ada, room, secret.Seq, "👍", true); err != nil {
		t.Fatal(err)
	}
	end := w.say(w.ada, room, "the end").Message

	list, _, err := w.Messages(ctx, w.bob, room, chat.Span{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	amendments, seq := 0, list[0].Seq-1
	for _, m := range list {
		if seq++; m.Seq != seq {
			t.Errorf("message %d follows %d", m.Seq, seq-1)
		}
		if m.Kind.Amends() {
			amendments++
			if len(m.Parts) > 0 {
				t.Errorf("a %s of the past says %q", m.Kind, task.PlainText(m.Parts))
			}
			_, err := w.Message(ctx, w.bob, room, m.Seq)
			kind(t, "one amendment", err, fault.NotFound)
		}
	}
	if amendments != 2 {
		t.Errorf("%d amendments", amendments)
	}
	if all, _, err := w.Messages(ctx, w.ada, room, chat.Span{Limit: 100}); err != nil || !strings.Contains(said(all), "the second form") {
		t.Errorf("ada sees %q, %v", said(all), err)
	}
	// By pages from the store, and as it happens.
	again, err := w.Subscribe(ctx, w.bob, room, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for name, sub := range map[string]*chat.Subscription{"a reader": live, "one who comes back": again} {
		for seen := int64(0); seen < end.Seq; {
			u, err := sub.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if u.Message == nil {
				continue
			}
			seen = u.Message.Seq
			if !u.Message.Kind.Amends() {
				continue
			}
			if len(u.Message.Parts) > 0 {
				t.Errorf("%s is told %q", name, task.PlainText(u.Message.Parts))
			}
			if m, err := w.Shown(ctx, u); err == nil {
				t.Errorf("%s is shown %q", name, task.PlainText(m.Parts))
			}
		}
	}
}

func said(list []chat.Message) string {
	var out []string
	for _, m := range list {
		out = append(out, task.PlainText(m.Parts))
	}
	return strings.Join(out, "\n")
}

// What a person chose to keep back stays back when the agent moves elsewhere.
func TestDisclosed_AMoveKeepsTheChoice(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "far")
	d := w.draft("one")
	d.Told, d.Share = []string{"far"}, chat.ShareNothing
	k := w.post(w.ada, room, d).Tasks[0]
	if k.Share != string(chat.ShareNothing) {
		t.Fatal(k.Share)
	}
	w.answer(k, "yes")
	w.book.mu.Lock()
	a := w.book.agents["far"]
	a.Remote = "farther.example"
	w.book.agents["far"] = a
	w.book.mu.Unlock()
	if k = w.say(w.ada, room, "two").Tasks[0]; k.Share != string(chat.ShareNothing) {
		t.Errorf("share %q after it moved", k.Share)
	}
}

// Reactions are rows of the transcript; many of them neither keep from an
// agent what was said before nor make a branch read without end.
func TestHistory_ReachesBehindManyReactions(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc")
	first := w.say(w.ada, room, "remember seven")
	w.answer(first.Tasks[0], "I do")
	for i := range 700 {
		if _, err := w.React(t.Context(), w.ada, room, first.Message.Seq, "👍", i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	k := w.say(w.ada, room, "what was it?").Tasks[0]
	h, err := w.History(t.Context(), k)
	if err != nil || !strings.Contains(said(h.Earlier), "remember seven") {
		t.Errorf("%q, %v", said(h.Earlier), err)
	}
	c, err := w.Branch(t.Context(), w.ada, room, h.Ask.Seq)
	if err != nil {
		t.Fatal(err)
	}
	if list := w.messages(c.ID); !strings.Contains(said(list), "remember seven") || !strings.Contains(said(list), "what was it?") {
		t.Errorf("%q", said(list))
	}
}

// What was said of where text goes is about one agent, not about its name: who
// takes over the name of an agent elsewhere opens no way to that one.
func TestPost_ANameTakenOverIsAnotherAgent(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "far", "calc")
	w.say(w.ada, room, "@calc hi")
	w.book.mu.Lock()
	w.book.agents["far"] = chat.AgentRef{ID: w.agents["guide"].ID, Handle: "far", Public: true}
	w.book.mu.Unlock()
	d := w.draft("@far hello")
	d.MustTell = true
	_, err := w.Post(t.Context(), w.ada, room, d)
	kind(t, "asking it", err, fault.Conflict)
	for _, k := range w.active(room) {
		w.answer(k, "@far hello")
	}
	if left := w.active(room); len(left) > 0 {
		t.Errorf("%s is asked", names(left))
	}
}

// An agent that was removed while a message to it was on its way sees nothing.
func TestHistory_NotForAgentsThatAreGone(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc")
	k := w.say(w.ada, room, "hi").Tasks[0]
	if err := w.Remove(t.Context(), w.ada, room, "calc"); err != nil {
		t.Fatal(err)
	}
	_, err := w.History(t.Context(), k)
	kind(t, "the history", err, fault.NotFound)
}

// An answer that names everybody costs the one who asked no more than what the
// room lets come of it.
func TestFinish_AMentionBombIsNotCharged(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "keeper", "far")
	one := 1
	if _, err := w.Set(t.Context(), w.ada, room, chat.Change{Turns: &one}); err != nil {
		t.Fatal(err)
	}
	w.answer(w.say(w.ada, room, "@calc hi").Tasks[0], "@guide @keeper @far @calc")
	paid := 0
	w.book.mu.Lock()
	for _, n := range w.book.calls {
		paid += n
	}
	w.book.mu.Unlock()
	if paid > 2 || !strings.Contains(said(w.messages(room)), "Not asked: keeper, far") {
		t.Errorf("%d calls are counted; %q", paid, said(w.messages(room)))
	}
}

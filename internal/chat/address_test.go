package chat_test

import (
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func ptr[T any](v T) *T { return &v }

func (w *world) set(room string, c chat.Change) {
	w.t.Helper()
	if _, err := w.Set(w.t.Context(), w.ada, room, c); err != nil {
		w.t.Fatal(err)
	}
}

func TestPost_WhoAnswers(t *testing.T) {
	t.Parallel()
	w := open(t)
	one, two := w.room(w.ada, "calc", "bob"), w.room(w.ada, "calc", "guide", "bob")
	for _, c := range []struct{ room, text, want string }{
		{one, "hello", "calc"},
		{one, "hello @bob", ""},
		{one, "hello @ada", "calc"}, // oneself is nobody else
		{one, "hello @stranger", "calc"},
		{one, "hello @bob and @calc", "calc"},
		{two, "hello", ""},
		{two, "hey @guide, help", "guide"},
		{two, "@calc @guide @calc", "calc guide"},
		{two, "`@calc` and\n> @guide\n", ""},
		{two, "@CALC@home.example 1", "calc"},
	} {
		if got := names(w.say(w.ada, c.room, c.text).Tasks); got != c.want {
			t.Errorf("%q is answered by %q, want %q", c.text, got, c.want)
		}
	}
	d := w.draft("@guide no, you")
	d.To = w.agents["calc"].ID
	if got := names(w.post(w.bob, two, d).Tasks); got != "calc" {
		t.Errorf("a message to calc went to %q", got)
	}
}

func TestPost_AReplyAddressesWhomItQuotes(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "bob")
	k := w.say(w.ada, room, "@guide hello").Tasks[0]
	w.answer(k, "Hello.")
	answered := w.last(room)
	reply := func(s string, seq int64) (chat.Posted, error) {
		d := w.draft(s)
		d.Quotes = seq
		return w.Post(t.Context(), w.bob, room, d)
	}
	done, err := reply("and now?", answered.Seq)
	if err != nil || names(done.Tasks) != "guide" || done.Message.Target != answered.Seq {
		t.Error(done, err)
	}
	if done, err = reply("@calc check this", answered.Seq); err != nil || names(done.Tasks) != "calc" {
		t.Error(names(done.Tasks), err)
	}
	if done, err = reply("@ada look", answered.Seq); err != nil || len(done.Tasks) != 0 {
		t.Error(names(done.Tasks), err)
	}
	for _, seq := range []int64{99, -1} {
		if _, err := reply("?", seq); err == nil {
			t.Errorf("quotes message %d", seq)
		}
	}
	if _, err := w.DeleteMessage(t.Context(), w.ada, room, 1); err != nil {
		t.Fatal(err)
	}
	_, err = reply("what was that?", 1)
	kind(t, "a message that was taken away", err, fault.Conflict)
}

func TestPost_WhoSpeaksWhenUnaddressed(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "keeper", "bob")
	speaks := func(c chat.Change, want string) {
		t.Helper()
		w.set(room, c)
		var got []string
		for range 4 {
			got = append(got, names(w.say(w.bob, room, "hello").Tasks))
		}
		if s := strings.Join(got, ","); s != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
	speaks(chat.Change{Speaks: ptr(chat.SpeaksNobody)}, ",,,")
	speaks(chat.Change{Speaks: ptr(chat.SpeaksAgent), Speaker: ptr("@guide")}, "guide,guide,guide,guide")
	speaks(chat.Change{Speaks: ptr(chat.SpeaksTurns)}, "calc,guide,keeper,calc")
	// Only what people say to nobody rotates turns.
	k := w.say(w.ada, room, "@keeper hi").Tasks[0]
	w.answer(k, "Hello everybody.")
	if got := names(w.say(w.ada, room, "next").Tasks); got != "guide" {
		t.Errorf("it is the turn of %s", got)
	}
	if n := len(w.active(room)); n != 9 { // eight of the speakers, and the last
		t.Errorf("%d tasks: an answer asked somebody", n)
	}
	if err := w.Remove(t.Context(), w.ada, room, "guide"); err != nil {
		t.Fatal(err)
	}
	if got := names(w.say(w.ada, room, "next").Tasks); got != "calc" && got != "keeper" {
		t.Errorf("after a speaker left: %q", got)
	}
}

func TestPost_ReadersDoNot(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "bob")
	if err := w.SetRole(t.Context(), w.ada, room, "bob", chat.RoleReader); err != nil {
		t.Fatal(err)
	}
	_, err := w.Post(t.Context(), w.bob, room, w.draft("hello"))
	kind(t, "a reader posts", err, fault.Forbidden)
	_, err = w.Invite(t.Context(), w.bob, room, "guide")
	kind(t, "a reader invites", err, fault.Forbidden)
	kind(t, "a reader removes an agent", w.Remove(t.Context(), w.bob, room, "calc"), fault.Forbidden)
	_, err = w.Rename(t.Context(), w.bob, room, "x")
	kind(t, "a reader renames", err, fault.Forbidden)
	m := w.say(w.ada, room, "hi").Message
	if m, err = w.React(t.Context(), w.bob, room, m.Seq, "👍", true); err != nil || len(m.Now.Reactions) != 1 {
		t.Error("a reader reacts:", m, err)
	}
	if _, _, err := w.Messages(t.Context(), w.bob, room, chat.Span{Limit: 10, Newest: true}); err != nil {
		t.Error(err)
	}
}

// What is said again is answered by the first, whatever has changed since.
func TestPost_RepeatIsOwedTheFirst(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc")
	d := w.draft("once")
	first := w.post(w.ada, room, d)
	w.book.full["calc"] = fault.New(fault.RateLimited, "Enough.")
	again := w.post(w.ada, room, d)
	if !again.Repeat || again.Message.ID != first.Message.ID || len(again.Tasks) != 0 {
		t.Errorf("%+v", again)
	}
	d.ClientID = ident.NewID()
	_, err := w.Post(t.Context(), w.ada, room, d)
	kind(t, "another", err, fault.RateLimited)
}

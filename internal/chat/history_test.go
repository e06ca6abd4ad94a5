package chat_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// heard is what goes along with a task, as "who: text".
func (w *world) heard(k task.Task) string {
	w.t.Helper()
	h, err := w.History(w.t.Context(), k)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, m := range h.Earlier {
		out = append(out, m.Sender.Handle+": "+task.PlainText(m.Parts))
	}
	return strings.Join(out, "; ")
}

func TestHistory_IsWhatTheAskerSees(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide")
	w.say(w.ada, room, "a secret")
	w.set(room, chat.Change{Past: ptr(chat.PastNothing)})
	if _, err := w.Invite(t.Context(), w.ada, room, "bob"); err != nil {
		t.Fatal(err)
	}
	typo := w.say(w.ada, room, "wellcome").Message
	gone := w.say(w.bob, room, "I hate it here").Message
	if _, err := w.Edit(t.Context(), w.ada, room, typo.Seq, text("welcome")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.DeleteMessage(t.Context(), w.bob, room, gone.Seq); err != nil {
		t.Fatal(err)
	}
	if _, err := w.React(t.Context(), w.bob, room, typo.Seq, "👍", true); err != nil {
		t.Fatal(err)
	}
	k := w.say(w.bob, room, "@calc what was said?").Tasks[0]
	if got := w.heard(k); got != "ada: welcome" {
		t.Errorf("bob's agent hears %q", got)
	}
	if got := w.heard(w.say(w.ada, room, "@guide and for me?").Tasks[0]); got != "ada: a secret; ada: welcome; bob: @calc what was said?" {
		t.Errorf("ada's agent hears %q", got)
	}
	if _, err := w.DeleteMessage(t.Context(), w.bob, room, k.MessageSeq); err != nil {
		t.Fatal(err)
	}
	_, err := w.History(t.Context(), k)
	kind(t, "of a message that was taken away", err, fault.NotFound)
	k = w.say(w.bob, room, "@calc again").Tasks[0]
	if err := w.Remove(t.Context(), w.ada, room, "bob"); err != nil {
		t.Fatal(err)
	}
	_, err = w.History(t.Context(), k)
	kind(t, "for somebody who left", err, fault.NotFound)
}

func TestHistory_AnswersGivenAgainStandInPlace(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc")
	w.answer(w.say(w.ada, room, "one").Tasks[0], "wrong")
	first := w.last(room)
	w.answer(w.say(w.ada, room, "two").Tasks[0], "2")
	k, err := w.Regenerate(t.Context(), w.ada, room, first.Seq, "api")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.heard(k); got != "" {
		t.Errorf("what is given again hears %q", got)
	}
	w.answer(k, "1")
	k, err = w.Regenerate(t.Context(), w.ada, room, first.Seq, "api") // of the newest, by the old one's place
	if err != nil {
		t.Fatal(err)
	}
	w.answer(k, "I")
	if got := w.heard(w.say(w.ada, room, "three").Tasks[0]); got != "ada: one; calc: I; ada: two; calc: 2" {
		t.Errorf("%q", got)
	}
}

func TestHistory_ShareLimitsIt(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "far", "calc", "bob")
	w.say(w.bob, room, "private talk")
	w.answer(w.say(w.bob, room, "@far hello").Tasks[0], "Hello bob.")
	hello := w.last(room)
	d := w.draft("thanks")
	d.Quotes = hello.Seq
	w.post(w.ada, room, d)
	w.ends(room, "You are welcome.")
	w.answer(w.say(w.ada, room, "@calc 1+1").Tasks[0], "2")
	w.say(w.ada, room, "just between us")
	own := "bob: @far hello; far: Hello bob.; ada: thanks; far: You are welcome."
	for share, want := range map[chat.Share]string{
		chat.ShareNothing: "", chat.ShareOwn: own,
		chat.ShareAll: "bob: private talk; " + own + "; ada: @calc 1+1; calc: 2; ada: just between us",
	} {
		d := w.draft("@far and?")
		d.Share = share
		k := w.post(w.ada, room, d).Tasks[0]
		if got := w.heard(k); got != want {
			t.Errorf("%s: %q, want %q", share, got, want)
		}
		if err := w.Finish(t.Context(), k, task.Result{State: task.Failed, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.DeleteMessage(t.Context(), w.ada, room, k.MessageSeq); err != nil {
			t.Fatal(err)
		}
	}
	// Alone with the agent, what is said to nobody is said to it.
	room = w.room(w.ada, "far")
	w.answer(w.say(w.ada, room, "hello").Tasks[0], "Hi.")
	d = w.draft("and?")
	d.Share = chat.ShareOwn
	if got := w.heard(w.post(w.ada, room, d).Tasks[0]); got != "ada: hello; far: Hi." {
		t.Errorf("%q", got)
	}
}

func TestHistory_Bounded(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide")
	for i := range 120 {
		m := w.say(w.ada, room, fmt.Sprint(i)).Message
		for _, e := range []string{"👍", "❤️", "🎉"} {
			if _, err := w.React(t.Context(), w.ada, room, m.Seq, e, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	h, err := w.History(t.Context(), w.say(w.ada, room, "@calc and?").Tasks[0])
	if err != nil || len(h.Earlier) != 40 || task.PlainText(h.Earlier[39].Parts) != "119" {
		t.Errorf("%d messages, %v", len(h.Earlier), err)
	}
	for range 3 {
		w.say(w.ada, room, strings.Repeat("x", 20<<10))
	}
	h, err = w.History(t.Context(), w.say(w.ada, room, "@calc and?").Tasks[0])
	if err != nil || len(h.Earlier) != 2 {
		t.Errorf("%d messages of 20 KiB, %v", len(h.Earlier), err)
	}
}

// Whatever happened in a room, an agent hears nothing that its asker does not
// see, nothing twice, and everything in order of when it was first said.
func TestHistory_NeverMoreThanTheAskerSees(t *testing.T) {
	t.Parallel()
	w := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		room := w.room(w.ada, "calc", "guide")
		w.set(room, chat.Change{Past: ptr(chat.PastNothing)})
		w.say(w.ada, room, "secret 0")
		if _, err := w.Invite(t.Context(), w.ada, room, "bob"); err != nil {
			rt.Fatal(err)
		}
		joined := w.last(room).Seq
		n := 0
		fresh := func() string { n++; return fmt.Sprintf("text %d", n) }
		var texts []int64
		gone := make(map[string]bool)
		acts := map[string]func(*rapid.T){
			"say": func(*rapid.T) {
				texts = append(texts, w.say(w.ada, room, fresh()).Message.Seq)
			},
			"ask": func(*rapid.T) {
				w.answer(w.say(w.bob, room, "@calc "+fresh()).Tasks[0], fresh())
			},
			"again": func(rt *rapid.T) {
				for _, m := range w.messages(room) {
					if m.Sender.Kind == "agent" && m.Kind == chat.Text {
						k, err := w.Regenerate(t.Context(), w.ada, room, m.Seq, "api")
						if err != nil {
							rt.Fatal(err)
						}
						w.answer(k, fresh())
						return
					}
				}
			},
			"unsay": func(rt *rapid.T) {
				if len(texts) == 0 {
					return
				}
				seq := rapid.SampledFrom(texts).Draw(rt, "which")
				if m, err := w.Message(t.Context(), w.ada, room, seq); err == nil && m.Now.UnsaidAt.IsZero() {
					gone[task.PlainText(m.Parts)] = true
				}
				if _, err := w.DeleteMessage(t.Context(), w.ada, room, seq); err != nil {
					rt.Fatal(err)
				}
			},
			"edit": func(rt *rapid.T) {
				if len(texts) == 0 {
					return
				}
				seq := rapid.SampledFrom(texts).Draw(rt, "which")
				m, err := w.Message(t.Context(), w.ada, room, seq)
				if err != nil || !m.Now.UnsaidAt.IsZero() {
					return
				}
				gone[task.PlainText(m.Parts)] = true
				if _, err := w.Edit(t.Context(), w.ada, room, seq, text(fresh())); err != nil {
					rt.Fatal(err)
				}
			},
		}
		for range rapid.IntRange(1, 12).Draw(rt, "acts") {
			acts[rapid.SampledFrom([]string{"say", "ask", "again", "unsay", "edit"}).Draw(rt, "act")](rt)
		}
		h, err := w.History(t.Context(), w.say(w.bob, room, "@guide hear").Tasks[0])
		if err != nil {
			rt.Fatal(err)
		}
		var heard []string
		for _, m := range h.Earlier {
			s := task.PlainText(m.Parts)
			if gone[s] || slices.Contains(heard, s) || m.Seq <= joined || m.Kind != chat.Text || m.Now.NewerSeq > 0 {
				rt.Fatalf("hears %q: %+v", s, m)
			}
			heard = append(heard, s)
		}
	})
}

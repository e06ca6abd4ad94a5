package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func TestFinish_AnAnswerAsksTheAgentsItMentions(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "bob")
	asked := w.say(w.bob, room, "@guide what is 1+1?")
	w.answer(asked.Tasks[0], "Let me ask: @calc 1+1? I am @guide, and @keeper is not here.")
	active := w.active(room)
	if names(active) != "calc" {
		t.Fatalf("asked: %q", names(active))
	}
	k := active[0]
	if k.CallerID != w.bob.ID || k.Hop != 1 || k.RootSeq != asked.Message.Seq || k.MessageSeq != w.last(room).Seq || k.Face != "api" {
		t.Errorf("%+v", k)
	}
	if w.book.calls[w.bob.ID+" calc"] != 1 || w.book.calls[w.ada.ID+" calc"] != 0 {
		t.Errorf("it counts for the wrong one: %v", w.book.calls)
	}
	h, err := w.History(t.Context(), k)
	if err != nil || h.Ask.Sender.Handle != "guide" || len(h.Earlier) != 1 || h.Earlier[0].Sender.Handle != "bob" {
		t.Errorf("%+v %v", h, err)
	}
	w.answer(k, "2, `@guide`\n> @guide said\n```\n@guide\n```")
	if n := w.active(room); len(n) != 0 {
		t.Errorf("code and quotations call %q", names(n))
	}
}

// An answer that repeats the names of the question asks nobody again, and one that adds a name asks that agent.
func TestFinish_RepeatedNamesAskNobody(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "keeper")
	w.say(w.ada, room, "@calc and @guide, compare")
	active := w.active(room)
	if len(active) != 2 {
		t.Fatalf("asked: %q", names(active))
	}
	w.answer(active[0], "As @calc and @guide were asked: mine is 4.")
	if n := w.active(room); len(n) != 1 {
		t.Errorf("the repeated names ask %q", names(n))
	}
	w.answer(active[1], "I agree with @calc, and so will @keeper.")
	if n := names(w.active(room)); n != "keeper" {
		t.Errorf("asked: %q, want keeper", n)
	}
}

// ends answers what is open with text until nothing is, and counts.
func (w *world) ends(room, text string) int {
	w.t.Helper()
	for n := 0; ; n++ {
		active := w.active(room)
		if len(active) == 0 {
			return n
		}
		if n > 200 {
			w.t.Fatal("agents call each other for ever")
		}
		w.answer(active[0], text)
	}
}

func TestFinish_AgentsThatCallEachOtherComeToAnEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		hops, turns, budget int
		want                int
	}{
		{"hops", 3, 50, 1 << 20, 4}, {"no hops", 0, 50, 1 << 20, 1}, {"turns", 10, 5, 1 << 20, 5}, {"budget", 10, 50, 200, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t)
			room := w.room(w.ada, "calc", "guide")
			w.set(room, chat.Change{Hops: &c.hops, Turns: &c.turns, Budget: &c.budget})
			w.say(w.ada, room, "@guide begin")
			answers := 0
			for active := w.active(room); len(active) > 0; active = w.active(room) {
				if answers++; answers > 100 {
					t.Fatal("for ever")
				}
				w.answer(active[0], "@calc @guide "+strings.Repeat("x", 60))
			}
			quiet := 0
			for _, m := range w.messages(room) {
				if m.Kind == chat.Event && m.Sender.Kind == "agent" {
					quiet++
				}
			}
			if answers != c.want || quiet != 1 {
				t.Errorf("%d answers and %d lines about it, want %d and 1", answers, quiet, c.want)
			}
		})
	}
}

// Whatever agents say, the work for one message ends within the bounds.
func TestFinish_BoundsHoldForAnyAnswers(t *testing.T) {
	t.Parallel()
	w := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		room := w.room(w.ada, "calc", "guide", "keeper")
		turns, hops := rapid.IntRange(0, 6).Draw(rt, "turns"), rapid.IntRange(0, 4).Draw(rt, "hops")
		w.set(room, chat.Change{Turns: &turns, Hops: &hops})
		first := w.say(w.ada, room, "@calc @guide begin").Tasks
		done := 0
		for active := w.active(room); len(active) > 0; active = w.active(room) {
			k := active[rapid.IntRange(0, len(active)-1).Draw(rt, "which")]
			if k.Hop > hops {
				rt.Fatalf("hop %d of at most %d", k.Hop, hops)
			}
			var answer strings.Builder
			for _, a := range rapid.SliceOfN(rapid.SampledFrom([]string{"calc", "guide", "keeper", "nobody", "ada"}), 0, 5).Draw(rt, "mentions") {
				fmt.Fprintf(&answer, "@%s ", a)
			}
			state := rapid.SampledFrom([]task.State{task.Completed, task.Completed, task.Failed, task.Canceled}).Draw(rt, "state")
			if err := w.Finish(t.Context(), k, task.Result{State: state, Parts: text(answer.String() + ".")}); err != nil {
				rt.Fatal(err)
			}
			if done++; done > max(turns, len(first)) {
				rt.Fatalf("%d answers of at most %d", done, max(turns, len(first)))
			}
		}
	})
	storetest.Sound(t, w.db)
}

func TestFinish_CallsWithTheRightsOfThePersonBehind(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "keeper", "far", "bob")
	w.book.only["keeper"] = w.ada.ID
	w.book.full["calc"] = fault.New(fault.RateLimited, "The owner of calc allows 1 call a minute.")
	w.answer(w.say(w.bob, room, "@guide hi").Tasks[0], "@keeper and @calc, please")
	if n := w.active(room); len(n) != 0 {
		t.Errorf("bob's message reached %q", names(n))
	}
	if e := w.last(room); e.Kind != chat.Event || !strings.Contains(task.PlainText(e.Parts), "keeper") || !strings.Contains(task.PlainText(e.Parts), "1 call a minute") {
		t.Errorf("%+v", e)
	}
	w.answer(w.say(w.ada, room, "@guide hi").Tasks[0], "@keeper, please")
	if n := w.active(room); names(n) != "keeper" {
		t.Errorf("ada's message reached %q", names(n))
	}
	w.ends(room, "Done.")
	// Nobody who left is asked for.
	k := w.say(w.bob, room, "@guide hi").Tasks[0]
	if _, err := w.db.SetRole(t.Context(), room, "person", w.bob.ID, chat.RoleReader, chat.Message{ID: ident.NewID(), Kind: chat.Event, CreatedAt: k.CreatedAt}); err != nil {
		t.Fatal(err)
	}
	w.answer(k, "@keeper @guide @calc")
	if n := w.active(room); len(n) != 0 {
		t.Errorf("a reader's message reached %q", names(n))
	}
}

func TestFinish_TextDoesNotLeaveUntoldByAnotherAgent(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "guide", "far")
	d := w.draft("@guide go")
	d.Face, d.MustTell = "page", true
	w.answer(w.post(w.ada, room, d).Tasks[0], "@far will know")
	if e := w.last(room); len(w.active(room)) != 0 || !strings.Contains(task.PlainText(e.Parts), "far.example") {
		t.Errorf("%q was asked; %+v", names(w.active(room)), e)
	}
	if err := w.Disclose(t.Context(), w.ada, room, "far", chat.ShareNothing); err != nil {
		t.Fatal(err)
	}
	d.ClientID = ident.NewID()
	w.answer(w.post(w.ada, room, d).Tasks[0], "@far will know")
	if n := w.active(room); names(n) != "far" || n[0].Share != string(chat.ShareNothing) {
		t.Errorf("%+v", n)
	}
	w.ends(room, "Yes.")
	w.answer(w.say(w.ada, room, "@guide go").Tasks[0], "@far will know") // by a program
	if n := w.active(room); names(n) != "far" {
		t.Errorf("%+v", n)
	}
}

// An agent's words never answer for the person a task waits for.
func TestFinish_AgentsDoNotAnswerWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "guide", "keeper")
	waits := w.say(w.ada, room, "@keeper delete it").Tasks[0]
	if err := w.Finish(t.Context(), waits, task.Result{State: task.InputRequired, Parts: text("May I?"), Reason: "May I?"}); err != nil {
		t.Fatal(err)
	}
	w.answer(w.say(w.ada, room, "@guide hello").Tasks[0], "@keeper yes")
	if k := w.task(waits.ID); k.State != task.InputRequired {
		t.Errorf("the waiting task is %s", k.State)
	}
}

package chat_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/task"
)

// hop is an agent's name in chains here.
func (w *world) hop(t task.Task) task.Hop { return task.Hop("home.example/" + t.AgentID) }

func TestAsk_StopsAgentsThatCallEachOther(t *testing.T) {
	t.Parallel()
	w := open(t)
	via := task.Chain{"far.example/x"}
	a := question("calc", "2+2")
	a.Via = via
	done := w.ask(w.ada, a)
	if kept := w.active(done.ConversationID); len(kept) != 1 || !slices.Equal(kept[0].Via, via) {
		t.Fatalf("the chain is lost: %+v", kept)
	}
	rooms := func() int {
		list, err := w.List(t.Context(), w.ada, chat.RoomFilter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before, said := rooms(), len(w.messages(done.ConversationID))
	for _, room := range []string{"", done.ConversationID} {
		a := question("calc", "2+2")
		a.Context, a.Via = room, via.AppendHop(w.hop(done.Task))
		if _, err := w.Ask(t.Context(), w.ada, a); !errors.Is(err, task.ErrLoop) {
			t.Errorf("in %q: %v", room, err)
		}
	}
	if rooms() != before || len(w.messages(done.ConversationID)) != said {
		t.Error("something stays of a refused question")
	}
}

func TestAsk_InputBringsItsOwnChain(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := question("calc", "which?")
	a.Via = task.Chain{"far.example/x"}
	first := w.ask(w.ada, a)
	if err := w.Finish(t.Context(), first.Task, task.Result{State: task.InputRequired, Parts: text("Which?")}); err != nil {
		t.Fatal(err)
	}
	a = question("calc", "this one")
	a.TaskID, a.Via = first.Task.ID, task.Chain{"far.example/y", "far.example/z"}
	w.ask(w.ada, a)
	if got := w.active(first.ConversationID); len(got) != 1 || !slices.Equal(got[0].Via, a.Via) {
		t.Errorf("%+v", got)
	}
}

func TestFinish_MentionsGoOnWithTheChain(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide")
	ask := func(hops int) task.Task {
		a := question("guide", "Go.")
		a.Context = room
		for i := range hops {
			a.Via = a.Via.AppendHop(task.Hop("far.example/" + strings.Repeat("x", i+1)))
		}
		return w.ask(w.ada, a).Task
	}
	// Agents of a room may call each other back, as far as the room lets them.
	k := ask(0)
	w.answer(k, "@calc please")
	next := w.active(room)
	if len(next) != 1 || !slices.Equal(next[0].Via, task.Chain{w.hop(k)}) {
		t.Fatalf("%+v", next)
	}
	w.answer(next[0], "@guide back to you")
	again := w.active(room)
	if len(again) != 1 || len(again[0].Via) != 2 {
		t.Fatalf("%+v", again)
	}
	w.answer(again[0], "Done.")

	// What came in through a door has less of a way left.
	k = ask(task.MaxChain - 2)
	w.answer(k, "@calc please")
	if next = w.active(room); len(next) != 1 || len(next[0].Via) != task.MaxChain-1 {
		t.Fatalf("%+v", next)
	}
	w.answer(next[0], "@guide back to you")
	if open := w.active(room); len(open) != 0 {
		t.Errorf("asked %+v", open)
	}
	if last := w.last(room); !strings.Contains(task.PlainText(last.Parts), "8 agents have asked each other") {
		t.Errorf("nobody is told: %+v", last)
	}
}

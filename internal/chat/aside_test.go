package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// aside asks an agent for the agent of a task.
func (w *world) aside(t task.Task, agent, call string, earlier int) (chat.Asked, error) {
	return w.Asides.Ask(w.t.Context(), chat.Aside{TaskID: t.ID, Agent: agent, Text: "6*7", CallID: call, Earlier: earlier})
}

// mustAside is aside for a question that is asked.
func (w *world) mustAside(t task.Task, agent, call string, earlier int) chat.Asked {
	w.t.Helper()
	asked, err := w.aside(t, agent, call, earlier)
	if err != nil {
		w.t.Fatal(err)
	}
	return asked
}

func TestAsides_HaveAConversationOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "guide", "bob")
	k := w.say(w.bob, room, "@guide what is 6*7?").Tasks[0]
	asked := w.mustAside(k, "calc", "one", 0)
	q := asked.Task
	if asked.ConversationID == room || q.AgentHandle != "calc" || q.CallerID != w.bob.ID || q.Face != "agent" || len(q.Via) != 1 || !q.Budget.IsSet() {
		t.Fatalf("%+v", asked)
	}
	h, err := w.History(t.Context(), q)
	if err != nil || h.Ask.Sender.Kind != "agent" || h.Ask.Sender.Handle != "guide" || len(h.Earlier) != 0 {
		t.Errorf("the agent gets %+v, %v", h, err)
	}
	note := w.last(room)
	if note.Kind != chat.Event || note.AsideOf() != asked.ConversationID || note.Sender.Handle != "guide" {
		t.Errorf("shown in the conversation: %+v", note)
	}
	// It belongs to bob, and is archived.
	if _, err := w.Get(t.Context(), w.ada, asked.ConversationID); !fault.Is(err, fault.NotFound) {
		t.Errorf("ada sees it: %v", err)
	}
	c, err := w.Get(t.Context(), w.bob, asked.ConversationID)
	if err != nil || !c.Mine.Archived || c.Title != "guide asks calc" {
		t.Errorf("%+v, %v", c, err)
	}
	w.answer(q, "42")
	got, m, err := w.Asides.Await(t.Context(), w.bob, q)
	if err != nil || got.State != task.Completed || task.PlainText(m.Parts) != "42" {
		t.Errorf("%+v %q %v", got, task.PlainText(m.Parts), err)
	}
	// The same call again is the same question, the next one stands below it.
	again := w.mustAside(k, "calc", "one", 0)
	if !again.Repeat || again.Task.ID != q.ID || again.Task.State != task.Completed {
		t.Errorf("%+v", again)
	}
	next := w.mustAside(k, "calc", "two", 1)
	if next.ConversationID != asked.ConversationID || next.Task.ID == q.ID {
		t.Errorf("%+v", next)
	}
	if h, err := w.History(t.Context(), next.Task); err != nil || len(h.Earlier) != 2 {
		t.Errorf("the agent does not see its earlier answer: %+v, %v", h.Earlier, err)
	}
	// Another person's question is in another conversation.
	theirs := w.mustAside(w.say(w.ada, room, "@guide and 6*7?").Tasks[0], "calc", "one", 0)
	if theirs.ConversationID == asked.ConversationID {
		t.Error("two people share one conversation")
	}
}

func TestAsides_AreBounded(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "guide")
	k := w.say(w.ada, room, "go").Tasks[0]
	w.book.only["keeper"] = w.bob.ID
	for _, c := range []struct {
		name, agent string
		earlier     int
		kind        error
		want        string
	}{
		{"itself", "guide", 0, task.ErrLoop, "circle"},
		{"an unknown agent", "none", 0, nil, "no agent"},
		{"somebody else's agent", "keeper", 0, nil, "no agent"},
		{"too many", "calc", 7, task.ErrBudget, "used up"},
	} {
		if _, err := w.aside(k, c.agent, c.name, c.earlier); err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// Each agent in the chain has less to give, until it may ask no other.
	at, calls, depth := k, 100, 0
	for _, name := range []string{"calc", "far", "keeper2", "keeper3", "keeper4"} {
		if _, ok := w.book.agents[name]; !ok {
			w.agent(name, "")
		}
		asked, err := w.aside(at, name, fmt.Sprint("d", depth), 0)
		if errors.Is(err, task.ErrBudget) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if asked.Task.Budget.Calls >= calls || len(asked.Task.Via) != depth+1 {
			t.Errorf("budget %+v after %d calls, chain %q", asked.Task.Budget, calls, asked.Task.Via)
		}
		at, calls, depth = asked.Task, asked.Task.Budget.Calls, depth+1
	}
	if calls != 0 || depth < 2 {
		t.Errorf("%d calls are left at depth %d", calls, depth)
	}
	if _, err := w.aside(at, "guide", "back", 0); err == nil {
		t.Error("a circle over several agents was not refused")
	}
	w.answer(k, "done")
	if _, err := w.aside(k, "calc", "late", 0); !fault.Is(err, fault.Conflict) {
		t.Errorf("after the end: %v", err)
	}
}

// After the person deletes the conversation of two agents there is a new one, after leaving it to others there is none.
func TestAsides_AfterThePersonLeft(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.say(w.ada, w.room(w.ada, "guide"), "go").Tasks[0]
	first := w.mustAside(k, "calc", "one", 0)
	if err := w.DeleteConversation(t.Context(), w.ada, first.ConversationID); err != nil {
		t.Fatal(err)
	}
	second := w.mustAside(k, "calc", "two", 1)
	if second.ConversationID == first.ConversationID {
		t.Error("a deleted conversation goes on")
	}
	if _, err := w.Invite(t.Context(), w.ada, second.ConversationID, "bob"); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteConversation(t.Context(), w.ada, second.ConversationID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.aside(k, "calc", "three", 2); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "left") {
		t.Errorf("%v", err)
	}
}

// Of questions at the same time, one opens the conversation and the others follow.
func TestAsides_AtTheSameTimeShareAConversation(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.say(w.ada, w.room(w.ada, "guide"), "go").Tasks[0]
	type result struct {
		asked chat.Asked
		err   error
	}
	out := make(chan result)
	for i := range 4 {
		go func() {
			asked, err := w.aside(k, "calc", fmt.Sprint(i), i)
			out <- result{asked, err}
		}()
	}
	rooms := make(map[string]int)
	for range 4 {
		r := <-out
		if r.err != nil {
			t.Error(r.err)
		}
		rooms[r.asked.ConversationID]++
	}
	if len(rooms) != 1 {
		t.Errorf("conversations: %v", rooms)
	}
}

// A person that allows many calls gets a long chain: the conversations of the agents add no bound of their own.
func TestAsides_HaveTheBoundsOfTheQuestion(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "guide")
	w.set(room, chat.Change{Turns: ptr(chat.MaxSettings.Turns)})
	at := w.say(w.ada, room, "go").Tasks[0]
	for i, calls := range []int{24, 11, 5, 2, 0} {
		name := fmt.Sprint("link-", i)
		w.agent(name, "")
		at = w.mustAside(at, name, name, 0).Task
		if at.Budget.Calls != calls {
			t.Errorf("%s may cause %d calls, want %d", name, at.Budget.Calls, calls)
		}
	}
	visitor := task.Task{ConversationID: room, CallerKind: "portal", Budget: task.Budget{Calls: 30, Until: at.Budget.Until, Bytes: 1000}}
	w.say(w.ada, room, "go")
	if left, err := w.Allowance(t.Context(), visitor); err != nil || left.Calls != 30 {
		t.Errorf("%+v, %v", left, err)
	}
}

// askPerson ends the turn of a task with a question to the person, and returns the seq of the question.
func (w *world) askPerson(k task.Task, text string) int64 {
	w.t.Helper()
	if err := w.Finish(w.t.Context(), k, task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart(text)}}); err != nil {
		w.t.Fatal(err)
	}
	return w.task(k.ID).AnswerSeq
}

// A further question of the asking agent is a task of its own: it would otherwise lead the waiting task to another
// question, which then gets the person's answer to the first one.
func TestAsides_AFurtherQuestionIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.say(w.ada, w.room(w.ada, "guide"), "go").Tasks[0]
	first := w.mustAside(k, "calc", "one", 0)
	w.askPerson(first.Task, "May I?")
	second := w.mustAside(k, "calc", "two", 1)
	if second.ConversationID != first.ConversationID || second.Task.ID == first.Task.ID {
		t.Errorf("the second question continues the first task: %+v", second)
	}
	if got := w.task(first.Task.ID); got.State != task.InputRequired {
		t.Errorf("the first task does not wait any more: %s", got.State)
	}
}

// An answer of the person continues a task only while it waits with the question that the person was shown.
func TestAsides_AnAnswerIsForOneQuestion(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.say(w.ada, w.room(w.ada, "guide"), "go").Tasks[0]
	first := w.mustAside(k, "calc", "one", 0)
	shown := w.askPerson(first.Task, "May I do the first?")
	yes := chat.Aside{TaskID: k.ID, Agent: "calc", Text: "not yet", CallID: "yes one", Earlier: 1,
		Resumes: first.Task.ID, Answers: shown}
	asked, err := w.Asides.Ask(t.Context(), yes)
	if err != nil || asked.Task.ID != first.Task.ID {
		t.Fatalf("%+v, %v", asked, err)
	}
	now := w.askPerson(asked.Task, "May I do the second?")
	yes.Text, yes.CallID, yes.Relayed = "yes", "yes two", true
	if _, err := w.Asides.Ask(t.Context(), yes); !fault.Is(err, fault.Conflict) {
		t.Errorf("the answer to the first question was taken for the second one: %v", err)
	}
	if got := w.task(first.Task.ID); got.State != task.InputRequired || got.AnswerSeq != now {
		t.Errorf("%+v", got)
	}
	yes.Answers = now
	if asked, err = w.Asides.Ask(t.Context(), yes); err != nil || asked.Task.Face != chat.FaceRelay {
		t.Errorf("%+v, %v", asked, err)
	}
}

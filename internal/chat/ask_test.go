package chat_test

import (
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

func question(agent, s string) chat.Ask {
	return chat.Ask{Agent: agent, ClientID: ident.NewID(), Parts: text(s), Face: "openai"}
}

func (w *world) ask(who ident.Actor, a chat.Ask) chat.Asked {
	w.t.Helper()
	done, err := w.Ask(w.t.Context(), who, a)
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

func TestAsk_OpensAConversationOfTheCaller(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := question("calc", "2+2")
	a.Before = "user:\n> @guide and @calc, what is this?"
	done := w.ask(w.ada, a)
	if done.Task.AgentHandle != "calc" || done.Task.Face != "openai" || done.Task.State != task.Submitted || done.Repeat {
		t.Errorf("asked %+v", done)
	}
	list, err := w.List(t.Context(), w.ada, chat.RoomFilter{Limit: 10})
	if err != nil || len(list) != 1 || list[0].ID != done.ConversationID || list[0].Title != "2+2" {
		t.Errorf("the caller's conversations: %+v, %v", list, err)
	}
	said := w.messages(done.ConversationID)
	if len(said) != 2 || task.PlainText(said[0].Parts) != a.Before || said[1].Seq != done.Seq || done.Task.MessageSeq != done.Seq {
		t.Errorf("said %+v", said)
	}
	if n := len(w.active(done.ConversationID)); n != 1 {
		t.Errorf("%d tasks: what was said before asked somebody", n)
	}
	h, err := w.History(t.Context(), done.Task)
	if err != nil || len(h.Earlier) != 1 || h.Ask.Seq != done.Seq {
		t.Errorf("the agent is told %+v, %v", h, err)
	}
}

func TestAsk_AsksOneAgentWhateverTheTextMentions(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := question("calc", "@guide @keeper say something")
	a.Context = w.room(w.ada, "calc", "guide", "keeper")
	done := w.ask(w.ada, a)
	if list := w.active(a.Context); len(list) != 1 || list[0].AgentHandle != "calc" || list[0].ID != done.Task.ID {
		t.Errorf("asked %+v", list)
	}
}

func TestAsk_RefusesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.book.only["keeper"] = w.bob.ID
	w.book.full["guide"] = fault.Limited(1, "Too much.")
	bobs := w.room(w.bob, "calc")
	adas := w.room(w.ada, "calc")
	with := func(a chat.Ask, edit func(*chat.Ask)) chat.Ask { edit(&a); return a }
	reader := w.ada
	reader.Narrowed, reader.Scopes = true, []ident.Scope{ident.ChatRead}
	for name, c := range map[string]struct {
		who  ident.Actor
		ask  chat.Ask
		want fault.Kind
	}{
		"nobody":                   {ident.Actor{Kind: ident.Guest}, question("calc", "x"), fault.Unauthenticated},
		"a token for reading":      {reader, question("calc", "x"), fault.Forbidden},
		"an agent of another":      {w.ada, question("keeper", "x"), fault.NotFound},
		"no agent":                 {w.ada, question("nothing", "x"), fault.NotFound},
		"an agent that has enough": {w.ada, question("guide", "x"), fault.RateLimited},
		"nothing said":             {w.ada, question("calc", ""), fault.Invalid},
		"too much before":          {w.ada, with(question("calc", "x"), func(a *chat.Ask) { a.Before = strings.Repeat("x", chat.MaxTextBytes+1) }), fault.Invalid},
		"a room of another":        {w.ada, with(question("calc", "x"), func(a *chat.Ask) { a.Context = bobs }), fault.NotFound},
		"no room":                  {w.ada, with(question("calc", "x"), func(a *chat.Ask) { a.Context = ident.NewID() }), fault.NotFound},
		"an agent not in the room": {w.ada, with(question("guide", "x"), func(a *chat.Ask) { a.Context = adas }), fault.NotFound},
		"no task":                  {w.ada, with(question("calc", "x"), func(a *chat.Ask) { a.TaskID = ident.NewID() }), fault.NotFound},
	} {
		if _, err := w.Ask(t.Context(), c.who, c.ask); !fault.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if list, err := w.List(t.Context(), w.ada, chat.RoomFilter{Limit: 10}); err != nil || len(list) != 1 {
		t.Errorf("conversations left: %+v, %v", list, err)
	}
}

func TestAsk_RepeatedReturnsTheFirstTask(t *testing.T) {
	t.Parallel()
	w := open(t)
	first := w.ask(w.ada, question("calc", "2+2"))
	a := question("calc", "3+3")
	a.Context = first.ConversationID
	// It would look like the id of a question of the first task's agent.
	a.ClientID = first.Task.ID + "/3"
	second := w.ask(w.ada, a)
	again := w.ask(w.ada, a)
	if !again.Repeat || again.Task.ID != second.Task.ID || again.Seq != second.Seq || second.Task.ID == first.Task.ID {
		t.Errorf("first %+v, again %+v", second, again)
	}
	if n := len(w.active(first.ConversationID)); n != 2 {
		t.Errorf("%d tasks", n)
	}
}

func TestAsk_AnswersATaskThatWaits(t *testing.T) {
	t.Parallel()
	w := open(t)
	q := question("calc", "book a room")
	q.Context = w.room(w.ada, "calc")
	first := w.ask(w.ada, q)
	if err := w.Finish(t.Context(), first.Task, task.Result{State: task.InputRequired, Parts: text("For when?")}); err != nil {
		t.Fatal(err)
	}
	a := question("calc", "today")
	a.TaskID = first.Task.ID
	if _, err := w.Ask(t.Context(), w.bob, a); !fault.Is(err, fault.NotFound) {
		t.Errorf("another answers: %v", err)
	}
	done := w.ask(w.ada, a)
	if done.Task.ID != first.Task.ID || done.ConversationID != first.ConversationID || done.Task.State != task.Submitted {
		t.Errorf("went on as %+v", done)
	}
	// Asked again, either message leads to the task.
	for _, x := range []chat.Ask{a, q} {
		if again := w.ask(w.ada, x); !again.Repeat || again.Task.ID != first.Task.ID {
			t.Errorf("again: %+v", again)
		}
	}
	late := question("calc", "tomorrow")
	late.TaskID = first.Task.ID
	before := len(w.messages(q.Context))
	if _, err := w.Ask(t.Context(), w.ada, late); !fault.Is(err, fault.Conflict) {
		t.Errorf("a task that does not wait takes input: %v", err)
	}
	if n := len(w.messages(q.Context)); n != before {
		t.Error("what was refused was said")
	}
}

func TestStopTask_IsForWhoAsked(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "bob")
	q := question("calc", "2+2")
	q.Context = room
	done := w.ask(w.ada, q)
	if _, err := w.Task(t.Context(), w.bob, done.Task.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another sees it: %v", err)
	}
	if err := w.StopTask(t.Context(), w.bob, done.Task.ID, "x"); !fault.Is(err, fault.NotFound) {
		t.Errorf("another stops it: %v", err)
	}
	for range 2 { // what has ended stays as it is
		if err := w.StopTask(t.Context(), w.ada, done.Task.ID, "Enough."); err != nil {
			t.Fatal(err)
		}
	}
	if k := w.task(done.Task.ID); k.State != task.Canceled || k.Reason != "Enough." {
		t.Errorf("%+v", k)
	}
}

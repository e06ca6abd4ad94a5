package chat_test

import (
	"context"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// instant answers as the test says.
type instant func(t task.Task, m chat.Message) (task.Result, bool)

func (i instant) AnswerNow(_ context.Context, t task.Task, m chat.Message) (task.Result, bool) {
	return i(t, m)
}

// openInstant is a world in which calc may be answered for at once.
func openInstant(t *testing.T, i instant) *world {
	w := open(t)
	ref := w.book.agents["calc"]
	ref.Instant = true
	w.book.agents["calc"] = ref
	w.Service = chat.New(w.db, w.book, w.hands, chat.Config{Portal: "home.example", URL: "https://home.example", FileKey: []byte("of this test"), Instant: i})
	return w
}

func TestAsk_StoresQuestionAndAnswerTogether(t *testing.T) {
	t.Parallel()
	w := openInstant(t, func(k task.Task, m chat.Message) (task.Result, bool) {
		return task.Done("you said " + task.PlainText(m.Parts)), true
	})
	inbox, err := w.Inbox(t.Context(), w.ada)
	if err != nil {
		t.Fatal(err)
	}
	defer inbox.Close()
	for _, who := range []ident.Actor{w.ada, guest()} {
		a := question("calc", "2+2")
		a.Wait = true
		done := w.ask(who, a)
		k := w.task(done.Task.ID)
		if k.State != task.Completed || k.AnswerSeq != 2 || k.MessageSeq != 1 || k.Attempt != 1 || k.Face != "openai" || done.Task.State != task.Completed || done.Seq != 1 {
			t.Errorf("%s: stored %+v, returned %+v", who.Kind, k, done)
		}
		said := w.messages(done.ConversationID)
		if len(said) != 2 || len(done.Said) != 2 {
			t.Fatalf("%s: said %+v, returned %+v", who.Kind, said, done.Said)
		}
		if said[0].Sender.ID != who.ID || task.PlainText(said[1].Parts) != "you said 2+2" || said[1].TaskID != k.ID || said[1].Sender.Handle != "calc" || said[1].TaskState != task.Completed {
			t.Errorf("%s: said %+v", who.Kind, said)
		}
		if list := w.active(done.ConversationID); len(list) != 0 {
			t.Errorf("%s: still to be done: %+v", who.Kind, list)
		}
		again := question("calc", "and 3+3?")
		again.Context, again.Wait = done.ConversationID, true
		if next := w.ask(who, again); next.Task.State != task.Submitted || next.Seq != 3 {
			t.Errorf("%s: the conversation goes on with %+v", who.Kind, next)
		}
	}
	if n, err := inbox.Next(t.Context()); err != nil || n.From != "calc" {
		t.Errorf("the caller's browser is told %+v, %v", n, err)
	}
}

// Whatever is not a plain answer is the runtime's to get, and nothing of the
// attempt stays.
func TestAsk_LeavesToTheRuntimeWhatIsNoPlainAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result task.Result
		ok     bool
		edit   func(*chat.Ask)
	}{
		"no answer in time":    {task.Result{}, false, nil},
		"a failure":            {task.Result{State: task.Failed, Reason: "no"}, true, nil},
		"a question back":      {task.Result{State: task.InputRequired, Parts: text("which?")}, true, nil},
		"nothing said":         {task.Result{State: task.Completed}, true, nil},
		"a file":               {task.Result{State: task.Completed, Parts: []task.Part{{Raw: []byte("x"), Filename: "x"}}}, true, nil},
		"a call of another":    {task.Done("@guide knows"), true, nil},
		"who does not wait":    {task.Done("4"), true, func(a *chat.Ask) { a.Wait = false }},
		"what was said before": {task.Done("4"), true, func(a *chat.Ask) { a.Before = "hello" }},
		"another agent":        {task.Done("4"), true, func(a *chat.Ask) { a.Agent = "keeper" }},
	} {
		w := openInstant(t, func(task.Task, chat.Message) (task.Result, bool) { return c.result, c.ok })
		a := question("calc", "2+2")
		a.Wait = true
		if c.edit != nil {
			c.edit(&a)
		}
		done := w.ask(w.ada, a)
		list := w.active(done.ConversationID)
		if done.Task.State != task.Submitted || len(list) != 1 || list[0].ID != done.Task.ID || done.Said != nil {
			t.Errorf("%s: %+v, to be done %+v", name, done, list)
		}
		if n := w.book.calls[w.ada.ID+" "+a.Agent]; n != 1 {
			t.Errorf("%s: counted as %d calls", name, n)
		}
		if all, err := w.List(t.Context(), w.ada, chat.RoomFilter{Limit: 10}); err != nil || len(all) != 1 {
			t.Errorf("%s: conversations %+v, %v", name, all, err)
		}
	}
}

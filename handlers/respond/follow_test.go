package respond_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// book knows one agent.
type book struct{ agent chat.AgentRef }

func (b book) Agent(_ context.Context, _ ident.Actor, handle string) (chat.AgentRef, error) {
	if handle != b.agent.Handle {
		return chat.AgentRef{}, fault.New(fault.NotFound, "There is no agent %q.", handle)
	}
	return b.agent, nil
}

func (book) Person(context.Context, ident.Actor, string) (chat.Member, error) {
	return chat.Member{}, fault.New(fault.NotFound, "There is nobody.")
}

func (book) Admit(context.Context, ident.Actor, string, int) error { return nil }

func (book) Hosts(context.Context, []string) (map[string]string, error) { return nil, nil }

// idle is a runtime that runs nothing: tests do.
type idle struct{}

func (idle) Wake()                                   {}
func (idle) AwaitStop(context.Context, string) error { return nil }
func (idle) Stop(string) bool                        { return false }
func (idle) Ended(task.Task)                         {}
func (idle) WaitOf(string) (task.Wait, bool)         { return task.Wait{}, false }

// world is conversations over a real store; the test plays the runtime.
type world struct {
	*chat.Service
	t   testing.TB
	db  *storetest.DB
	ada ident.Actor
}

func open(t *testing.T) *world {
	db := storetest.New(t)
	a := storetest.Account(t, db, "ada")
	calc := storetest.Agent(t, db, "calc", a)
	return &world{t: t, db: db, ada: ident.Actor{Kind: ident.Person, ID: a.ID, Name: "ada"},
		Service: chat.New(db, book{chat.AgentRef{ID: calc.ID, Handle: "calc", Public: true}}, idle{}, chat.Config{Portal: "home.example"})}
}

func (w *world) ask(a chat.Ask) chat.Asked {
	w.t.Helper()
	a.Agent, a.ClientID, a.Parts = "calc", ident.NewID(), []task.Part{task.TextPart("2+2")}
	done, err := w.Ask(context.Background(), w.ada, a)
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

func (w *world) follow(k task.Task) *respond.Stream {
	w.t.Helper()
	s, err := respond.Follow(context.Background(), w.Service, w.ada, k)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) finish(k task.Task, r task.Result) {
	w.t.Helper()
	if err := w.Finish(context.Background(), k, r); err != nil {
		w.t.Fatal(err)
	}
}

// reader is what somebody who follows a stream has of it.
type reader struct {
	*respond.Stream
	text      string
	states    []task.State
	artifacts []string
	end       *respond.End
}

// next reads one event.
func (r *reader) next(t interface{ Fatal(...any) }) (more bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := r.Next(ctx)
	if errors.Is(err, io.EOF) && r.end != nil {
		return false
	}
	if err != nil || r.end != nil {
		t.Fatal("after the end: ", r.end != nil, err)
	}
	switch {
	case e.End != nil:
		r.end = e.End
	case e.Task != nil:
		r.states = append(r.states, e.Task.State)
	case e.Artifact != nil:
		r.artifacts = append(r.artifacts, e.Artifact.ID)
	case e.Restart:
		r.text = e.Text
	default:
		r.text += e.Text
	}
	return true
}

// all reads a stream to its end.
func all(t interface{ Fatal(...any) }, s *respond.Stream) *reader {
	r := &reader{Stream: s}
	for r.next(t) {
	}
	return r
}

func TestFollow_TellsAllInOrder(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.ask(chat.Ask{}).Task
	s := w.follow(k)
	defer s.Close()
	k.State = task.Working
	r := &reader{Stream: s}
	r.next(t)
	w.Working(k)
	r.next(t)
	w.Stream(k.ConversationID, k.ID, "It ")
	w.Stream(k.ConversationID, k.ID, "is ")
	r.next(t)
	k.Artifacts = []task.Artifact{{ID: "a1", Parts: []task.Part{task.TextPart("x")}}}
	w.finish(k, task.Done("It is 4"))
	for r.next(t) {
	}
	if r.text != "It is 4" || r.end.Text != r.text || r.end.Task.State != task.Completed || len(r.artifacts) != 1 || !slices.Equal(r.states, []task.State{task.Submitted, task.Working}) {
		t.Errorf("%+v %+v", r, r.end)
	}
	// Followed when all is over, it says the same.
	late := w.follow(k)
	defer late.Close()
	if l := all(t, late); l.text != "It is 4" || l.end.Message.Seq != r.end.Message.Seq || len(l.artifacts) != 1 {
		t.Errorf("late: %+v", l)
	}
}

func TestFollow_EndsWhereInputIsNeeded(t *testing.T) {
	t.Parallel()
	w := open(t)
	first := w.ask(chat.Ask{})
	w.finish(first.Task, task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart("Of what?")}})
	s := w.follow(first.Task)
	defer s.Close()
	if end, err := s.Wait(t.Context()); err != nil || end.Task.State != task.InputRequired || end.Text != "Of what?" {
		t.Errorf("%+v, %v", end, err)
	}
	next := w.ask(chat.Ask{TaskID: first.Task.ID})
	s = w.follow(next.Task)
	defer s.Close()
	w.finish(next.Task, task.Done("Done."))
	if r := all(t, s); r.text != "Done." || r.end.Task.ID != first.Task.ID || r.end.Task.State != task.Completed {
		t.Errorf("the second turn: %+v", r)
	}
}

func TestFollow_ATaskThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.ask(chat.Ask{}).Task
	s := w.follow(k)
	defer s.Close()
	w.Working(k)
	w.Stream(k.ConversationID, k.ID, "half")
	w.finish(k, task.Result{State: task.Failed, Reason: "It broke."})
	r := all(t, s)
	if r.text != "" || r.end.Text != "" || r.end.Task.State != task.Failed || r.end.Task.Reason != "It broke." || r.end.Message.Kind != chat.Event {
		t.Errorf("%+v", r)
	}
}

func TestFollow_WaitsNoLongerThanAllowed(t *testing.T) {
	t.Parallel()
	w := open(t)
	k := w.ask(chat.Ask{}).Task
	s := w.follow(k)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	w.finish(k, task.Done("4")) // and goes on where it was
	if end, err := s.Wait(t.Context()); err != nil || end.Text != "4" {
		t.Errorf("%+v, %v", end, err)
	}
	if err := w.DeleteConversation(t.Context(), w.ada, k.ConversationID); err != nil {
		t.Fatal(err)
	}
	if _, err := respond.Follow(t.Context(), w.Service, w.ada, k); !fault.Is(err, fault.NotFound) {
		t.Errorf("a conversation that is gone: %v", err)
	}
}

// However an agent streams, begins anew and ends, and whenever the reader
// comes, what they have in the end is the durable answer.
func TestFollow_TextsAddUpToTheAnswer(t *testing.T) {
	t.Parallel()
	w := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		k := w.ask(chat.Ask{}).Task
		w.Working(k)
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 12).Draw(rt, "steps")
		piece := rapid.SampledFrom([]string{"a", "b", "ab", "é"})
		join := rapid.IntRange(0, len(steps)).Draw(rt, "join")
		var r *reader
		var said strings.Builder
		for i, step := range steps {
			if i == join {
				r = &reader{Stream: w.follow(k)}
				r.next(rt)
			}
			switch step {
			case 0:
				text := strings.Repeat(piece.Draw(rt, "text"), rapid.IntRange(0, 2).Draw(rt, "times"))
				said.Reset()
				said.WriteString(text)
				w.Restream(k.ConversationID, k.ID, text)
			case 1: // something else happens in the room
				w.Status(k.ConversationID, k.ID, "thinking")
				if r != nil {
					r.next(rt) // what it has read of the text by then differs
				}
			default:
				text := piece.Draw(rt, "text")
				said.WriteString(text)
				w.Stream(k.ConversationID, k.ID, text)
			}
		}
		if r == nil {
			r = &reader{Stream: w.follow(k)}
		}
		defer r.Close()
		answer := said.String()
		switch rapid.IntRange(0, 2).Draw(rt, "answer") {
		case 0:
			answer += "!"
		case 1:
			answer = "other"
		}
		if answer == "" {
			answer = "x"
		}
		w.finish(k, task.Done(answer))
		for r.next(rt) {
		}
		if r.text != answer || r.end.Text != answer {
			rt.Fatalf("read %q, the answer is %q", r.text, answer)
		}
	})
}

func TestFollowAsked_KnowsWhatWasAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	answer := chat.Message{Seq: 2, Kind: chat.Text, Parts: []task.Part{task.TextPart("4")}, TaskState: task.Completed}
	asked := chat.Asked{Task: task.Task{ID: ident.NewID(), State: task.Completed, AnswerSeq: 2}, Said: []chat.Message{{Seq: 1}, answer}}
	s, err := respond.FollowAsked(t.Context(), nil, ident.Actor{}, asked) // nothing is read
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var text string
	for {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text += e.Text
		if e.End == nil {
			continue
		}
		if text != "4" || e.End.Text != "4" || e.End.Task.ID != asked.Task.ID || e.End.Message.Seq != 2 {
			t.Errorf("told %q, end %+v", text, e.End)
		}
		break
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if _, ok := respond.Ended(chat.Asked{Task: asked.Task}); ok {
		t.Error("an end of which nothing is known")
	}
}

package agentruntime_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agentruntime/remote"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/storetest"
)

// TestWorker_StopsTheFarSideAtOnce checks that each event which ends an answer
// reaches a server that would stream for ever.
func TestWorker_StopsTheFarSideAtOnce(t *testing.T) {
	synctest.Test(t, stopsTheFarSide)
}

func stopsTheFarSide(t *testing.T) {
	network := agenttest.NewNetwork()
	s := network.OpenAIServer(t)
	driver := remote.NewOpenAI(network.Transport(t), remote.Config{})
	config, err := json.Marshal(hub.OpenAIConfig{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	h := build(t)
	h.start(func(ctx context.Context, c task.Call, out task.Sink) (task.Result, error) {
		c.Agent.Endpoint, c.Agent.Config, c.Agent.Secret = s.Base(agenttest.Wait), config, ""
		return driver.Run(ctx, c, out)
	})
	b := storetest.Account(t, h.db, "bob")
	bob := ident.Actor{Kind: ident.Person, ID: b.ID, Name: "bob"}
	for _, c := range []struct {
		name string
		do   func(room string, k task.Task) error
	}{
		{"the task is canceled", func(_ string, k task.Task) error { _, err := h.tasks.Cancel(t.Context(), bob, k.ID); return err }},
		{"the conversation is stopped", func(room string, _ task.Task) error {
			_, err := h.tasks.StopConversation(t.Context(), h.ada, room)
			return err
		}},
		{"the account ends", func(string, task.Task) error { _, err := h.tasks.StopCaller(t.Context(), b.ID); return err }},
		{"the message is taken away", func(room string, k task.Task) error {
			_, err := h.chat.DeleteMessage(t.Context(), bob, room, k.MessageSeq)
			return err
		}},
		{"the agent is removed", func(room string, _ task.Task) error { return h.chat.Remove(t.Context(), h.ada, room, "helper") }},
		{"the person is removed", func(room string, _ task.Task) error { return h.chat.Remove(t.Context(), h.ada, room, "bob") }},
		{"the person leaves", func(room string, _ task.Task) error { return h.chat.DeleteConversation(t.Context(), bob, room) }},
	} {
		room := h.room()
		e := chat.Message{ID: ident.NewID(), Kind: chat.Event, CreatedAt: time.Now(), Parts: []task.Part{task.TextPart("joined")}}
		if _, err := h.db.Join(t.Context(), room, chat.Member{Kind: "person", ID: b.ID, Handle: "bob", Role: chat.RoleMember}, "", e); err != nil {
			t.Fatal(err)
		}
		p, err := h.chat.Post(t.Context(), bob, room, chat.Draft{ClientID: ident.NewID(), Parts: []task.Part{task.TextPart("go on for ever")}})
		if err != nil {
			t.Fatal(err)
		}
		k := p.Tasks[0]
		<-s.Started
		began := time.Now()
		if err := c.do(room, k); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		<-s.Stopped
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("%s: the far side was stopped after %v", c.name, took)
		}
	}
	// The last one there takes the conversation along.
	room := h.room()
	h.say(room, "go on")
	<-s.Started
	if err := h.chat.DeleteConversation(t.Context(), h.ada, room); err != nil {
		t.Fatal(err)
	}
	<-s.Stopped
	// Asked again, what is still at it is stopped first.
	room = h.room()
	k := h.say(room, "go on")
	<-s.Started
	if _, err := h.tasks.Cancel(t.Context(), h.ada, k.ID); err != nil {
		t.Fatal(err)
	}
	<-s.Stopped
	answer := h.answers(room, 1)[0]
	for range 2 {
		if _, err := h.chat.Regenerate(t.Context(), h.ada, room, answer.Seq, "page"); err != nil {
			t.Fatal(err)
		}
		<-s.Started
	}
	<-s.Stopped
	if _, err := h.tasks.StopConversation(t.Context(), h.ada, room); err != nil {
		t.Fatal(err)
	}
	<-s.Stopped
	storetest.Sound(t, h.db)
}

// Agents that call each other hear who speaks and for whom.
func TestWorker_AnAgentCallsAnother(t *testing.T) {
	h := build(t)
	storetest.Agent(t, h.db, "second", storetest.Account(t, h.db, "bob"))
	calls := make(chan task.Call, 10)
	h.start(func(_ context.Context, c task.Call, _ task.Sink) (task.Result, error) {
		calls <- c
		if c.Agent.Handle == "helper" {
			return task.Done("@second, what do you say?"), nil
		}
		return task.Done("Nothing."), nil
	})
	room := h.room()
	if _, err := h.chat.Invite(t.Context(), h.ada, room, "second"); err != nil {
		t.Fatal(err)
	}
	h.say(room, "@helper hello")
	first, second := <-calls, <-calls
	if first.AskedBy() != (task.Speaker{Kind: "person", Handle: "ada"}) || second.AskedBy() != (task.Speaker{Kind: "agent", Handle: "helper"}) || second.Caller.Handle != "ada" {
		t.Errorf("%+v %+v", first.AskedBy(), second.AskedBy())
	}
	if len(second.History) != 1 || !second.History[0].Asker || second.History[0].Kind != "person" || second.History[0].Mine || second.Files == nil {
		t.Errorf("%+v", second.History)
	}
	if got := h.answers(room, 2); text(got[1]) != "Nothing." {
		t.Errorf("%q", text(got[1]))
	}
}

// A stop is confirmed after its end is stored, so that a kill of the process right after cannot start the task again.
func TestWorker_ConfirmsAStopThatIsStored(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.failing = map[string]*atomic.Int32{"Finish": new(atomic.Int32)}
	begun := make(chan struct{}, 10)
	h.start(func(ctx context.Context, _ task.Call, _ task.Sink) (task.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return task.Result{}, ctx.Err()
	})
	for name, stop := range map[string]func(room string, k task.Task) error{
		"cancel": func(_ string, k task.Task) error { return h.chat.StopTask(t.Context(), h.ada, k.ID, "Stopped.") },
		"conversation": func(room string, _ task.Task) error {
			_, err := h.tasks.StopConversation(t.Context(), h.ada, room)
			return err
		},
		"message": func(room string, k task.Task) error {
			_, err := h.chat.DeleteMessage(t.Context(), h.ada, room, k.MessageSeq)
			return err
		},
		"member": func(room string, _ task.Task) error { return h.chat.Remove(t.Context(), h.ada, room, "helper") },
	} {
		room := h.room()
		k := h.say(room, "go on for ever")
		<-begun
		h.failing["Finish"].Store(2)
		if err := stop(room, k); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if now, err := h.db.TaskByID(t.Context(), k.ID); err != nil || now.State != task.Canceled {
			t.Errorf("%s: confirmed while the task is %s (%v)", name, now.State, err)
		}
	}
}

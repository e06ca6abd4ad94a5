package agentruntime_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"agentsite/internal/task"
)

// keeper is an agent whose far side keeps the task that the checkpoint names.
type keeper struct {
	agentFunc
	told chan string
}

func (k keeper) Stop(_ context.Context, c task.Call) {
	k.told <- string(c.Checkpoint) + " of " + c.Caller.Handle
}

func (k keeper) hears(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-k.told:
		if got != want {
			t.Errorf("the far side was told of %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("the far side was not told")
	}
}

func TestWorker_TellsTheFarSideOfTasksThatDoNotRun(t *testing.T) {
	h := build(t)
	begun := make(chan struct{})
	k := keeper{told: make(chan string, 1), agentFunc: func(ctx context.Context, c task.Call, out task.Sink) (task.Result, error) {
		if err := out.Checkpoint(ctx, json.RawMessage(`"`+task.PlainText(c.Parts)+`"`)); err != nil {
			return task.Result{}, err
		}
		if task.PlainText(c.Parts) == "ask" {
			return task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart("Which one?")}}, nil
		}
		begun <- struct{}{}
		<-ctx.Done()
		return task.Result{}, context.Cause(ctx)
	}}
	h.startAs(k)
	// One that waits for input, stopped, and one whose conversation goes.
	room := h.room()
	asks := h.say(room, "ask")
	h.answers(room, 1)
	if _, err := h.tasks.Cancel(t.Context(), h.ada, asks.ID); err != nil {
		t.Fatal(err)
	}
	k.hears(t, `"ask" of ada`)
	room = h.room()
	h.say(room, "ask")
	h.answers(room, 1)
	if err := h.chat.DeleteConversation(t.Context(), h.ada, room); err != nil {
		t.Fatal(err)
	}
	k.hears(t, `"ask" of ada`)
	// One that was begun before the portal was started again, and is stopped
	// before it goes on.
	works := h.say(h.room(), "work")
	<-begun
	h.shutdown()
	if now, err := h.tasks.Cancel(t.Context(), h.ada, works.ID); err != nil || now.State != task.Canceled {
		t.Fatalf("%+v %v", now, err)
	}
	h.startAs(k)
	k.hears(t, `"work" of ada`)
	// Nobody is told of one that was never handed over.
	h.shutdown()
	room = h.room()
	if _, err := h.tasks.Cancel(t.Context(), h.ada, h.say(room, "never").ID); err != nil {
		t.Fatal(err)
	}
	h.startAs(k)
	asks = h.say(room, "ask")
	h.answers(room, 2)
	if _, err := h.tasks.Cancel(t.Context(), h.ada, asks.ID); err != nil {
		t.Fatal(err)
	}
	k.hears(t, `"ask" of ada`)
}

// A task that waits for input is in the database before it has left the queue:
// what stops it in between ends it all the same.
func TestWorker_EndsWhatIsStoppedWhileItIsPutDown(t *testing.T) {
	h := build(t)
	k := keeper{told: make(chan string, 1), agentFunc: func(ctx context.Context, c task.Call, out task.Sink) (task.Result, error) {
		if err := out.Checkpoint(ctx, json.RawMessage(`"`+task.PlainText(c.Parts)+`"`)); err != nil {
			return task.Result{}, err
		}
		return task.Result{State: task.InputRequired, Parts: []task.Part{task.TextPart("Which one?")}}, nil
	}}
	var stop func(task.Task)
	h.finished = func(w task.Task) {
		if w.State == task.InputRequired {
			if !h.queue.Stop(w.ID) {
				t.Error("the task has left the queue")
			}
			stop(w)
		}
	}
	stop = func(task.Task) {}
	h.startAs(k)
	asks := h.say(h.room(), "stopped")
	k.hears(t, `"stopped" of ada`)
	if now, err := h.tasks.Get(t.Context(), h.ada, asks.ID); err != nil || now.State != task.Canceled {
		t.Fatalf("%+v %v", now, err)
	}
	stop = func(w task.Task) {
		if err := h.db.DeleteRoom(t.Context(), w.ConversationID); err != nil {
			t.Error(err)
		}
	}
	h.say(h.room(), "gone")
	k.hears(t, `"gone" of ada`)
}

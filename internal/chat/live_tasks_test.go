package chat

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// waits is a runtime that runs nothing, with the waits of its tasks.
type waits map[string]task.Wait

func (w waits) Wake()                                 {}
func (waits) AwaitStop(context.Context, string) error { return nil }
func (w waits) Stop(string) bool                      { return false }
func (w waits) Ended(task.Task)                       {}

func (w waits) WaitOf(id string) (task.Wait, bool) {
	wait, ok := w[id]
	return wait, ok
}

// The runtime may take a task up, and end it, before whoever asked for it has
// told of it.
func TestWaits_ComesAfterTheRuntime(t *testing.T) {
	s := New(newMemory(), nil, waits{}, Config{})
	k := task.Task{ID: ident.NewID(), ConversationID: ident.NewID(), MessageSeq: 1, State: task.Submitted}
	s.Working(k)
	s.Stream(k.ConversationID, k.ID, "the beginning")
	s.showWaiting(k)
	if list := s.Running(k.ConversationID); len(list) != 1 || list[0].Text != "the beginning" {
		t.Errorf("%+v", list)
	}
	s.removeSettled(k)
	s.showWaiting(k)
	if list := s.Running(k.ConversationID); len(list) != 0 {
		t.Errorf("an ended task runs for ever: %+v", list)
	}
	k.MessageSeq = 3 // it had waited for an answer
	s.showWaiting(k)
	if list := s.Running(k.ConversationID); len(list) != 1 {
		t.Errorf("%+v", list)
	}
	s.removeSettled(k)
	for i := range 3 * maxLately {
		s.removeShown(task.Task{ID: fmt.Sprint(i)})
	}
	if n := len(s.live.over.keys); n != maxLately || len(s.live.over.ring) != n {
		t.Errorf("%d are remembered", n)
	}
	if s.live.over.hasTask(k) || !s.live.over.hasTask(task.Task{ID: fmt.Sprint(3*maxLately - 1)}) {
		t.Error("not the last ones")
	}
}

// Live readers see when a waiting task is about to start, and again only when that changed noticeably.
func TestWaits_ReadersSeeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := newMemory(), waits{}
		s := New(store, nil, h, Config{})
		room := store.open("ada")
		sub := reader(t, s, "ada", room, 0)
		defer sub.Close()
		sink := &batches{}
		for !sub.Attach(sink) {
			if _, err := sub.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		id := ident.NewID()
		s.ShowQueued(task.Queued{ID: id, ConversationID: room, AgentHandle: "slow", MessageSeq: 1})
		var got []string
		for _, w := range []task.Wait{{}, {Before: 3, Left: 19 * time.Second}, {Before: 3, Left: 17 * time.Second},
			{Before: 2, Left: 17 * time.Second}, {Left: 3 * time.Minute}} {
			h[id] = w
			s.UpdateWaits()
			synctest.Wait()
		}
		s.Working(task.Task{ID: id, ConversationID: room, State: task.Working})
		s.UpdateWaits()
		synctest.Wait()
		for _, u := range sink.got {
			if u.Task != nil {
				got = append(got, string(u.Task.State)+" "+u.Task.Wait.String())
			}
		}
		want := []string{"submitted ", "submitted about 20 s; 3 before it", "submitted about 20 s; 2 before it",
			"submitted about 3 min", "working "}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

package chat

import (
	"fmt"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// The runtime may take a task up, and end it, before whoever asked for it has
// told of it.
func TestWaits_ComesAfterTheRuntime(t *testing.T) {
	s := New(newMemory(), nil, nil, Config{})
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

package chat_test

import (
	"testing"

	"agentsite/internal/task"
)

// Whatever ends the reason for some work stops it, whether it runs or waits.
func TestStop_WhatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(w *world, room string, seq int64) error
		stay bool // of the others' work
	}{
		{"the message is taken away", func(w *world, room string, seq int64) error {
			_, err := w.DeleteMessage(t.Context(), w.bob, room, seq)
			return err
		}, true},
		{"the agent is removed", func(w *world, room string, _ int64) error { return w.Remove(t.Context(), w.bob, room, "calc") }, true},
		{"the person is removed", func(w *world, room string, _ int64) error { return w.Remove(t.Context(), w.ada, room, "bob") }, true},
		{"the person leaves", func(w *world, room string, _ int64) error { return w.DeleteConversation(t.Context(), w.bob, room) }, true},
		{"the conversation is deleted", func(w *world, room string, _ int64) error {
			if err := w.DeleteConversation(t.Context(), w.bob, room); err != nil {
				return err
			}
			return w.DeleteConversation(t.Context(), w.ada, room)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t)
			room := w.room(w.ada, "calc", "guide", "bob")
			asked := w.say(w.bob, room, "@calc go")
			waits := asked.Tasks[0]
			others := w.say(w.ada, room, "@guide go").Tasks[0]
			stopped := make(map[string]bool)
			for _, k := range []task.Task{others} {
				w.hands.running[k.ID] = func() { stopped[k.ID] = true }
			}
			if err := c.do(w, room, asked.Message.Seq); err != nil {
				t.Fatal(err)
			}
			if c.stay {
				if k := w.task(waits.ID); k.State != task.Canceled {
					t.Errorf("bob's work is %s", k.State)
				}
			}
			if stopped[others.ID] == c.stay {
				t.Errorf("ada's work was stopped: %v", stopped[others.ID])
			}
		})
	}
}

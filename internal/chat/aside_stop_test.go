package chat_test

import (
	"slices"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// asking is a chain of three agents that ask each other, of which the first has the task parent. The second one runs.
type asking struct {
	*world
	talk                      string
	seq                       int64
	parent, child, grandchild task.Task
}

func openAsking(t *testing.T) *asking {
	w := &asking{world: open(t)}
	w.talk = w.room(w.ada, "guide", "bob")
	said := w.say(w.bob, w.talk, "@guide go")
	w.parent, w.seq = said.Tasks[0], said.Message.Seq
	w.child = w.mustAside(w.parent, "calc", "one", 0).Task
	w.grandchild = w.mustAside(w.child, "far", "two", 0).Task
	w.hands.running[w.child.ID] = func() {
		delete(w.hands.running, w.child.ID)
		if err := w.Finish(t.Context(), w.child, task.Result{State: task.Canceled}); err != nil {
			t.Error(err)
		}
	}
	return w
}

func TestAsides_EndWithTheirAsker(t *testing.T) {
	t.Parallel()
	ends := func(state task.State) func(*asking) error {
		return func(w *asking) error { return w.Finish(t.Context(), w.parent, task.Result{State: state}) }
	}
	for name, end := range map[string]func(*asking) error{
		"fails":       ends(task.Failed),
		"is rejected": ends(task.Rejected),
		"is canceled": func(w *asking) error { return w.StopTask(t.Context(), w.bob, w.parent.ID, "Stopped.") },
		"message deleted": func(w *asking) error {
			_, err := w.DeleteMessage(t.Context(), w.bob, w.talk, w.seq)
			return err
		},
		"agent removed":  func(w *asking) error { return w.Remove(t.Context(), w.ada, w.talk, "guide") },
		"person leaves":  func(w *asking) error { return w.DeleteConversation(t.Context(), w.bob, w.talk) },
		"person removed": func(w *asking) error { return w.Remove(t.Context(), w.ada, w.talk, "bob") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openAsking(t)
			if err := end(w); err != nil {
				t.Fatal(err)
			}
			for _, k := range []task.Task{w.child, w.grandchild} {
				if now := w.task(k.ID); now.State != task.Canceled {
					t.Errorf("%s is %s", k.AgentHandle, now.State)
				}
			}
		})
	}
	w := openAsking(t)
	other := w.mustAside(w.say(w.ada, w.talk, "@guide go").Tasks[0], "calc", "one", 0).Task
	w.answer(w.parent, "I know it.")
	for _, k := range []task.Task{w.child, other} {
		if now := w.task(k.ID); now.State != task.Submitted {
			t.Errorf("%s of another task, or of a completed one, is %s", k.AgentHandle, now.State)
		}
	}
}

// A question that is stored while its asker ends is stopped, and the agent learns it.
func TestAsides_AreRefusedWhileTheAskerEnds(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "guide")
	k := w.say(w.ada, room, "go").Tasks[0]
	w.book.admit = func() {
		w.book.admit = nil
		w.book.mu.Unlock()
		defer w.book.mu.Lock()
		w.answer(k, "I know it.")
	}
	asked, err := w.aside(k, "calc", "one", 0)
	if !fault.Is(err, fault.Conflict) || w.task(asked.Task.ID).State != task.Canceled {
		t.Errorf("%+v, %v", asked.Task, err)
	}
}

// After a kill, questions of tasks that have ended do not run again.
func TestAsides_EndOrphans(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "guide", "keeper")
	var kept, gone []string
	for i, say := range []string{"@guide go", "@guide go again"} {
		k := w.say(w.ada, room, say).Tasks[0]
		kept = append(kept, w.mustAside(k, "calc", ident.NewID(), 0).Task.ID)
		if i == 0 {
			w.answer(k, "done")
			kept, gone = gone, kept
		}
	}
	kept = append(kept, w.say(w.ada, room, "@keeper go").Tasks[0].ID)
	if err := w.Asides.EndOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]task.State{gone[0]: task.Canceled, kept[0]: task.Submitted, kept[1]: task.Submitted} {
		if k := w.task(id); k.State != want {
			t.Errorf("the task of %s is %s, want %s", k.AgentHandle, k.State, want)
		}
	}
	if !slices.Equal(w.hands.ended, gone) {
		t.Errorf("the runtime forgets %q, want %q", w.hands.ended, gone)
	}
}

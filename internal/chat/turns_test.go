package chat_test

import (
	"strings"
	"testing"

	"agentsite/internal/clock"
	"agentsite/internal/task"
)

// TestTurns_AreBounded: of a task with very long turns the last ones are read,
// the newest always.
func TestTurns_AreBounded(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := question("calc", "begin")
	k := w.ask(w.ada, a).Task
	long := strings.Repeat("x", 200<<10)
	const rounds = 30
	for i := range rounds {
		k = w.task(k.ID)
		k.UpdatedAt = clock.Now()
		if err := w.Finish(t.Context(), k, task.Result{State: task.InputRequired, Parts: text(long)}); err != nil {
			t.Fatal(i, err)
		}
		next := question("calc", "more")
		next.TaskID = k.ID
		w.ask(w.ada, next)
	}
	k = w.task(k.ID)
	if err := w.Finish(t.Context(), k, task.Result{State: task.Completed, Parts: text("done " + long)}); err != nil {
		t.Fatal(err)
	}
	list, err := w.Turns(t.Context(), w.ada, w.task(k.ID))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for i, m := range list {
		size += len(task.PlainText(m.Parts))
		if i > 0 && m.Seq <= list[i-1].Seq {
			t.Error("not in order")
		}
		if q := m.Sender.Kind != "agent"; q != (m.ClientID != "") {
			t.Errorf("%+v", m)
		}
	}
	if size > 5<<20 || len(list) < rounds || !strings.HasPrefix(task.PlainText(list[len(list)-1].Parts), "done ") {
		t.Errorf("%d turns of %d bytes", len(list), size)
	}
	one := w.ask(w.bob, question("calc", "hello"))
	if err := w.Finish(t.Context(), one.Task, task.Result{State: task.Completed, Parts: text("fine")}); err != nil {
		t.Fatal(err)
	}
	if list, err = w.Turns(t.Context(), w.bob, w.task(one.Task.ID)); err != nil || len(list) != 2 {
		t.Errorf("a short task: %d turns, %v", len(list), err)
	}
}

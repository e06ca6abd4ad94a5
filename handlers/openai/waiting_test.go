package openai

import "testing"

func TestWaiting_TheLastOneKnows(t *testing.T) {
	t.Parallel()
	var w waiting
	first, second, other := w.enterCall("a"), w.enterCall("a"), w.enterCall("b")
	if first() || !second() || !other() {
		t.Error("the last of those who wait is not known")
	}
	if again := w.enterCall("a"); !again() || len(w.calls) != 0 {
		t.Error("what has ended is remembered", w.calls)
	}
}

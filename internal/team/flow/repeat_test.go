package flow_test

import (
	"testing"

	"agentsite/internal/team/flow"
)

func TestCountRepeated(t *testing.T) {
	say := func(text string) flow.Event {
		return flow.Event{Kind: flow.Moved, Move: &flow.Move{Kind: flow.Say, Text: text}}
	}
	log := []flow.Event{{Kind: flow.Opened, Open: &flow.Opening{Goal: "Add 1 and 2."}},
		move(1, flow.Move{Kind: flow.Assign, Tasks: []flow.Assignment{assign("ann", "Add 1 and 2.")}}),
		started(1, 1), ended(1, 1, flow.Completed, "The sum is 3."), ended(1, 1, flow.Broken, "The sum is 3."),
		say("Is it 3?"), say("is it… 3"), say("One two three four five six seven eight nine."),
		say("one two three four five six seven eight nine ten"), say("one two three four five six seven ten eleven"), say("…")}
	if repeated, all := flow.CountRepeated(log); repeated != 2 || all != 7 {
		t.Errorf("%d of %d", repeated, all)
	}
}

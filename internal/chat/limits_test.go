package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/fault"
)

// A visitor's message costs as much as the agents that it asks, an account's is not limited.
func TestPost_CountsEachAgentThatAVisitorAddresses(t *testing.T) {
	t.Parallel()
	w := open(t)
	var all []string
	for i := range 21 {
		all = append(all, fmt.Sprintf("helper-%c", 'a'+i))
		w.agent(all[i], "")
	}
	mention := func(n int) string { return "@" + strings.Join(all[:n], " @") }
	visitor, neighbour := guest(), guest()
	room := w.room(visitor, all...)
	_, err := w.Post(t.Context(), visitor, room, w.draft(mention(21)))
	kind(t, "more agents than a visitor may ever address", err, fault.Invalid)
	for range 3 { // 1 + 18 of 20
		w.post(visitor, room, w.draft(mention(6)))
	}
	before := len(w.messages(room))
	_, err = w.Post(t.Context(), visitor, room, w.draft(mention(3)))
	if f := fault.As(err); f.Kind != fault.RateLimited || f.RetryAfter <= 0 {
		t.Errorf("the 20th call: %v", err)
	}
	if n := len(w.messages(room)); n != before {
		t.Error("the refused message is stored")
	}
	other := w.room(neighbour, all...)
	w.post(neighbour, other, w.draft(mention(20)))
	ours := w.room(w.ada, all...)
	for range 3 {
		if done := w.post(w.ada, ours, w.draft(mention(21))); len(done.Tasks) != 21 {
			t.Errorf("%d tasks", len(done.Tasks))
		}
	}
}

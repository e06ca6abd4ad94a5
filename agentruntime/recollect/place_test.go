package recollect

import (
	"context"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// place is a directory of one agent, and a room of ada with it.
type place struct{ Directory }

func (place) AgentByID(context.Context, string) (hub.Agent, error) { return hub.Agent{ID: "a"}, nil }
func (place) TextGoesTo(hub.Agent) string                          { return "" }
func (place) Members(context.Context, string) ([]chat.Member, error) {
	return []chat.Member{{ID: "a"}, {ID: "ada"}}, nil
}

// An answer goes to the agent that asked, so memories of the person must be neither in it nor come from it.
func TestPlaceOf_IsOnlyForThePersonsOwnMessages(t *testing.T) {
	t.Parallel()
	k := New(Config{Directory: place{}, Rooms: place{}})
	own := task.Call{ConversationID: "c", Agent: task.Target{ID: "a"}, Caller: task.Caller{Kind: "person", ID: "ada"}}
	via, relayed, spoken := own, own, own
	via.Via = task.Chain{}.AppendHop("p1a/1")
	relayed.Relayed, relayed.Via = true, via.Via
	spoken.Relayed, spoken.Speaker = true, task.Speaker{Kind: "agent", Handle: "guide"}
	for name, c := range map[string]struct {
		call task.Call
		want bool
	}{"own": {own, true}, "via agents": {via, false}, "relayed": {relayed, false}, "spoken by an agent": {spoken, false}} {
		if _, ok, err := k.placeOf(t.Context(), c.call); ok != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

package recollect_test

import (
	"context"
	"testing"

	"agentsite/agentruntime/recollect"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
	"agentsite/internal/task"
)

// room is a conversation with its agent, and keeps the last use of a memory there.
type room struct {
	recollect.Memory
	members []chat.Member
	used    memory.Use
}

func (r *room) Members(context.Context, string) ([]chat.Member, error) { return r.members, nil }

func (*room) AgentByID(_ context.Context, id string) (hub.Agent, error) {
	return hub.Agent{ID: id, Name: "minder"}, nil
}

func (*room) TextGoesTo(hub.Agent) string { return "" }

func (r *room) Recall(_ context.Context, u memory.Use, _ string, _ int) ([]memory.Memory, error) {
	r.used = u
	return nil, nil
}

// A use carries the first message that its person sees, and the use by a person that left has no memory.
func TestRecall_IsLimitedToWhatThePersonSees(t *testing.T) {
	t.Parallel()
	r := &room{members: []chat.Member{{Kind: "person", ID: "ada"}, {Kind: "person", ID: "bob", FromSeq: 7},
		{Kind: "agent", ID: "minder"}}}
	k := recollect.New(recollect.Config{Memory: r, Directory: r, Rooms: r})
	call := task.Call{ConversationID: "room", MessageSeq: 9}
	call.Agent.ID, call.Caller.Kind = "minder", string(ident.Person)
	for id, from := range map[string]int64{"ada": 0, "bob": 7} {
		call.Caller.ID = id
		if _, err := k.Recall(t.Context(), call, "x"); err != nil || r.used.FromSeq != from || r.used.RoomID != "room" ||
			r.used.PersonID != id {
			t.Errorf("%s: %+v, %v", id, r.used, err)
		}
	}
	call.Caller.ID = "eve"
	if _, err := k.Recall(t.Context(), call, "x"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("of a person who left: %v", err)
	}
}

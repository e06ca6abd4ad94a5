package chat

import (
	"context"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// Limits on the history sent to an agent: messages, bytes of text, and the pages read to find them.
const (
	historyMessages = 40
	historyBytes    = 48 << 10
	historyPage     = 50
	historyPages    = 20 // Edits and events fill pages too, but are not sent.
	// page size after the first page, for transcripts with few messages among many events
	historyLonger = 200
)

// History is the part of a conversation that is sent to an agent with a task.
type History struct {
	// Ask is the message to answer. Earlier are the messages before it, oldest first, cut to
	// historyMessages and historyBytes.
	Ask     Message
	Earlier []Message
	// Asker is the member that the task works for; its FromSeq limits what the agent may get.
	Asker Member
}

// History returns the messages before a task's message that its caller sees, limited to the share they
// chose. The runtime calls it before it asks the agent.
func (s *Service) History(ctx context.Context, t task.Task) (History, error) {
	asker, members, err := findAsker(ctx, s.store, t)
	if err != nil {
		return History{}, err
	}
	if _, in := findMember(members, "agent", t.AgentID); !in {
		return History{}, fault.New(fault.NotFound, "%s is not in the conversation any more.", t.AgentHandle)
	}
	gone := fault.New(fault.NotFound, "The message this task answers is gone.")
	ask, err := s.store.Message(ctx, t.ConversationID, t.MessageSeq)
	if fault.Is(err, fault.NotFound) || err == nil && (!ask.Now.UnsaidAt.IsZero() || ask.Seq <= asker.FromSeq) {
		err = gone
	}
	if err != nil {
		return History{}, err
	}
	h := History{Ask: ask, Asker: asker}
	if Share(t.Share) == ShareNothing {
		return h, nil
	}
	list, err := s.readEarlier(ctx, t.ConversationID, asker.FromSeq, ask.Seq)
	if err != nil {
		return History{}, err
	}
	if t.Replaces > 0 { // the answer being regenerated is left out
		list = slices.DeleteFunc(list, func(m Message) bool { return m.Seq == t.Replaces })
	}
	if Share(t.Share) == ShareOwn {
		if list, err = s.filterOwn(ctx, t, asker, members, list); err != nil {
			return History{}, err
		}
	}
	h.Earlier = cutToNewest(list)
	return h, nil
}

// readEarlier returns the messages between from and seq (both exclusive) that are not deleted, oldest
// first. Of a regenerated answer only the newest form is included, at the position of the first.
func (s *Service) readEarlier(ctx context.Context, id string, from, seq int64) ([]Message, error) {
	var found []Message // newest first
	before, size, limit := seq, 0, historyPage
	for range historyPages {
		page, more, err := s.store.Messages(ctx, id, Span{After: from, Before: before, Limit: limit, Newest: true})
		if err != nil {
			return nil, err
		}
		for _, m := range slices.Backward(page) {
			if m.Kind == Text && m.Now.UnsaidAt.IsZero() {
				found = append(found, m)
				size += len(task.PlainText(m.Parts))
			}
		}
		if !more || len(found) >= 2*historyMessages || size > 4*historyBytes {
			break
		}
		before, limit = page[0].Seq, historyLonger
	}
	slices.Reverse(found)
	return inPlace(found), nil
}

// inPlace moves each regenerated answer to the position of the answer it replaces, which is removed.
func inPlace(list []Message) []Message {
	var out []Message
	at := make(map[int64]int) // index in out of each replaced answer, by its seq
	for _, m := range list {
		i, again := at[m.Target]
		again = again && m.Sender.Kind == "agent" && out[i].Sender.ID == m.Sender.ID
		if !again {
			i = len(out)
			out = append(out, m)
		} else {
			out[i] = m
		}
		if m.Now.NewerSeq > 0 {
			at[m.Seq] = i
		}
	}
	return slices.DeleteFunc(out, func(m Message) bool { return m.Now.NewerSeq > 0 })
}

// filterOwn keeps the messages between the asker and the task's agent, for ShareOwn.
func (s *Service) filterOwn(ctx context.Context, t task.Task, asker Member, members []Member, list []Message) ([]Message, error) {
	set, _, err := s.store.SettingsOf(ctx, t.ConversationID)
	if err != nil {
		return nil, err
	}
	agents := Conversation{Members: members}.Agents()
	agent := Member{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle}
	theirs := make(map[int64]bool)
	for _, m := range list {
		if m.Sender.Kind == "agent" && m.Sender.ID == agent.ID {
			theirs[m.Seq] = true
		}
	}
	return slices.DeleteFunc(list, func(m Message) bool {
		return !concerns(m, agent, asker, members, agents, set, s.cfg.Portal, theirs)
	}), nil
}

// cutToNewest returns the longest tail of list within historyMessages and historyBytes.
func cutToNewest(list []Message) []Message {
	size, from := 0, len(list)
	for from > 0 && len(list)-from < historyMessages {
		if size += len(task.PlainText(list[from-1].Parts)); size > historyBytes {
			break
		}
		from--
	}
	return list[from:]
}

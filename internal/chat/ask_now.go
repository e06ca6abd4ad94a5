package chat

import (
	"context"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Instant is agents that answer at once from the question alone: without a
// network, a model or anything they would change.
type Instant interface {
	// AnswerNow returns what the task's agent says to the message. ok is false
	// where there is none, or not in a moment: then the task is to be done as
	// any other, and nothing has happened.
	AnswerNow(ctx context.Context, t task.Task, m Message) (r task.Result, ok bool)
}

// askNow asks an agent that answers at once and stores the conversation with
// question and answer. The caller knows of none of them before they are on
// disk, so that what a crash takes was never promised; that the answer was made
// first shows nowhere. ok is false where the agent has to be asked as others
// are: it took too long, wants something, or said what more would follow from.
func (s *Service) askNow(ctx context.Context, room Conversation, p Post, first *FirstAsk) (out Asked, ok bool, err error) {
	if s.cfg.Instant == nil || len(p.Ask) != 1 {
		return out, false, nil
	}
	t := p.Ask[0]
	t.MessageSeq, t.Attempt = 1, 1
	r, ok := s.cfg.Instant.AnswerNow(ctx, t, p.Message)
	if !ok || r.State != task.Completed || len(r.Parts) == 0 || slices.ContainsFunc(r.Parts, notText) || len(mentions(task.PlainText(r.Parts), s.cfg.Portal)) > 0 {
		return out, false, nil
	}
	t.State, t.UpdatedAt, t.AnswerSeq, t.Direct = task.Completed, clock.Now(), 2, r.Direct
	if room.Title == "" {
		room.Title = p.Title
	}
	said, err := s.store.CreateAnswered(ctx, Answered{Room: room, Question: p.Message, Task: t, First: first,
		Answer: Message{ConversationID: room.ID, ID: ident.NewID(), ClientID: t.ID, Sender: Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle},
			Kind: Text, Parts: r.Parts, TaskID: t.ID, TaskState: t.State, CreatedAt: t.UpdatedAt}})
	if err != nil {
		return out, false, err
	}
	for _, m := range said {
		s.live.message(m)
	}
	return Asked{ConversationID: room.ID, Seq: 1, Task: t, Said: said}, true, nil
}

func notText(p task.Part) bool { return p.Text == "" || p.Raw != nil || p.URL != "" || p.Data != nil }

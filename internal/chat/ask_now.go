package chat

import (
	"context"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Instant runs agents that answer at once from the question alone, without network, model or side effects.
type Instant interface {
	// AnswerNow returns the immediate answer of the task's agent to m. If ok is false, the agent has
	// none or is too slow: nothing has changed, and the runtime runs the task as usual.
	AnswerNow(ctx context.Context, t task.Task, m Message) (r task.Result, ok bool)
}

// askNow runs an instant agent and stores the conversation with question and answer in one transaction.
// It returns after both are stored durably, so a crash loses nothing that was acknowledged. The stored
// rows are the same as for a task of the runtime. ok is false if the runtime must run the task: the
// agent was too slow, needs input, or its answer would ask other agents.
func (s *Service) askNow(ctx context.Context, room Conversation, p Post,
	first *FirstAsk) (out Asked, ok bool, err error) {
	if s.cfg.Instant == nil || len(p.Ask) != 1 {
		return out, false, nil
	}
	t := p.Ask[0]
	t.MessageSeq, t.Attempt = 1, 1
	r, ok := s.cfg.Instant.AnswerNow(ctx, t, p.Message)
	if !ok || r.State != task.Completed || len(r.Parts) == 0 || slices.ContainsFunc(r.Parts, notText) ||
		len(findMentions(task.PlainText(r.Parts), s.cfg.Portal)) > 0 {
		return out, false, nil
	}
	t.State, t.UpdatedAt, t.AnswerSeq, t.Direct = task.Completed, clock.Now(), 2, r.Direct
	if room.Title == "" {
		room.Title = p.Title
	}
	said, err := s.store.CreateAnswered(ctx, Answered{Room: room, Question: p.Message, Task: t, First: first,
		Answer: Message{ConversationID: room.ID, ID: ident.NewID(), ClientID: t.ID,
			Sender: Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle},
			Kind:   Text, Parts: r.Parts, TaskID: t.ID, TaskState: t.State, CreatedAt: t.UpdatedAt}})
	if err != nil {
		return out, false, err
	}
	for _, m := range said {
		s.live.passMessage(m)
	}
	return Asked{ConversationID: room.ID, Seq: 1, Task: t, Said: said}, true, nil
}

func notText(p task.Part) bool { return p.Text == "" || p.Raw != nil || p.URL != "" || p.Data != nil }

package chat

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// OwnTask is Task for who may also ask: at doors where one right covers asking
// and looking after what was asked, a token that only reads is not enough.
func (s *Service) OwnTask(ctx context.Context, actor ident.Actor, id string) (task.Task, error) {
	if err := writes(actor); err != nil {
		return task.Task{}, err
	}
	return s.Task(ctx, actor, id)
}

// maxTurns bounds the messages of one task that are shown.
const maxTurns = 200

// Turns returns what was said for a task the actor asked for: the questions,
// which alone have their ClientID, and what the agent answered, in order. Of
// very many they are the last.
func (s *Service) Turns(ctx context.Context, actor ident.Actor, t task.Task) ([]Message, error) {
	if err := reads(actor); err != nil {
		return nil, err
	}
	if t.CallerID != actor.ID {
		return nil, errNoTask(t.ID)
	}
	asked, err := s.store.Questions(ctx, t)
	if err != nil {
		return nil, err
	}
	first := t.MessageSeq
	for seq := range asked {
		first = min(first, seq)
	}
	list, err := s.Messages(ctx, actor, t.ConversationID, max(first-1, 0), max(t.MessageSeq, t.AnswerSeq)+1, maxTurns, true)
	if fault.Is(err, fault.NotFound) { // who has left reads nothing more
		return nil, nil
	}
	var out []Message
	for _, m := range list {
		id, question := asked[m.Seq]
		if question {
			m.ClientID = id
		}
		if (question || m.TaskID == t.ID) && !m.Kind.Amends() && len(m.Parts) > 0 {
			out = append(out, m)
		}
	}
	return out, err
}

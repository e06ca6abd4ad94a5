package chat

import (
	"context"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// OwnTask is Task for protocol endpoints where one right covers asking and reading answers: a token that
// may only read is refused.
func (s *Service) OwnTask(ctx context.Context, actor ident.Actor, id string) (task.Task, error) {
	if err := checkWrite(actor); err != nil {
		return task.Task{}, err
	}
	return s.Task(ctx, actor, id)
}

// AskedAs returns the client id of the message that a task answers, "" if there is none. The runtime passes it on.
func (s *Service) AskedAs(ctx context.Context, t task.Task) (string, error) {
	asked, err := s.store.Questions(ctx, t)
	return asked[t.MessageSeq], err
}

// Limits of Turns: the newest messages of a task, read in pages because single messages may be large.
const (
	maxTurns      = 200
	maxTurnsBytes = 4 << 20
	turnsPage     = 20
)

// Turns returns the messages of a task that the actor asked for, in order: the questions, which alone
// have a ClientID, and the agent's answers. Beyond maxTurns or maxTurnsBytes the oldest are left out;
// the newest is always included.
func (s *Service) Turns(ctx context.Context, actor ident.Actor, t task.Task) ([]Message, error) {
	if err := checkRead(actor); err != nil {
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
	var out []Message // newest first
	before, seen, size := max(t.MessageSeq, t.AnswerSeq)+1, 0, 0
	for seen < maxTurns {
		page, more, err := s.Messages(ctx, actor, t.ConversationID,
			Span{After: max(first-1, 0), Before: before, Limit: turnsPage, Newest: true})
		if fault.Is(err, fault.NotFound) { // A former member of the conversation may not read its messages.
			return []Message{}, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range slices.Backward(page) {
			id, question := asked[m.Seq]
			if question {
				m.ClientID = id
			}
			if !question && m.TaskID != t.ID || m.Kind.Amends() || len(m.Parts) == 0 {
				continue
			}
			if size += weigh(m.Parts); size > maxTurnsBytes && len(out) > 0 {
				slices.Reverse(out)
				return out, nil
			}
			out = append(out, m)
		}
		if seen += len(page); !more {
			break
		}
		before = page[0].Seq
	}
	slices.Reverse(out)
	return out, nil
}

// weigh estimates the bytes of memory that the parts take.
func weigh(parts []task.Part) int {
	n := 0
	for _, p := range parts {
		n += len(p.Text) + len(p.Raw) + len(p.URL) + len(p.Data) + len(p.Metadata)
	}
	return n
}

package chat

import (
	"context"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// OwnTask is Task for actors with the right to ask: at protocol endpoints where one right covers
// asking and reading the answers, a token that only reads is not enough.
func (s *Service) OwnTask(ctx context.Context, actor ident.Actor, id string) (task.Task, error) {
	if err := checkWrite(actor); err != nil {
		return task.Task{}, err
	}
	return s.Task(ctx, actor, id)
}

// AskedAs is the id that the caller of a task gave the message it answers. It
// is for the runtime.
func (s *Service) AskedAs(ctx context.Context, t task.Task) (string, error) {
	asked, err := s.store.Questions(ctx, t)
	return asked[t.MessageSeq], err
}

// Bounds of the shown content of one task: its last messages, which may be large, read in pages.
const (
	maxTurns      = 200
	maxTurnsBytes = 4 << 20
	turnsPage     = 20
)

// Turns returns the messages of a task that the actor asked for: the questions, which alone have
// their ClientID, and the agent's answers, in order. Of very many or very long messages they are
// the last; the newest is always included.
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
		page, err := s.Messages(ctx, actor, t.ConversationID, max(first-1, 0), before, turnsPage, true)
		if fault.Is(err, fault.NotFound) { // former members read nothing more
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
		if seen += len(page); len(page) < turnsPage {
			break
		}
		before = page[0].Seq
	}
	slices.Reverse(out)
	return out, nil
}

// weigh is about how many bytes content takes in memory.
func weigh(parts []task.Part) int {
	n := 0
	for _, p := range parts {
		n += len(p.Text) + len(p.Raw) + len(p.URL) + len(p.Data) + len(p.Metadata)
	}
	return n
}

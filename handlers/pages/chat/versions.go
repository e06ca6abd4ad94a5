package chat

import (
	"context"

	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// maxVersions bounds how many answers to one question are counted, because each may cost a read.
const maxVersions = 50

// version returns which answer to its question m is, counted along the answers that it and they replaced; 0 for a
// message that replaced none. list is searched before the database.
func (d *Room) version(ctx context.Context, actor ident.Actor, m chat.Message, list []chat.Message) int {
	if m.Sender.Kind != "agent" || m.Target == 0 {
		return 0
	}
	n := 1
	for m.Target > 0 && n < maxVersions {
		before, ok := d.find(ctx, actor, m.ConversationID, m.Target, list)
		if !ok {
			break
		}
		m = before
		n++
	}
	return n
}

// find returns a message of list, or of the database if the actor may read it.
func (d *Room) find(ctx context.Context, actor ident.Actor, id string, seq int64, list []chat.Message) (chat.Message,
	bool) {
	for _, m := range list {
		if m.Seq == seq {
			return m, true
		}
	}
	m, err := d.chat.Message(ctx, actor, id, seq)
	return m, err == nil
}

// setVersions fills in the place of a message among all answers to its question, for its own page.
func (d *Room) setVersions(ctx context.Context, actor ident.Actor, m chat.Message, v *templates.MessageView) {
	if m.Sender.Kind != "agent" {
		return
	}
	n := max(d.version(ctx, actor, m, nil), 1)
	all := n
	for next := m; next.Now.NewerSeq > next.Seq && all < maxVersions; all++ {
		var ok bool
		if next, ok = d.find(ctx, actor, m.ConversationID, next.Now.NewerSeq, nil); !ok {
			break
		}
	}
	if all > 1 {
		v.Version, v.Versions, v.Earlier, v.Later = n, all, v.Again, v.Newer
	}
}

// lastAnswer returns the finished answer at the end of list, and the actor's message before it that can be edited.
func lastAnswer(actor ident.Actor, list []chat.Message) (out templates.LastAnswer) {
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		switch {
		case m.Kind == chat.Event && (m.Sender.Kind != "agent" || m.TaskID == ""):
			continue // a line about the conversation
		case out.Seq == 0:
			if m.Sender.Kind != "agent" || m.TaskID == "" || !m.TaskState.Terminal() || !m.Now.UnsaidAt.IsZero() ||
				m.Now.NewerSeq > 0 {
				return out
			}
			out.Seq = int(m.Seq)
		case m.Sender.Kind != "agent":
			if m.Sender.ID == actor.ID && m.Now.UnsaidAt.IsZero() {
				out.Question = int(m.Seq)
			}
			return out
		}
	}
	return out
}

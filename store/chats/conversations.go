package chats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
	"agentsite/store/engine"
	"agentsite/store/hooks"
	"agentsite/store/quotas"
	"agentsite/store/tasks"
)

// CreateConversation implements chat.Rooms. Nothing is stored if one of the messages or events fails.
func (d *Chats) CreateConversation(ctx context.Context, c chat.Conversation, said, events []chat.Message) error {
	err := d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.checkCopies(t, c, said); err != nil {
			return err
		}
		if err := d.beginRoom(t, c, said); err != nil {
			return err
		}
		for _, e := range events {
			if _, err := d.appendEvent(t, c.ID, e); err != nil {
				return err
			}
		}
		if len(said)+len(events) == 0 {
			return nil
		}
		// Copied messages are older than the conversation: do not set back the time of its last change.
		_, err := t.Exec(`UPDATE conversations SET updated_at = MAX(updated_at, ?) WHERE id = ?`,
			clock.Milli(c.CreatedAt), c.ID)
		return err
	})
	if err == nil && len(said) > 0 {
		d.words.wordless.addRoom(c.ID)
	}
	return err
}

// CreateAsking implements chat.Rooms. The question, its files and its task are stored with the
// conversation or not at all.
func (d *Chats) CreateAsking(ctx context.Context, c chat.Conversation, said []chat.Message, p chat.Post,
	first *chat.FirstAsk) (chat.Posted, error) {
	var out chat.Posted
	body, err := json.Marshal(p.Message.Parts)
	if err != nil {
		return out, fmt.Errorf("encode message: %w", err)
	}
	var opened string // id of the conversation that the same message opened before, if any
	err = d.db.Write(ctx, func(t engine.Tx) (err error) {
		if err := errors.Join(d.checkPost(t, p, int64(len(body))), d.checkCopies(t, c, said)); err != nil {
			return err
		}
		if first != nil {
			if opened, err = tasks.ClaimFirstAsk(t, *first); err != nil || opened != first.ConversationID {
				return err
			}
		}
		if err := d.beginRoom(t, c, said); err != nil {
			return err
		}
		out, err = d.postMessage(t, p, string(body))
		return err
	})
	if err == nil && first != nil && opened != first.ConversationID {
		return out, &chat.AskedBefore{ConversationID: opened}
	}
	if err == nil {
		d.words.wordless.addRoom(c.ID)
	}
	return out, err
}

// beginRoom stores a conversation with its members and its copied messages.
func (d *Chats) beginRoom(t engine.Tx, c chat.Conversation, said []chat.Message) error {
	at := clock.Milli(c.CreatedAt)
	if err := insertRoom(t, c, at, at, 0, nil); err != nil {
		return err
	}
	return d.copyMessages(t, c, said)
}

func isOwner(m chat.Member) bool { return m.Role == chat.RoleOwner }

// checkCopies returns a RateLimited fault if the owner of a new conversation may not store its copied
// messages, which count for the owner and not for the senders.
func (d *Chats) checkCopies(t engine.Tx, c chat.Conversation, said []chat.Message) error {
	i := slices.IndexFunc(c.Members, isOwner)
	if i < 0 {
		return nil
	}
	var bytes int64 = quotas.RowBytes
	for _, m := range said {
		bytes += int64(len(task.PlainText(m.Parts))) + quotas.RowBytes
	}
	return d.quotas.CheckRoom(t, c.Members[i].Kind, c.Members[i].ID, bytes)
}

// copyMessages copies the current messages of the parent conversation to a branch: without deleted
// ones, and without the tasks, which stay in the parent. Quotes of copied messages stay valid.
func (d *Chats) copyMessages(t engine.Tx, c chat.Conversation, said []chat.Message) error {
	type copied struct {
		seq   int64
		agent bool
	}
	h, place := head{}, make(map[int64]copied, len(said))
	var charged string
	if i := slices.IndexFunc(c.Members, isOwner); i >= 0 {
		charged = chargedTo(c.Members[i].Kind, c.Members[i].ID)
	}
	for _, m := range said {
		if m.Kind.Amends() || !m.Now.UnsaidAt.IsZero() {
			continue
		}
		from, about := m.Seq, place[m.Target]
		if m.Sender.Kind == "agent" && !about.agent {
			about.seq = 0
		}
		m.ConversationID, m.ClientID, m.TaskID, m.TaskState, m.Target = c.ID, "", "", "", about.seq
		body, err := json.Marshal(m.Parts)
		if err != nil {
			return err
		}
		if m, err = d.extendTranscript(t, h, m, charged, string(body), "", ""); err != nil {
			return err
		}
		h = head{LastSeq: m.Seq, Hash: m.Hash}
		if m.Target > 0 && m.Sender.Kind == "agent" {
			if err := markReplaced(t, c.ID, m.Target, m.Seq); err != nil {
				return err
			}
		}
		if from > 0 && c.BranchedFrom != "" {
			place[from] = copied{m.Seq, m.Sender.Kind == "agent"}
			if _, err := t.Exec(`INSERT INTO file_uses (hash, conversation_id, seq) SELECT hash, ?, ? FROM file_uses WHERE conversation_id = ? AND seq = ?`,
				c.ID, m.Seq, c.BranchedFrom, from); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Chats) appendEvent(t engine.Tx, id string, e chat.Message) (chat.Message, error) {
	body, err := json.Marshal(e.Parts)
	if err != nil {
		return e, err
	}
	e.ConversationID = id
	return d.appendMessage(t, e, "", string(body))
}

// roomEvent runs change and appends the event e to the transcript, in one transaction. It returns e as
// stored.
func (d *Chats) roomEvent(ctx context.Context, id string, e chat.Message, change func(engine.Tx) error) (chat.Message,
	error) {
	var out chat.Message
	err := d.db.Write(ctx, func(t engine.Tx) error {
		if err := change(t); err != nil {
			return err
		}
		var err error
		out, err = d.appendEvent(t, id, e)
		return err
	})
	return out, err
}

// Rename implements chat.Rooms. An empty title lets the next message give one.
func (d *Chats) Rename(ctx context.Context, id, title string, event chat.Message) (chat.Message, error) {
	return d.roomEvent(ctx, id, event, func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE conversations SET title = ? WHERE id = ?`, title, id)
		return err
	})
}

// SetRoom implements chat.Rooms. A missing conversation is a NotFound fault.
func (d *Chats) SetRoom(ctx context.Context, id string, s chat.Settings, event chat.Message) (chat.Message, error) {
	return d.roomEvent(ctx, id, event, func(t engine.Tx) error {
		d.settings.Invalidate(t)
		res, err := t.Exec(`UPDATE conversations SET speaks = ?, speaker_id = ?, past = ?, hops = ?, turns = ?, budget = ? WHERE id = ?`,
			string(s.Speaks), s.SpeakerID, string(s.Past), s.Hops, s.Turns, s.Budget, id)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.NotFound, "There is no such conversation.")
		}
		return nil
	})
}

// deleteTraces is a constant of its own because a test checks its query plan.
const deleteTraces = `DELETE FROM agent_traces WHERE (agent_id, task_id) IN (SELECT agent_id, id FROM tasks WHERE conversation_id = ?)`

// DeleteRoom implements chat.Rooms. It deletes the messages, tasks, links and hooks of the conversation,
// and queues unused files for deletion.
func (d *Chats) DeleteRoom(ctx context.Context, id string) error {
	now := clock.Milli(clock.Now())
	return d.words.writeWords(ctx, func(t engine.Tx) error {
		d.members.Invalidate(t)
		d.settings.Invalidate(t)
		if err := dropFileUses(t, id, 0, now); err != nil {
			return err
		}
		for _, q := range []string{
			`DELETE FROM outbox WHERE topic = 'task' AND ref IN (SELECT id FROM tasks WHERE conversation_id = ?)`,
			deleteTraces,
			hooks.RoomEventsDelete,
			hooks.RoomPushesDelete,
			`DELETE FROM tasks WHERE conversation_id = ?`,
			`DELETE FROM client_ids WHERE conversation_id = ?`,
			`DELETE FROM first_asks WHERE conversation_id = ?`,
			`DELETE FROM reactions WHERE conversation_id = ?`,
			`DELETE FROM room_links WHERE conversation_id = ?`,
			`DELETE FROM room_invitations WHERE conversation_id = ?`,
			`DELETE FROM grants WHERE conversation_id = ?`,
			`DELETE FROM summaries WHERE conversation_id = ?`,
			`DELETE FROM memories WHERE room_id = ?`,
			`DELETE FROM said_words WHERE rowid IN (SELECT id FROM said WHERE conversation_id = ?)`,
			`DELETE FROM said WHERE conversation_id = ?`,
			`DELETE FROM messages WHERE conversation_id = ?`,
			`DELETE FROM members WHERE conversation_id = ?`,
		} {
			if _, err := t.Exec(q, id); err != nil {
				return err
			}
		}
		res, err := t.Exec(`DELETE FROM conversations WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.NotFound, "There is no such conversation.")
		}
		return nil
	})
}

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

var _ chat.Store = (*DB)(nil)

type messageRow struct {
	ConversationID string `db:"conversation_id"`
	Seq            int64  `db:"seq"`
	ID             string `db:"id"`
	SenderKind     string `db:"sender_kind"`
	SenderID       string `db:"sender_id"`
	SenderHandle   string `db:"sender_handle"`
	Kind           string `db:"kind"`
	Body           string `db:"body"`
	TaskID         string `db:"task_id"`
	TaskState      string `db:"task_state"`
	Reason         string `db:"reason"`
	CreatedAt      int64  `db:"created_at"`
	Hash           []byte `db:"hash"`
}

const messageColumns = `conversation_id, seq, id, sender_kind, sender_id, sender_handle, kind, body, task_id, task_state, reason, created_at, hash`

func (r messageRow) message() (chat.Message, error) {
	m := chat.Message{ConversationID: r.ConversationID, Seq: r.Seq, ID: r.ID, Sender: chat.Sender{Kind: r.SenderKind, ID: r.SenderID, Handle: r.SenderHandle},
		Kind: chat.Kind(r.Kind), TaskID: r.TaskID, TaskState: task.State(r.TaskState), Reason: r.Reason, CreatedAt: clock.FromMilli(r.CreatedAt), Hash: r.Hash}
	if err := json.Unmarshal([]byte(r.Body), &m.Parts); err != nil {
		return m, fmt.Errorf("read message %s: %w", r.ID, err)
	}
	return m, nil
}

func (r messageRow) chainEntry() chat.ChainEntry {
	return chat.ChainEntry{Seq: r.Seq, ID: r.ID, SenderKind: r.SenderKind, SenderID: r.SenderID, SenderHandle: r.SenderHandle, Kind: r.Kind,
		TaskID: r.TaskID, TaskState: r.TaskState, Reason: r.Reason, CreatedAt: r.CreatedAt, Body: []byte(r.Body)}
}

// Append implements chat.Transcripts.
func (d *DB) Append(ctx context.Context, p chat.Post) (chat.Posted, error) {
	var out chat.Posted
	body, err := json.Marshal(p.Message.Parts)
	if err != nil {
		return out, fmt.Errorf("encode message: %w", err)
	}
	err = d.write(ctx, func(t *tx) error {
		out = chat.Posted{}
		h, err := t.head(p.Message)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err != nil || p.MustBeMember && !h.Member {
			return fault.New(fault.NotFound, "There is no such conversation, or you are not in it.")
		}
		if p.Message.ClientID != "" {
			fresh, err := t.claim(p.Message, h.LastSeq+1)
			if err != nil {
				return err
			}
			if !fresh {
				out.Message, err = t.bySender(p.Message)
				out.Repeat = true
				return err
			}
		}
		m, err := t.extend(h, p.Message, string(body), p.Title)
		if err != nil {
			return err
		}
		out.Message = m
		for _, k := range p.Ask {
			k, err := t.ask(k, m.Seq)
			if err != nil {
				return err
			}
			out.Tasks = append(out.Tasks, k)
		}
		return nil
	})
	return out, err
}

// Said implements chat.Store.
func (d *DB) Said(ctx context.Context, conversationID, senderID, clientID string) (chat.Message, error) {
	var r messageRow
	if err := d.get(ctx, &r, `SELECT `+messageColumns+` FROM messages WHERE conversation_id = ?1
		AND seq = (SELECT seq FROM client_ids WHERE conversation_id = ?1 AND sender_id = ?2 AND client_id = ?3)`, conversationID, senderID, clientID); err != nil {
		return chat.Message{}, mapError(err)
	}
	return r.message()
}

// bySender finds the message the same sender said with the same client id.
func (t *tx) bySender(m chat.Message) (chat.Message, error) {
	var seq int64
	if err := t.get(&seq, `SELECT seq FROM client_ids WHERE conversation_id = ? AND sender_id = ? AND client_id = ?`, m.ConversationID, m.Sender.ID, m.ClientID); err != nil {
		return m, err
	}
	var r messageRow
	if err := t.get(&r, `SELECT `+messageColumns+` FROM messages WHERE conversation_id = ? AND seq = ?`, m.ConversationID, seq); err != nil {
		return m, err
	}
	return r.message()
}

// claim takes a client id for the message that gets seq, and reports whether
// the sender had not used it in this conversation.
func (t *tx) claim(m chat.Message, seq int64) (fresh bool, err error) {
	res, err := t.exec(`INSERT INTO client_ids (conversation_id, sender_id, client_id, seq) VALUES (?, ?, ?, ?)
		ON CONFLICT (conversation_id, sender_id, client_id) DO NOTHING`, m.ConversationID, m.Sender.ID, m.ClientID, seq)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// head is the end of a transcript.
type head struct {
	LastSeq int64  `db:"last_seq"`
	Hash    []byte `db:"head_hash"`
	Member  bool   `db:"member"` // the sender is one
}

// head reads the end of m's conversation, sql.ErrNoRows when there is none.
func (t *tx) head(m chat.Message) (h head, err error) {
	kind := "person"
	if m.Sender.Kind == "guest" {
		kind = "guest"
	}
	err = t.get(&h, `SELECT last_seq, head_hash,
			EXISTS (SELECT 1 FROM members WHERE conversation_id = c.id AND kind = ? AND member_id = ? AND left_at = 0) AS member
		FROM conversations c WHERE id = ?`, kind, m.Sender.ID, m.ConversationID)
	return h, err
}

// append gives m the next seq of its conversation and extends the hash chain;
// title names a conversation that has no name.
func (t *tx) append(m chat.Message, body, title string) (chat.Message, error) {
	h, err := t.head(m)
	if err != nil {
		return m, err
	}
	if m.ClientID != "" {
		if _, err := t.exec(`INSERT INTO client_ids (conversation_id, sender_id, client_id, seq) VALUES (?, ?, ?, ?)`, m.ConversationID, m.Sender.ID, m.ClientID, h.LastSeq+1); err != nil {
			return m, err
		}
	}
	return t.extend(h, m, body, title)
}

// extend is append for a head that was read in this transaction and a client
// id that was claimed in it.
func (t *tx) extend(h head, m chat.Message, body, title string) (chat.Message, error) {
	m.Seq = h.LastSeq + 1
	at := clock.Milli(m.CreatedAt)
	row := messageRow{Seq: m.Seq, ID: m.ID, SenderKind: m.Sender.Kind, SenderID: m.Sender.ID, SenderHandle: m.Sender.Handle, Kind: string(m.Kind),
		TaskID: m.TaskID, TaskState: string(m.TaskState), Reason: m.Reason, CreatedAt: at, Body: body}
	m.Hash = chat.Chain(h.Hash, row.chainEntry())
	if _, err := t.exec(`INSERT INTO messages (`+messageColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ConversationID, m.Seq, m.ID, m.Sender.Kind, m.Sender.ID, m.Sender.Handle, string(m.Kind), body, m.TaskID, string(m.TaskState), m.Reason, at, m.Hash); err != nil {
		return m, err
	}
	_, err := t.exec(`UPDATE conversations SET last_seq = ?, head_hash = ?, updated_at = ?, title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?`,
		m.Seq, m.Hash, at, title, m.ConversationID)
	return m, err
}

// Finish implements chat.Transcripts.
func (d *DB) Finish(ctx context.Context, k task.Task, m chat.Message) (chat.Message, error) {
	body, err := json.Marshal(m.Parts)
	if err != nil {
		return m, fmt.Errorf("encode message: %w", err)
	}
	artifacts := ""
	if len(k.Artifacts) > 0 {
		b, err := json.Marshal(k.Artifacts)
		if err != nil {
			return m, fmt.Errorf("encode artifacts: %w", err)
		}
		artifacts = string(b)
	}
	var out chat.Message
	err = d.write(ctx, func(t *tx) error {
		var have struct {
			State     string `db:"state"`
			AgentID   string `db:"agent_id"`
			CreatedAt int64  `db:"created_at"`
		}
		if err := t.get(&have, `SELECT state, agent_id, created_at FROM tasks WHERE id = ?`, k.ID); err != nil {
			return err
		}
		if task.State(have.State).Terminal() {
			return fault.New(fault.Conflict, "The task has ended already: %s.", have.State)
		}
		var err error
		if out, err = t.append(m, string(body), ""); err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE tasks SET state = ?, reason = ?, answer_seq = ?, artifacts = ?, updated_at = ? WHERE id = ?`,
			string(k.State), k.Reason, out.Seq, artifacts, clock.Milli(k.UpdatedAt), k.ID); err != nil {
			return err
		}
		if err := t.ended(have.AgentID, have.CreatedAt, k.State, k.UpdatedAt); err != nil {
			return err
		}
		return t.dequeue(topicTask, k.ID)
	})
	return out, err
}

// Messages implements chat.Transcripts.
func (d *DB) Messages(ctx context.Context, conversationID string, after, before int64, limit int, newest bool) ([]chat.Message, error) {
	if before == 0 {
		before = 1<<63 - 1
	}
	order := `ASC`
	if newest {
		order = `DESC`
	}
	var rows []messageRow
	err := d.list(ctx, &rows, `SELECT `+messageColumns+` FROM messages WHERE conversation_id = ? AND seq > ? AND seq < ? ORDER BY seq `+order+` LIMIT ?`,
		conversationID, after, before, min(limit, 500))
	if err != nil {
		return nil, mapError(err)
	}
	out := make([]chat.Message, len(rows))
	for i, r := range rows {
		m, err := r.message()
		if err != nil {
			return nil, err
		}
		if newest {
			i = len(rows) - 1 - i
		}
		out[i] = m
	}
	return out, nil
}

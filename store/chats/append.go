package chats

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/sqlite"
	"agentsite/store/tasks"
)

func errNoRoom() error {
	return fault.New(fault.NotFound, "There is no such conversation, or you are not in it.")
}

func errNoMessage() error { return fault.New(fault.NotFound, "There is no such message.") }

// Append implements chat.Transcripts.
func (d *Chats) Append(ctx context.Context, p chat.Post) (chat.Posted, error) {
	var out chat.Posted
	body, err := json.Marshal(p.Message.Parts)
	if err != nil {
		return out, fmt.Errorf("encode message: %w", err)
	}
	err = d.db.Write(ctx, func(t *sqlite.Tx) (err error) {
		out, err = d.postMessage(t, p, string(body))
		return err
	})
	switch {
	case err != nil:
	case out.Repeat: // it may have been changed since
		out.Message, err = d.Message(ctx, p.Message.ConversationID, out.Message.Seq)
	default:
		d.words.wordless.addRoom(p.Message.ConversationID)
	}
	return out, err
}

// postMessage appends a message with the work it asks for. Of a repeated one only the
// seq is returned.
func (d *Chats) postMessage(t *sqlite.Tx, p chat.Post, body string) (out chat.Posted, err error) {
	h, err := loadHead(t, p.Message)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return out, err
	}
	if err != nil || p.MustBeMember && h.Role == "" {
		return out, errNoRoom()
	}
	if p.MustBeMember && h.Role == chat.RoleReader {
		return out, errReader()
	}
	if p.Message.Target > 0 {
		if err := checkQuoted(t, p, h); err != nil {
			return out, err
		}
	}
	if p.Message.ClientID != "" {
		fresh, err := claimClientID(t, p.Message, h.LastSeq+1)
		if err != nil {
			return out, err
		}
		if !fresh {
			out.Repeat = true
			out.Message.Seq, err = findSeq(t, p.Message)
			return out, err
		}
	}
	if out.Message, err = d.extendTranscript(t, h, p.Message, body, p.Title, p.Spoke); err != nil {
		return out, err
	}
	if err := useFiles(t, p.Files, out.Message.ConversationID, out.Message.Seq, &p.Message.Sender); err != nil {
		return out, err
	}
	for _, k := range p.Ask {
		k, err := tasks.AskAgent(t, k, out.Message.Seq, p.Resumes)
		if err != nil {
			return out, err
		}
		out.Tasks = append(out.Tasks, k)
	}
	return out, d.hooks.NotifyMessage(t, out.Message)
}

func errReader() error {
	return fault.New(fault.Forbidden, "You may read this conversation, not write in it.")
}

// checkQuoted fails unless the message that p quotes is one its sender sees.
func checkQuoted(t *sqlite.Tx, p chat.Post, h head) error {
	var kind string
	err := t.Get(&kind, `SELECT kind FROM messages WHERE conversation_id = ? AND seq = ?`, p.Message.ConversationID,
		p.Message.Target)
	if errors.Is(err, sql.ErrNoRows) || err == nil &&
		(chat.Kind(kind).Amends() || p.MustBeMember && p.Message.Target <= h.FromSeq) {
		return fault.New(fault.NotFound, "There is no such message to answer to.")
	}
	return err
}

// Said implements chat.Transcripts.
func (d *Chats) Said(ctx context.Context, conversationID, senderID, clientID string) (chat.Message, error) {
	var seq int64
	if err := d.db.Get(ctx, &seq, seqQuery, conversationID, senderID, clientID); err != nil {
		return chat.Message{}, sqlite.MapError(err)
	}
	return d.Message(ctx, conversationID, seq)
}

const seqQuery = `SELECT seq FROM client_ids WHERE conversation_id = ? AND sender_id = ? AND client_id = ?`

// findSeq finds the message the same sender said with the same client id.
func findSeq(t *sqlite.Tx, m chat.Message) (seq int64, err error) {
	err = t.Get(&seq, seqQuery, m.ConversationID, m.Sender.ID, m.ClientID)
	return seq, err
}

// loadMessage reads one message; sql.ErrNoRows when it is absent.
func loadMessage(t *sqlite.Tx, conversationID string, seq int64) (r MessageRow, err error) {
	err = t.Get(&r, `SELECT `+messageColumns+` FROM messages WHERE conversation_id = ? AND seq = ?`, conversationID,
		seq)
	return r, err
}

// claimClientID takes a client id for the message that gets seq, and reports whether
// the sender had not used it in this conversation.
func claimClientID(t *sqlite.Tx, m chat.Message, seq int64) (fresh bool, err error) {
	res, err := t.Exec(`INSERT INTO client_ids (conversation_id, sender_id, client_id, seq) VALUES (?, ?, ?, ?)
		ON CONFLICT (conversation_id, sender_id, client_id) DO NOTHING`, m.ConversationID, m.Sender.ID, m.ClientID, seq)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// head is the end of a transcript, and the membership of its next sender.
type head struct {
	LastSeq int64  `db:"last_seq"`
	Hash    []byte `db:"head_hash"`
	Role    string `db:"role"` // "" for who is not in it
	FromSeq int64  `db:"from_seq"`
}

// memberKind is the kind of member that says messages of this kind of sender.
func memberKind(senderKind string) string {
	if senderKind == "guest" {
		return senderKind
	}
	return "person"
}

// loadHead reads the end of m's conversation, sql.ErrNoRows when there is none.
func loadHead(t *sqlite.Tx, m chat.Message) (h head, err error) {
	err = t.Get(&h, `SELECT c.last_seq, c.head_hash, COALESCE(m.role, '') AS role, COALESCE(m.from_seq, 0) AS from_seq
		FROM conversations c LEFT JOIN members m ON m.conversation_id = c.id AND m.kind = ? AND m.member_id = ? AND m.left_at = 0
		WHERE c.id = ?`, memberKind(m.Sender.Kind), m.Sender.ID, m.ConversationID)
	return h, err
}

// appendMessage gives m the next seq of its conversation and extends the hash chain.
func (d *Chats) appendMessage(t *sqlite.Tx, m chat.Message, body string) (chat.Message, error) {
	h, err := loadHead(t, m)
	if err != nil {
		return m, err
	}
	if m.ClientID != "" {
		if _, err := t.Exec(`INSERT INTO client_ids (conversation_id, sender_id, client_id, seq) VALUES (?, ?, ?, ?)`,
			m.ConversationID, m.Sender.ID, m.ClientID, h.LastSeq+1); err != nil {
			return m, err
		}
	}
	return d.extendTranscript(t, h, m, body, "", "")
}

// extendTranscript is append for a head that was read in this transaction and a client id that was
// claimed in it. title names a conversation without a name, spoke is the agent that had its turn.
func (d *Chats) extendTranscript(t *sqlite.Tx, h head, m chat.Message, body, title, spoke string) (chat.Message,
	error) {
	m.Seq = h.LastSeq + 1
	at := clock.Milli(m.CreatedAt)
	row := MessageRow{Seq: m.Seq, ID: m.ID, SenderKind: m.Sender.Kind, SenderID: m.Sender.ID,
		SenderHandle: m.Sender.Handle, Kind: string(m.Kind),
		TaskID: m.TaskID, TaskState: string(m.TaskState), Reason: m.Reason, Target: m.Target, CreatedAt: at, Body: body}
	m.Hash = chat.Chain(h.Hash, row.ChainEntry())
	if _, err := t.Exec(`INSERT INTO messages (`+saidColumns+
		`, target) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ConversationID, m.Seq, m.ID, m.Sender.Kind, m.Sender.ID, m.Sender.Handle, string(m.Kind), body, m.TaskID,
		string(m.TaskState), m.Reason, at, m.Hash, m.Target); err != nil {
		return m, err
	}
	var err error
	switch {
	case m.Kind.Amends(): // the room does not go to the top of a list for it
		_, err = t.Exec(`UPDATE conversations SET last_seq = ?, head_hash = ? WHERE id = ?`, m.Seq, m.Hash,
			m.ConversationID)
	case spoke != "":
		d.settings.Invalidate(t)
		_, err = t.Exec(`UPDATE conversations SET last_seq = ?, head_hash = ?, updated_at = ?, title = CASE WHEN title = '' THEN ? ELSE title END, spoke_id = ? WHERE id = ?`,
			m.Seq, m.Hash, at, title, spoke, m.ConversationID)
	default:
		_, err = t.Exec(`UPDATE conversations SET last_seq = ?, head_hash = ?, updated_at = ?, title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?`,
			m.Seq, m.Hash, at, title, m.ConversationID)
	}
	return m, err
}

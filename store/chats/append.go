package chats

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/transcript"
	"agentsite/store/engine"
	"agentsite/store/quotas"
	"agentsite/store/tasks"
	"agentsite/store/transcripts"
)

func errNoRoom() error {
	return fault.New(fault.NotFound, "There is no such conversation, or you are not in it.")
}

func errNoMessage() error { return fault.New(fault.NotFound, "There is no such message.") }

// Append implements chat.Transcripts. It reads a repeated message as it is now, because it may have been
// edited.
func (d *Chats) Append(ctx context.Context, p chat.Post) (chat.Posted, error) {
	var out chat.Posted
	body, err := json.Marshal(p.Message.Parts)
	if err != nil {
		return out, fmt.Errorf("encode message: %w", err)
	}
	err = d.db.Write(ctx, func(t engine.Tx) (err error) {
		if err := d.checkPost(t, p, int64(len(body))); err != nil {
			// A retry gets the first result, even if it would be refused now.
			out = chat.Posted{Repeat: true}
			var serr error
			if out.Message.Seq, serr = findSeq(t, p.Message); serr == nil {
				return nil
			}
			return err
		}
		out, err = d.postMessage(t, p, string(body))
		return err
	})
	switch {
	case err != nil:
	case out.Repeat: // Read the first message again, because it may have been edited or deleted.
		out.Message, err = d.Message(ctx, p.Message.ConversationID, out.Message.Seq)
	default:
		d.words.wordless.addRoom(p.Message.ConversationID)
	}
	return out, err
}

// checkPost returns a RateLimited fault if the sender may not store the message and its tasks, or if an
// agent that it asks may not store an answer.
func (d *Chats) checkPost(t engine.Tx, p chat.Post, bytes int64) error {
	bytes += quotas.RowBytes + int64(len(p.Ask))*quotas.TaskBytes
	if err := d.quotas.CheckRoom(t, p.Message.Sender.Kind, p.Message.Sender.ID, bytes); err != nil {
		return err
	}
	for _, k := range p.Ask {
		if err := d.quotas.CheckAgent(t, k.AgentID, quotas.RowBytes); err != nil {
			return err
		}
	}
	return nil
}

// postMessage appends a message, its files and the tasks it asks for. For a repeated client id it stores
// nothing and sets only Repeat and the seq.
func (d *Chats) postMessage(t engine.Tx, p chat.Post, body string) (out chat.Posted, err error) {
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
	if out.Message, err = d.extendTranscript(t, h, p.Message, "", body, p.Title, p.Spoke); err != nil {
		return out, err
	}
	if err := useFiles(t, p.Files, out.Message.ConversationID, out.Message.Seq, &p.Message.Sender); err != nil {
		return out, err
	}
	for _, k := range p.Ask {
		k, err := tasks.AskAgent(t, k, out.Message.Seq, p.Resumes, p.Answers)
		if err != nil {
			return out, err
		}
		out.Tasks = append(out.Tasks, k)
	}
	if err := d.hooks.NotifyMessage(t, out.Message); err != nil {
		return out, err
	}
	for _, id := range p.Mentions {
		m := out.Message
		href := "/chat/" + m.ConversationID + "/m/" + strconv.FormatInt(m.Seq, 10)
		if err := d.hooks.NotifyMentioned(t, id, m.ConversationID, m.Sender.ID, m.Sender.Handle, href, m.CreatedAt); err != nil {
			return out, err
		}
	}
	for _, e := range p.Refused {
		e, err := d.endRefused(t, e, out.Message.Seq)
		if err != nil {
			return out, err
		}
		out.Refused = append(out.Refused, e)
	}
	return out, nil
}

// endRefused stores a task for the message seq that was not admitted, in its final state, and appends its
// message.
func (d *Chats) endRefused(t engine.Tx, e chat.Ended, seq int64) (chat.Ended, error) {
	var err error
	if e.Message, err = d.appendEvent(t, e.Task.ConversationID, e.Message); err != nil {
		return e, err
	}
	e.Task.MessageSeq, e.Task.AnswerSeq = seq, e.Message.Seq
	if err := tasks.StoreTask(t, e.Task); err != nil {
		return e, err
	}
	if err := d.hooks.NotifyMessage(t, e.Message); err != nil {
		return e, err
	}
	return e, d.hooks.NotifyTask(t, e.Task, e.Message, false)
}

func errReader() error {
	return fault.New(fault.Forbidden, "You may read this conversation, not write in it.")
}

// checkQuoted returns a NotFound fault unless p quotes a message that its sender may see.
func checkQuoted(t engine.Tx, p chat.Post, h head) error {
	var kind string
	err := t.Get(&kind, `SELECT kind FROM messages WHERE conversation_id = ? AND seq = ?`, p.Message.ConversationID,
		p.Message.Target)
	if errors.Is(err, sql.ErrNoRows) || err == nil &&
		(chat.Kind(kind).Amends() || p.MustBeMember && p.Message.Target <= h.FromSeq) {
		return fault.New(fault.NotFound, "There is no such message to answer to.")
	}
	return err
}

// Said implements chat.Transcripts. It returns the message as it is now, with its edits.
func (d *Chats) Said(ctx context.Context, conversationID, senderID, clientID string) (chat.Message, error) {
	var seq int64
	if err := d.db.Get(ctx, &seq, seqQuery, conversationID, senderID, clientID); err != nil {
		return chat.Message{}, engine.MapError(err)
	}
	return d.Message(ctx, conversationID, seq)
}

const seqQuery = `SELECT seq FROM client_ids WHERE conversation_id = ? AND sender_id = ? AND client_id = ?`

// findSeq returns the seq of the message for which the sender used m's client id; sql.ErrNoRows without
// one.
func findSeq(t engine.Tx, m chat.Message) (seq int64, err error) {
	err = t.Get(&seq, seqQuery, m.ConversationID, m.Sender.ID, m.ClientID)
	return seq, err
}

// loadMessage reads one message in the transaction; sql.ErrNoRows when it is absent.
func loadMessage(t engine.Tx, conversationID string, seq int64) (r MessageRow, err error) {
	err = t.Get(&r, `SELECT `+messageColumns+` FROM messages WHERE conversation_id = ? AND seq = ?`, conversationID,
		seq)
	return r, err
}

// claimClientID reserves m's client id for the message with seq. fresh is false if the sender used the
// id in this conversation before.
func claimClientID(t engine.Tx, m chat.Message, seq int64) (fresh bool, err error) {
	res, err := t.Exec(`INSERT INTO client_ids (conversation_id, sender_id, client_id, seq) VALUES (?, ?, ?, ?)
		ON CONFLICT (conversation_id, sender_id, client_id) DO NOTHING`, m.ConversationID, m.Sender.ID, m.ClientID, seq)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// head is the end of a transcript, with the membership of the sender of the next message.
type head struct {
	LastSeq int64  `db:"last_seq"`
	Hash    []byte `db:"head_hash"`
	Role    string `db:"role"` // "" if the sender is no member
	FromSeq int64  `db:"from_seq"`
}

// memberKind returns the kind of member that a sender of that kind is: operators are persons.
func memberKind(senderKind string) string {
	if senderKind == "guest" {
		return senderKind
	}
	return "person"
}

// loadHead reads the end of m's conversation and the membership of m's sender; sql.ErrNoRows for a
// missing conversation.
func loadHead(t engine.Tx, m chat.Message) (h head, err error) {
	err = t.Get(&h, `SELECT c.last_seq, c.head_hash, COALESCE(m.role, '') AS role, COALESCE(m.from_seq, 0) AS from_seq
		FROM conversations c LEFT JOIN members m ON m.conversation_id = c.id AND m.kind = ? AND m.member_id = ? AND m.left_at = 0
		WHERE c.id = ?`, memberKind(m.Sender.Kind), m.Sender.ID, m.ConversationID)
	return h, err
}

// appendMessage gives m the next seq of its conversation, extends the hash chain, and returns m with
// both. A used client id is an error. For charged see extendTranscript.
func (d *Chats) appendMessage(t engine.Tx, m chat.Message, charged, body string) (chat.Message, error) {
	h, err := loadHead(t, m)
	if err != nil {
		return m, err
	}
	if m.ClientID != "" {
		if err := t.Send(`INSERT INTO client_ids (conversation_id, sender_id, client_id, seq) VALUES (?, ?, ?, ?)`,
			m.ConversationID, m.Sender.ID, m.ClientID, h.LastSeq+1); err != nil {
			return m, err
		}
	}
	return d.extendTranscript(t, h, m, charged, body, "", "")
}

// chargedTo returns the member with a kind and an id in the form of the column charged.
func chargedTo(kind, id string) string { return kind + " " + id }

// extendTranscript is appendMessage for a head that was read, and a client id that was claimed, in the
// same transaction. charged is the member that the bytes count for, as chargedTo returns it, "" for the
// sender. title is given to a conversation without one, and spoke is the agent that had its
// turn; both may be "".
func (d *Chats) extendTranscript(t engine.Tx, h head, m chat.Message, charged, body, title, spoke string) (chat.Message,
	error) {
	m.Seq = h.LastSeq + 1
	at := clock.Milli(m.CreatedAt)
	row := transcripts.Row{Seq: m.Seq, ID: m.ID, SenderKind: m.Sender.Kind, SenderID: m.Sender.ID,
		SenderHandle: m.Sender.Handle, Kind: string(m.Kind),
		TaskID: m.TaskID, TaskState: string(m.TaskState), Reason: m.Reason, Target: m.Target, CreatedAt: at, Body: body,
		Salt: transcript.NewSalt()}
	m.Hash = transcript.Chain(h.Hash, row.Entry())
	if err := t.Send(`INSERT INTO messages (`+saidColumns+
		`, target, charged, salt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ConversationID, m.Seq, m.ID, m.Sender.Kind, m.Sender.ID, m.Sender.Handle, string(m.Kind), body, m.TaskID,
		string(m.TaskState), m.Reason, at, m.Hash, m.Target, charged, row.Salt); err != nil {
		return m, err
	}
	var err error
	switch {
	case m.Kind.Amends(): // An amendment does not move the conversation to the top of lists.
		err = t.Send(`UPDATE conversations SET last_seq = ?, head_hash = ? WHERE id = ?`, m.Seq, m.Hash,
			m.ConversationID)
	case spoke != "":
		d.settings.Invalidate(t)
		err = t.Send(`UPDATE conversations SET last_seq = ?, head_hash = ?, updated_at = ?, title = CASE WHEN title = '' THEN ? ELSE title END, spoke_id = ? WHERE id = ?`,
			m.Seq, m.Hash, at, title, spoke, m.ConversationID)
	default:
		err = t.Send(`UPDATE conversations SET last_seq = ?, head_hash = ?, updated_at = ?, title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?`,
			m.Seq, m.Hash, at, title, m.ConversationID)
	}
	return m, err
}

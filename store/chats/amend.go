package chats

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/transcript"
	"agentsite/store/engine"
	"agentsite/store/quotas"
	"agentsite/store/transcripts"
)

func errUnsaid() error { return fault.New(fault.Conflict, "This message was removed.") }

// Amend implements chat.Transcripts. The emoji of a reaction is the text of the message's first part.
// Files that an edit adds are checked like those of a new message.
func (d *Chats) Amend(ctx context.Context, m chat.Message, on bool) (chat.Message, error) {
	body, err := json.Marshal(m.Parts)
	if err != nil {
		return m, fmt.Errorf("encode message: %w", err)
	}
	var out chat.Message
	err = d.words.writeWords(ctx, func(t engine.Tx) error {
		out = chat.Message{}
		h, err := loadHead(t, m)
		if errors.Is(err, sql.ErrNoRows) {
			return errNoRoom()
		}
		if err != nil {
			return err
		}
		r, err := loadTarget(t, m, h)
		if err != nil {
			return err
		}
		if m.Kind != chat.Unsaid { // A deletion gives room.
			if err := d.quotas.CheckRoom(t, m.Sender.Kind, m.Sender.ID, int64(len(body))+quotas.RowBytes); err != nil {
				return err
			}
		}
		if m.Kind == chat.React {
			if changed, err := setReaction(t, m, h.LastSeq+1, on); err != nil || !changed {
				return err
			}
		}
		if out, err = d.extendTranscript(t, h, m, "", string(body), "", ""); err != nil {
			return err
		}
		switch m.Kind {
		case chat.React:
			_, err = t.Exec(`UPDATE messages SET reacted = CASE WHEN EXISTS (SELECT 1 FROM reactions x WHERE x.conversation_id = ?1 AND x.seq = ?2) THEN 1 ELSE 0 END WHERE conversation_id = ?1 AND seq = ?2`,
				m.ConversationID, m.Target)
		case chat.Edit:
			err = applyEdit(d.words, t, r, m, out.Seq)
		case chat.Unsaid:
			out.Hash, err = deleteMessage(t, r, out, clock.Milli(m.CreatedAt))
		}
		if err == nil && m.Kind != chat.React {
			err = dropSummaries(t, r.ConversationID, r.Seq)
		}
		return err
	})
	return out, err
}

// loadTarget returns the message that m amends. It returns a NotFound fault if the sender is no member
// or does not see the message, a Forbidden one for an edit by a reader, and a Conflict if the message
// was deleted.
func loadTarget(t engine.Tx, m chat.Message, h head) (r MessageRow, err error) {
	if m.Sender.Kind == "person" || m.Sender.Kind == "guest" {
		if h.Role == "" {
			return r, errNoRoom()
		}
		if m.Kind == chat.Edit && h.Role == chat.RoleReader {
			return r, errReader()
		}
	}
	r, err = loadMessage(t, m.ConversationID, m.Target)
	if errors.Is(err, sql.ErrNoRows) {
		return r, errNoMessage()
	}
	if err != nil {
		return r, err
	}
	switch {
	case !m.Kind.Amends():
		return r, fmt.Errorf("a message of kind %q amends nothing", m.Kind)
	case r.Seq <= h.FromSeq, r.Kind != string(chat.Text) && (m.Kind != chat.Unsaid || r.SenderKind != "agent"):
		return r, errNoMessage()
	case r.GoneSeq > 0:
		return r, errUnsaid()
	}
	return r, nil
}

// setReaction sets or removes a reaction of the sender and reports whether that changed a row. Setting a
// new emoji beyond chat.MaxReactions is a Conflict fault.
func setReaction(t engine.Tx, m chat.Message, seq int64, on bool) (changed bool, err error) {
	if len(m.Parts) == 0 || m.Parts[0].Text == "" {
		return false, fault.New(fault.Invalid, "Choose an emoji.")
	}
	emoji, kind := m.Parts[0].Text, memberKind(m.Sender.Kind)
	var res sql.Result
	if on {
		var others int
		if err := t.Get(&others, `SELECT COUNT(DISTINCT emoji) FROM reactions WHERE conversation_id = ? AND seq = ? AND emoji <> ?`, m.ConversationID, m.Target, emoji); err != nil {
			return false, err
		}
		if others >= chat.MaxReactions {
			return false, fault.New(fault.Conflict, "A message takes at most %d different reactions.",
				chat.MaxReactions)
		}
		res, err = t.Exec(`INSERT INTO reactions (conversation_id, seq, emoji, member_kind, member_id, handle, set_seq) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			m.ConversationID, m.Target, emoji, kind, m.Sender.ID, m.Sender.Handle, seq)
	} else {
		res, err = t.Exec(`DELETE FROM reactions WHERE conversation_id = ? AND seq = ? AND emoji = ? AND member_kind = ? AND member_id = ?`,
			m.ConversationID, m.Target, emoji, kind, m.Sender.ID)
	}
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// applyEdit makes m, which has seq, the current form of r. r keeps the files of its earlier forms,
// because a member with access to a message may read its earlier forms.
func applyEdit(words *Words, t engine.Tx, r MessageRow, m chat.Message, seq int64) error {
	if _, err := t.Exec(`UPDATE messages SET edit_seq = ? WHERE conversation_id = ? AND seq = ?`, seq, r.ConversationID,
		r.Seq); err != nil {
		return err
	}
	var added []string
	for _, p := range m.Parts {
		hash, ok := strings.CutPrefix(p.URL, chat.FileURL(""))
		if !ok {
			continue
		}
		var held bool
		if err := t.Get(&held, `SELECT EXISTS (SELECT 1 FROM file_uses WHERE hash = ? AND conversation_id = ? AND seq = ?)`, hash, r.ConversationID, r.Seq); err != nil {
			return err
		}
		if !held {
			added = append(added, hash)
		}
	}
	if err := useFiles(t, added, r.ConversationID, r.Seq, &m.Sender); err != nil {
		return err
	}
	return words.replaceWord(t, r.ConversationID, r.Seq, task.PlainText(m.Parts))
}

// deleteMessage removes the content of r and its edits, with all copies of the text elsewhere, because of the message
// by. It returns the hash of by afterwards.
func deleteMessage(t engine.Tx, r MessageRow, by chat.Message, at int64) (head []byte, err error) {
	if head, err = eraseForms(t, r, by); err != nil {
		return nil, err
	}
	return head, dropCopies(t, r, at)
}

// eraseForms removes the bodies of r and its edits. The rows stay with the commitments to their bodies, which the hash
// chain needs, and without the salts. The commitment to a message that is older than salts is a hash of its text, so
// its conversation gets salts, once.
func eraseForms(t engine.Tx, r MessageRow, by chat.Message) (head []byte, err error) {
	var forms []MessageRow
	if err := t.List(&forms, `SELECT `+messageColumns+` FROM messages WHERE conversation_id = ?1 AND target = ?2 AND kind = 'edit'
		UNION ALL SELECT `+messageColumns+` FROM messages WHERE conversation_id = ?1 AND seq = ?2`, r.ConversationID, r.Seq); err != nil {
		return nil, err
	}
	var titles []string
	older := false
	for _, f := range forms {
		if parts, err := partsOf(f.Body); err == nil {
			titles = append(titles, chat.TitleOf(parts))
		}
		var salt []byte
		if e := f.Entry(); e.Salt.Older() {
			older = true
		} else {
			salt, f.BodyHash = transcript.Destroyed(), e.Commit()
		}
		if _, err := t.Exec(`UPDATE messages SET body = '', body_hash = ?, salt = ?, gone_seq = ?, reacted = 0 WHERE conversation_id = ? AND seq = ?`,
			f.BodyHash, salt, by.Seq, r.ConversationID, f.Seq); err != nil {
			return nil, err
		}
	}
	if err := dropTitle(t, r.ConversationID, titles); err != nil || !older {
		return by.Hash, err
	}
	actor := ident.Actor{Kind: ident.ActorKind(by.Sender.Kind), ID: by.Sender.ID}
	return transcripts.Reanchor(t, r.ConversationID, 1, actor, "a message without a salt was deleted", nil)
}

// dropCopies removes the copies of the text of a deleted message.
func dropCopies(t engine.Tx, r MessageRow, at int64) error {
	if _, err := t.Exec(`DELETE FROM reactions WHERE conversation_id = ? AND seq = ?`, r.ConversationID,
		r.Seq); err != nil {
		return err
	}
	if err := dropFileUses(t, r.ConversationID, r.Seq, at); err != nil {
		return err
	}
	// The traces of the tasks for this message contain its text.
	if _, err := t.Exec(`DELETE FROM agent_traces WHERE (agent_id, task_id) IN (SELECT agent_id, id FROM tasks WHERE conversation_id = ? AND root_seq = ? AND root_seq > 0)`,
		r.ConversationID, r.Seq); err != nil {
		return err
	}
	if r.SenderKind == "agent" && r.TaskID != "" {
		// The task and its traces contain the answer's text.
		if _, err := t.Exec(`UPDATE tasks SET artifacts = '' WHERE id = ? AND answer_seq = ?`, r.TaskID,
			r.Seq); err != nil {
			return err
		}
		if _, err := t.Exec(`DELETE FROM agent_traces WHERE agent_id = ? AND task_id = ?`, r.SenderID,
			r.TaskID); err != nil {
			return err
		}
	}
	return deleteWords(t, r.ConversationID, r.Seq)
}

// dropTitle clears the title of a conversation that was made from the text of a deleted message; titles
// are those of its forms. The next message gives another title. A title that a person chose stays.
func dropTitle(t engine.Tx, conversationID string, titles []string) error {
	var title string
	if err := t.Get(&title, `SELECT title FROM conversations WHERE id = ?`, conversationID); err != nil {
		return err
	}
	for _, s := range titles {
		if chat.NamedAfter(title, s) {
			_, err := t.Exec(`UPDATE conversations SET title = '' WHERE id = ?`, conversationID)
			return err
		}
	}
	return nil
}

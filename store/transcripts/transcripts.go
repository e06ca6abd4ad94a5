// Package transcripts hashes the messages of conversations anew after an erasure.
package transcripts

import (
	"crypto/sha256"
	"database/sql"
	"errors"

	"agentsite/internal/ident"
	"agentsite/internal/transcript"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Row has the columns of a message that its hash depends on.
type Row struct {
	Seq          int64  `db:"seq"`
	ID           string `db:"id"`
	SenderKind   string `db:"sender_kind"`
	SenderID     string `db:"sender_id"`
	SenderHandle string `db:"sender_handle"`
	Kind         string `db:"kind"`
	Body         string `db:"body"`
	TaskID       string `db:"task_id"`
	TaskState    string `db:"task_state"`
	Reason       string `db:"reason"`
	Target       int64  `db:"target"`
	CreatedAt    int64  `db:"created_at"`
	GoneSeq      int64  `db:"gone_seq"`
	// BodyHash is the commitment of a deleted message; it means nothing for others.
	BodyHash []byte `db:"body_hash"`
	Salt     []byte `db:"salt"`
}

// Entry returns the fields that the chain covers.
func (r Row) Entry() transcript.Entry {
	e := transcript.Entry{Seq: r.Seq, ID: r.ID, SenderKind: r.SenderKind, SenderID: r.SenderID,
		SenderHandle: r.SenderHandle, Kind: r.Kind, TaskID: r.TaskID, TaskState: r.TaskState, Reason: r.Reason,
		Target: r.Target, CreatedAt: r.CreatedAt, Body: []byte(r.Body), Salt: r.Salt}
	if r.GoneSeq > 0 {
		e.Commitment = r.BodyHash
	}
	return e
}

const columns = `seq, id, sender_kind, sender_id, sender_handle, kind, body, task_id, task_state, reason, target,
	created_at, gone_seq, body_hash, salt`

// pageRows is the number of messages that a re-anchoring holds in memory.
const pageRows = 256

// Reanchor hashes the messages of a conversation anew from the one with seq on, because an erasure changed them, and
// gives a salt to each that has none. change, which may be nil, changes the sender of a row before; the row gets a new
// salt if it reports true. The operators' log gets the reason, without the old hashes, because these may be hashes of
// the erased text. Reanchor returns the hash of the last message.
func Reanchor(t engine.Tx, conversationID string, seq int64, by ident.Actor, reason string,
	change func(r *Row) bool) (head []byte, err error) {
	err = t.Get(&head, `SELECT hash FROM messages WHERE conversation_id = ? AND seq = ?`, conversationID, seq-1)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	for more := true; more; {
		var page []Row
		if err := t.List(&page, `SELECT `+columns+` FROM messages WHERE conversation_id = ? AND seq >= ?
			ORDER BY seq LIMIT ?`, conversationID, seq, pageRows); err != nil {
			return nil, err
		}
		for _, r := range page {
			renewed := change != nil && change(&r)
			r.salt(renewed)
			head, seq = transcript.Chain(head, r.Entry()), r.Seq+1
			if err := t.Send(`UPDATE messages SET sender_id = ?, sender_handle = ?, hash = ?, body_hash = ?, salt = ?
				WHERE conversation_id = ? AND seq = ?`, r.SenderID, r.SenderHandle, head, r.BodyHash, r.Salt,
				conversationID, r.Seq); err != nil {
				return nil, err
			}
		}
		more = len(page) == pageRows
	}
	if err := t.Send(`UPDATE conversations SET head_hash = ? WHERE id = ?`, head, conversationID); err != nil {
		return nil, err
	}
	return head, rows.AppendAudit(t, by, "transcript.reanchor", conversationID, reason)
}

// salt gives a row a new salt if it has none or renew is set. The commitment of a deleted message becomes random then:
// it was the hash of its text if the message is older than salts.
func (r *Row) salt(renew bool) {
	salt := transcript.NewSalt()
	switch {
	case !transcript.Salt(r.Salt).Older() && !renew:
	case r.GoneSeq > 0:
		random := sha256.Sum256(salt)
		r.Salt, r.BodyHash = transcript.Destroyed(), random[:]
	default:
		r.Salt = salt
	}
}

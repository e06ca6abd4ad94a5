package store

import (
	"context"
	"maps"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/transcript"
	"agentsite/store/chats"
	"agentsite/store/rows"
	"agentsite/store/sqlite"
)

// amendments maps a message, by seq, and a kind of change to the seq of the message that made the
// change.
type amendments map[amendment]int64

type amendment struct {
	seq int64
	by  chat.Kind // Edit, Unsaid, or Text for a regenerated answer
}

func (a *amendments) set(seq int64, by chat.Kind, with int64) {
	if *a == nil {
		*a = make(amendments)
	}
	(*a)[amendment{seq, by}] = with
}

// noteAmended collects the change that m makes to another message, and the changes that m's own row
// claims, for compareAmended.
func (p *transcriptPage) noteAmended(h headRow, m chats.MessageRow) {
	kind := chat.Kind(m.Kind)
	switch {
	case p.bad:
		return
	case m.Target >= m.Seq || kind.Amends() && m.Target < 1:
		p.r.addFault("%s: message %d is about message %d, which was not said before it.", h, m.Seq, m.Target)
	case kind == chat.Edit || kind == chat.Unsaid:
		p.said.set(m.Target, kind, m.Seq)
	case kind == chat.Text && m.SenderKind == "agent" && m.Target > 0:
		p.said.set(m.Target, chat.Text, m.Seq)
	}
	gone := m.GoneSeq
	if kind == chat.Edit { // An edit is deleted together with its target.
		if gone = 0; p.has[amendment{m.Target, chat.Unsaid}] != m.GoneSeq {
			p.r.addFault("%s: message %d, an edit, was not removed with message %d.", h, m.Seq, m.Target)
		}
	}
	for _, x := range []struct {
		by   chat.Kind
		with int64
	}{{chat.Edit, m.EditSeq}, {chat.Unsaid, gone}, {chat.Text, m.NewerSeq}} {
		if x.with != 0 {
			p.has.set(m.Seq, x.by, x.with)
		}
	}
	if (m.GoneSeq > 0) != (m.Body == "") {
		p.r.addFault("%s: message %d was removed but not its text, or the other way round.", h, m.Seq)
	}
	if salt := transcript.Salt(m.Salt); !salt.Older() && (m.GoneSeq > 0) != salt.IsDestroyed() {
		p.r.addFault("%s: message %d was removed but not its salt, or the other way round.", h, m.Seq)
	}
}

// compareAmended reports the first message of a conversation that has other changes in its row than
// later messages made.
func (p *transcriptPage) compareAmended(h headRow) {
	if maps.Equal(p.said, p.has) {
		return
	}
	first := int64(1<<63 - 1)
	for a := range p.said {
		if p.has[a] != p.said[a] {
			first = min(first, a.seq)
		}
	}
	for a := range p.has {
		if p.has[a] != p.said[a] {
			first = min(first, a.seq)
		}
	}
	p.r.addFault("%s: message %d is not shown as its edits, its removal or a later answer say.", h, first)
}

// checkWork checks the references of tasks to the message of a person that they go back to.
func (v *verifier) checkWork(ctx context.Context) error {
	type row struct {
		ID   string `db:"id"`
		Room string `db:"conversation_id"`
	}
	return sqlite.EachRow(ctx, v.c, func(t row) {
		v.r.addFault("Conversation %s: task %s goes back to a message that cannot have asked for it.", t.Room, t.ID)
	}, `SELECT id, conversation_id FROM tasks WHERE root_seq > message_seq OR hop > 0 AND root_seq = 0 OR root_seq < 0 OR hop < 0
		OR hop = 0 AND root_seq <> 0 AND root_seq <> message_seq`)
}

func (v *verifier) checkReactions(ctx context.Context) error {
	type row struct {
		Room string `db:"conversation_id"`
		Seq  int64  `db:"seq"`
	}
	return sqlite.EachRow(ctx, v.c, func(x row) {
		v.r.addFault("Conversation %s: there are reactions to message %d, which has none.", x.Room, x.Seq)
	}, `SELECT DISTINCT x.conversation_id, x.seq FROM reactions x LEFT JOIN messages m ON m.conversation_id = x.conversation_id AND m.seq = x.seq
		WHERE m.seq IS NULL OR m.reacted = 0 OR m.gone_seq > 0`)
}

// checkInvitations reports people who are invited to a conversation of which they are members.
func (v *verifier) checkInvitations(ctx context.Context) error {
	type row struct {
		Room   string `db:"conversation_id"`
		Handle string `db:"handle"`
	}
	return sqlite.EachRow(ctx, v.c, func(i row) {
		v.r.addFault("Conversation %s: %s is invited and a member at the same time.", i.Room, i.Handle)
	}, `SELECT i.conversation_id, i.handle FROM room_invitations i JOIN members m ON m.conversation_id = i.conversation_id
		AND m.kind = 'person' AND m.member_id = i.person_id AND m.left_at = 0 WHERE i.declined_at = 0`)
}

// fileUses checks that messages which hold files exist. A foreign key checks that the files exist.
func (v *verifier) fileUses(ctx context.Context) error {
	type row struct {
		Hash string `db:"hash"`
		Room string `db:"conversation_id"`
		Seq  int64  `db:"seq"`
	}
	return sqlite.EachRow(ctx, v.c, func(u row) {
		v.r.addFault("Conversation %s: message %d is said to hold the file %s, but is not there.", u.Room, u.Seq,
			u.Hash)
	}, `SELECT u.hash, u.conversation_id, u.seq FROM file_uses u LEFT JOIN messages m ON m.conversation_id = u.conversation_id AND m.seq = u.seq
		WHERE m.seq IS NULL OR m.gone_seq > 0`)
}

// checkWords checks that the search index lists no deleted message.
func (v *verifier) checkWords(ctx context.Context) error {
	type row struct {
		Room string `db:"conversation_id"`
		Seq  int64  `db:"seq"`
	}
	return sqlite.EachRow(ctx, v.c, func(s row) {
		v.r.addFault("Conversation %s: the words of message %d are kept, which is not there.", s.Room, s.Seq)
	}, `SELECT s.conversation_id, s.seq FROM said s LEFT JOIN messages m ON m.conversation_id = s.conversation_id AND m.seq = s.seq
		WHERE m.seq IS NULL OR m.gone_seq > 0`)
}

// checkFiles reads the whole content of every file and compares its hash. It takes as long as reading
// the disk.
func (v *verifier) checkFiles(ctx context.Context) error {
	for after := ""; ; {
		var page []blobRow
		if err := sqlite.EachRow(ctx, v.c, func(b blobRow) { page = append(page, b) },
			`SELECT hash, size FROM files WHERE hash > ? ORDER BY hash LIMIT ?`, after, verifyPage); err != nil {
			return err
		}
		for _, b := range page {
			after = b.Hash
			v.r.Files++
			v.r.FileBytes += b.Size
			if err := v.checkBlob(ctx, b); err != nil {
				return err
			}
		}
		if len(page) < verifyPage {
			return nil
		}
	}
}

func (v *verifier) checkBlob(ctx context.Context, b blobRow) error {
	if chats.BlobPath(b.Hash) == "" {
		v.r.addFault("A file has the name %q, which is no hash.", rows.ClipText(b.Hash, 80))
		return nil
	}
	count := &countWriter{}
	sum, err := copyBlob(ctx, count, v.blobs, b.Hash)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case fault.Is(err, fault.NotFound):
		var still bool // While a portal runs, the file may have been deleted since it was listed.
		if err := v.c.GetContext(ctx, &still, `SELECT EXISTS (SELECT 1 FROM files WHERE hash = ?)`,
			b.Hash); err != nil {
			return err
		}
		if still {
			v.r.addFault("The file %s of a message is missing: restore a backup.", b.Hash)
		} else {
			v.r.Files--
			v.r.FileBytes -= b.Size
		}
	case err != nil:
		v.r.addFault("The file %s of a message cannot be read: %v.", b.Hash, err)
	case sum != b.Hash || count.n != b.Size:
		v.r.addFault("The file %s of a message is not what was sent: restore a backup.", b.Hash)
	}
	return nil
}

type countWriter struct{ n int64 }

func (w *countWriter) Write(b []byte) (int, error) {
	w.n += int64(len(b))
	return len(b), nil
}

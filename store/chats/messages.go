// Package chats stores conversations: members, messages with their hash chain,
// links, files, and the index of words.
package chats

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/task"
	"agentsite/store/engine"
	"agentsite/store/hooks"
	"agentsite/store/quotas"
	"agentsite/store/transcripts"
)

// Chats stores conversations with their members and messages. It implements chat.Rooms, chat.Links,
// chat.Invitations, chat.People and chat.Transcripts, the latter without SearchMessages.
type Chats struct {
	db       engine.DB
	hooks    *hooks.Hooks
	words    *Words
	quotas   *quotas.Quotas
	members  *engine.Cache[[]chat.Member] // keyed by conversation id
	settings *engine.Cache[settingsRow]   // keyed by conversation id
	blockers *engine.Cache[[]string]      // ids of those who blocked a person, keyed by the person's id
}

func New(db engine.DB, hooks *hooks.Hooks, words *Words, quotas *quotas.Quotas) *Chats {
	return &Chats{db: db, hooks: hooks, words: words, quotas: quotas, members: engine.NewCache[[]chat.Member](0),
		settings: engine.NewCache[settingsRow](0), blockers: engine.NewCache[[]string](0)}
}

// MessageRow is a message with the columns of its hash, and those of later changes.
type MessageRow struct {
	transcripts.Row
	ConversationID string `db:"conversation_id"`
	Hash           []byte `db:"hash"`

	EditSeq  int64 `db:"edit_seq"`
	NewerSeq int64 `db:"newer_seq"`
	Reacted  int64 `db:"reacted"`
}

// saidColumns are the columns that the hash chain covers, and the hash itself; target is apart, because
// schemas before 3 lack it. nowColumns hold later changes of a message, and the salt of its commitment.
const (
	saidColumns    = `conversation_id, seq, id, sender_kind, sender_id, sender_handle, kind, body, task_id, task_state, reason, created_at, hash`
	messageColumns = saidColumns + `, target, ` + nowColumns
	nowColumns     = `edit_seq, gone_seq, newer_seq, reacted, body_hash, salt`
)

// headColumns selects a message with all columns but body and hash joined to one, because each column
// that is read costs as much as a short text. The reason comes last, because only it can contain the
// separator.
const headColumns = "concat_ws('\x1f', " + `conversation_id, seq, id, sender_kind, sender_id, sender_handle, kind, task_id, task_state, target, created_at,
	edit_seq, gone_seq, newer_seq, reacted, reason) AS head, body, hash`

// packedRow is a row that headColumns selected.
type packedRow struct {
	Head string `db:"head"`
	Body string `db:"body"`
	Hash []byte `db:"hash"`
}

// unpack returns the row without the hash of its body, which headColumns does not select.
func (p packedRow) unpack() (r MessageRow, err error) {
	rest := p.Head
	text := func() (s string) {
		s, rest, _ = strings.Cut(rest, "\x1f")
		return s
	}
	number := func() int64 {
		n, perr := strconv.ParseInt(text(), 10, 64)
		if perr != nil && err == nil {
			err = fmt.Errorf("read message %s: %w", r.ID, perr)
		}
		return n
	}
	r.ConversationID, r.Seq, r.ID = text(), number(), text()
	r.SenderKind, r.SenderID, r.SenderHandle, r.Kind, r.TaskID, r.TaskState = text(), text(), text(), text(), text(),
		text()
	r.Target, r.CreatedAt, r.EditSeq, r.GoneSeq, r.NewerSeq, r.Reacted = number(), number(), number(), number(),
		number(), number()
	r.Reason, r.Body, r.Hash = rest, p.Body, p.Hash
	return r, err
}

// message returns the message as it was sent, without later edits, deletion or reactions.
func (r MessageRow) message() (chat.Message, error) {
	m := chat.Message{ConversationID: r.ConversationID, Seq: r.Seq, ID: r.ID,
		Sender: chat.Sender{Kind: r.SenderKind, ID: r.SenderID, Handle: r.SenderHandle},
		Kind:   chat.Kind(r.Kind), TaskID: r.TaskID, TaskState: task.State(r.TaskState), Reason: r.Reason,
		Target:    r.Target,
		CreatedAt: clock.FromMilli(r.CreatedAt), Hash: r.Hash, Now: chat.Now{EditSeq: r.EditSeq, NewerSeq: r.NewerSeq}}
	parts, err := partsOf(r.Body)
	if err != nil {
		return m, fmt.Errorf("read message %s: %w", r.ID, err)
	}
	m.Parts = parts
	return m, nil
}

// partsOf decodes a body. The body of a deleted message is empty and has no parts.
func partsOf(body string) (parts []task.Part, err error) {
	if body != "" {
		err = json.Unmarshal([]byte(body), &parts)
	}
	return parts, err
}

// Size implements engine.Sized.
func (p packedRow) Size() int { return len(p.Head) + len(p.Body) + len(p.Hash) + rowBytes }

// rowBytes is the memory of a row besides its texts.
const rowBytes = 200

// Messages implements chat.Transcripts. span.Limit is at most 500.
func (d *Chats) Messages(ctx context.Context, conversationID string, span chat.Span) (list []chat.Message, more bool,
	err error) {
	if span.Before == 0 {
		span.Before = 1<<63 - 1
	}
	order := `ASC`
	if span.Newest {
		order = `DESC`
	}
	bytes, limit := cmp.Or(span.Bytes, chat.PageBytes), min(span.Limit, 500)
	packed, more, err := engine.ListUpTo[packedRow](ctx, d.db, bytes, `SELECT `+headColumns+
		` FROM messages WHERE conversation_id = ? AND seq > ? AND seq < ? ORDER BY seq `+order+` LIMIT ?`,
		conversationID, span.After, span.Before, limit)
	if err != nil {
		return nil, false, engine.MapError(err)
	}
	more = more || len(packed) == limit
	rows := make([]MessageRow, len(packed))
	for i, p := range packed {
		if rows[i], err = p.unpack(); err != nil {
			return nil, false, err
		}
	}
	later, err := d.laterBytes(ctx, conversationID, rows)
	if err != nil {
		return nil, false, err
	}
	size := 0
	for i, p := range packed {
		if size > bytes {
			rows, more = rows[:i], true
			break
		}
		size += p.Size() + later[rows[i].Seq]
	}
	if span.Newest {
		slices.Reverse(rows)
	}
	list, err = d.present(ctx, conversationID, rows)
	return list, more, err
}

// reactionBytes is about the memory of one reaction, with the handle of its member.
const reactionBytes = 200

// laterBytes returns the memory of the edits and reactions of rows, by seq, for rows with some.
func (d *Chats) laterBytes(ctx context.Context, conversationID string, rows []MessageRow) (map[int64]int, error) {
	var edited, reacted []int64
	of := make(map[int64]int64) // message by the seq of its edit
	for _, r := range rows {
		if r.EditSeq > 0 {
			edited, of[r.EditSeq] = append(edited, r.EditSeq), r.Seq
		}
		if r.Reacted > 0 {
			reacted = append(reacted, r.Seq)
		}
	}
	out := make(map[int64]int)
	for _, q := range []struct {
		seqs  []int64
		query string
		each  int
	}{
		{edited, `SELECT seq, octet_length(body) AS n FROM messages WHERE conversation_id = ? AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`, 1},
		{reacted, `SELECT seq, COUNT(*) AS n FROM reactions WHERE conversation_id = ? AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) GROUP BY seq`,
			reactionBytes},
	} {
		if len(q.seqs) == 0 {
			continue
		}
		in, err := json.Marshal(q.seqs)
		if err != nil {
			return nil, err
		}
		var list []struct {
			Seq int64 `db:"seq"`
			N   int   `db:"n"`
		}
		if err := d.db.List(ctx, &list, q.query, conversationID, string(in)); err != nil {
			return nil, engine.MapError(err)
		}
		for _, r := range list {
			seq := r.Seq
			if q.each == 1 {
				seq = of[seq]
			}
			out[seq] += r.N * q.each
		}
	}
	return out, nil
}

// Message implements chat.Transcripts. It returns the message as it is now, with its edits.
func (d *Chats) Message(ctx context.Context, conversationID string, seq int64) (chat.Message, error) {
	var r MessageRow
	if err := d.db.Get(ctx, &r, `SELECT `+messageColumns+` FROM messages WHERE conversation_id = ? AND seq = ?`,
		conversationID, seq); err != nil {
		return chat.Message{}, engine.MapError(err)
	}
	list, err := d.present(ctx, conversationID, []MessageRow{r})
	if err != nil {
		return chat.Message{}, err
	}
	return list[0], nil
}

// maxEdits bounds the edits of a message that Edits finds.
const maxEdits = 500

// editsQuery reads the edits of a message; an index by target serves it.
const editsQuery = `SELECT seq FROM messages WHERE conversation_id = ? AND target = ? AND kind = 'edit' ORDER BY seq LIMIT ?`

// Size implements engine.Sized.
func (r MessageRow) Size() int { return len(r.Body) + len(r.Reason) + len(r.SenderHandle) + rowBytes }

// Edits implements chat.Transcripts. Each form has the time of the message's deletion, if it was
// deleted.
func (d *Chats) Edits(ctx context.Context, conversationID string, seq, after int64) (list []chat.Message, more bool,
	err error) {
	rows, err := d.rowsOf(ctx, conversationID, []int64{seq})
	if err != nil {
		return nil, false, err
	}
	if len(rows) == 0 {
		return nil, false, errNoMessage()
	}
	gone, err := d.about(ctx, conversationID, rows, func(r MessageRow) int64 { return r.GoneSeq })
	if err != nil {
		return nil, false, err
	}
	var seqs []int64
	if err := d.db.List(ctx, &seqs, editsQuery, conversationID, seq, maxEdits); err != nil {
		return nil, false, engine.MapError(err)
	}
	in, err := json.Marshal(slices.DeleteFunc(seqs, func(n int64) bool { return n <= after }))
	if err != nil {
		return nil, false, err
	}
	edits, cut, err := engine.ListUpTo[MessageRow](ctx, d.db, chat.PageBytes, rowsQuery, conversationID, string(in))
	if err != nil {
		return nil, false, engine.MapError(err)
	}
	of := rows[0].GoneSeq
	if after >= seq {
		rows = nil
	}
	rows = append(rows, edits...)
	list = make([]chat.Message, len(rows))
	for i, r := range rows {
		if list[i], err = r.message(); err != nil {
			return nil, false, err
		}
		if g, ok := gone[max(of, r.GoneSeq)]; ok {
			list[i].Now.UnsaidAt, list[i].Now.UnsaidBy = clock.FromMilli(g.CreatedAt), g.SenderHandle
		}
	}
	return list, cut, nil
}

// present returns rows of one conversation with their edits, deletions and reactions applied. It makes
// at most two queries for edits and deletions and for reactions, and none if there are none.
func (d *Chats) present(ctx context.Context, conversationID string, rows []MessageRow) ([]chat.Message, error) {
	since, err := d.about(ctx, conversationID, rows, func(r MessageRow) int64 {
		if r.GoneSeq > 0 {
			return r.GoneSeq
		}
		return r.EditSeq
	})
	if err != nil {
		return nil, err
	}
	reactions, err := d.reactions(ctx, conversationID, rows)
	if err != nil {
		return nil, err
	}
	out := make([]chat.Message, len(rows))
	for i, r := range rows {
		m, err := r.message()
		if err != nil { // A damaged message is shown without content, so that the others can be read.
			d.db.Log().Error("show a damaged message without its words", "conversation", conversationID, "error", err)
		}
		if gone, ok := since[r.GoneSeq]; ok {
			m.Now.UnsaidAt, m.Now.UnsaidBy = clock.FromMilli(gone.CreatedAt), gone.SenderHandle
		} else if edit, ok := since[r.EditSeq]; ok {
			m.Now.EditedAt = clock.FromMilli(edit.CreatedAt)
			if m.Parts, err = partsOf(edit.Body); err != nil {
				d.db.Log().Error("show a damaged message without its words", "conversation", conversationID, "error",
					fmt.Errorf("read message %s: %w", edit.ID, err))
				m.Parts = nil
			}
		}
		m.Now.Reactions = reactions[r.Seq]
		out[i] = m
	}
	return out, nil
}

// about returns the messages that named returns for rows, by seq; 0 names none.
func (d *Chats) about(ctx context.Context, conversationID string, rows []MessageRow,
	named func(MessageRow) int64) (map[int64]MessageRow, error) {
	var seqs []int64
	for _, r := range rows {
		if seq := named(r); seq > 0 {
			seqs = append(seqs, seq)
		}
	}
	out := make(map[int64]MessageRow, len(seqs))
	if len(seqs) == 0 {
		return out, nil
	}
	list, err := d.rowsOf(ctx, conversationID, seqs)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		out[r.Seq] = r
	}
	return out, nil
}

// rowsQuery reads messages by their seqs.
const rowsQuery = `SELECT ` + messageColumns + ` FROM messages WHERE conversation_id = ? AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY seq`

func (d *Chats) rowsOf(ctx context.Context, conversationID string, seqs []int64) ([]MessageRow, error) {
	in, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	var rows []MessageRow
	err = d.db.List(ctx, &rows, rowsQuery, conversationID, string(in))
	return rows, engine.MapError(err)
}

// reactions returns the reactions to those rows that have some, by seq, in the order in which each emoji
// was first set.
func (d *Chats) reactions(ctx context.Context, conversationID string, rows []MessageRow) (map[int64][]chat.Reaction,
	error) {
	var seqs []int64
	for _, r := range rows {
		if r.Reacted > 0 {
			seqs = append(seqs, r.Seq)
		}
	}
	if len(seqs) == 0 {
		return map[int64][]chat.Reaction{}, nil
	}
	in, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Seq    int64  `db:"seq"`
		Emoji  string `db:"emoji"`
		Kind   string `db:"member_kind"`
		ID     string `db:"member_id"`
		Handle string `db:"handle"`
	}
	if err := d.db.List(ctx, &list, `SELECT seq, emoji, member_kind, member_id, handle FROM reactions
		WHERE conversation_id = ? AND seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY seq, set_seq`, conversationID,
		string(in)); err != nil {
		return nil, engine.MapError(err)
	}
	out := make(map[int64][]chat.Reaction, len(seqs))
	for _, r := range list {
		of := out[r.Seq]
		i := slices.IndexFunc(of, func(x chat.Reaction) bool { return x.Emoji == r.Emoji })
		if i < 0 {
			i, of = len(of), append(of, chat.Reaction{Emoji: r.Emoji})
		}
		of[i].By = append(of[i].By, chat.Reactor{Kind: r.Kind, ID: r.ID, Handle: r.Handle})
		out[r.Seq] = of
	}
	return out, nil
}

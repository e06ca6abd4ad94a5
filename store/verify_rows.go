package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"agentsite/internal/task"
	"agentsite/internal/transcript"
	"agentsite/store/chats"
	"agentsite/store/quotas"
	"agentsite/store/rows"
	"agentsite/store/sqlite"
)

// verifyPage is the number of conversations or tasks that one read transaction covers, so that no
// transaction is long and keeps the WAL growing.
const verifyPage = 256

type headRow struct {
	ID       string `db:"id"`
	Title    string `db:"title"`
	LastSeq  int64  `db:"last_seq"`
	HeadHash []byte `db:"head_hash"`
}

func (h headRow) String() string {
	if h.Title == "" {
		return "Conversation " + h.ID
	}
	return fmt.Sprintf("Conversation %s (%q)", h.ID, rows.ClipText(h.Title, 80))
}

// linkRow is a message joined with the task that it ends; Ended is NULL if it ends none.
type linkRow struct {
	chats.MessageRow
	Ended     sql.NullString `db:"ended"` // state of the task
	AnswerSeq sql.NullInt64  `db:"answer_seq"`
	Room      sql.NullString `db:"room"`
}

// checkTranscripts reads every message once, in order, a page of conversations at a time, and holds one
// message in memory.
func (v *verifier) checkTranscripts(ctx context.Context) error {
	after := ""
	for {
		n, last, err := v.transcriptPage(ctx, after)
		if n > 0 && sqlite.IsDamaged(err) {
			// Continue, because the other conversations may be undamaged.
			v.r.addFault("%v.", err)
			err = nil
		}
		if err != nil || n < verifyPage {
			return err
		}
		after = last
	}
}

func (v *verifier) transcriptPage(ctx context.Context, after string) (n int, last string, err error) {
	tx, err := v.c.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, "", err
	}
	defer tx.Rollback()
	heads := make([]headRow, 0, verifyPage)
	if err := sqlite.EachRow(ctx, tx, func(h headRow) { heads = append(heads, h) },
		`SELECT id, title, last_seq, head_hash FROM conversations
		WHERE id > ? ORDER BY id LIMIT ?`, after, verifyPage); err != nil {
		return 0, "", err
	}
	upTo := "\U0010ffff" // a text after every id, because the last page takes the rest
	if len(heads) == verifyPage {
		upTo = heads[len(heads)-1].ID
	}
	p := &transcriptPage{r: v.r, heads: heads}
	since := `m.target, m.edit_seq, m.gone_seq, m.newer_seq, m.reacted, m.body_hash, m.salt`
	switch {
	case v.first:
		since = `0 AS target, 0 AS edit_seq, 0 AS gone_seq, 0 AS newer_seq, 0 AS reacted, NULL AS body_hash, NULL AS salt`
	case v.unsalted:
		since = `m.target, m.edit_seq, m.gone_seq, m.newer_seq, m.reacted, m.body_hash, NULL AS salt`
	}
	err = sqlite.EachRow(ctx, tx, p.checkMessage,
		`SELECT m.conversation_id, m.seq, m.id, m.sender_kind, m.sender_id, m.sender_handle, m.kind, m.body, m.task_id, m.task_state, m.reason, m.created_at, m.hash, `+since+`,
		t.state AS ended, t.answer_seq, t.conversation_id AS room
		FROM messages m LEFT JOIN tasks t ON m.task_state IN ('completed', 'failed', 'canceled', 'rejected') AND t.id = m.task_id
		WHERE m.conversation_id > ? AND m.conversation_id <= ? ORDER BY m.conversation_id, m.seq`, after, upTo)
	if err != nil {
		if p.at < len(heads) {
			err = fmt.Errorf("%s cannot be read after message %d: %w", heads[p.at], p.seq, err)
		}
		return len(heads), upTo, err
	}
	for p.at < len(heads) {
		p.close()
	}
	return len(heads), upTo, nil
}

// transcriptPage compares the messages of a page, in order, with the conversations that they belong to.
type transcriptPage struct {
	r     *Report
	heads []headRow
	at    int    // index in heads of the conversation of the next message
	seq   int64  // seq of the last message read in it
	hash  []byte // chain hash of that message
	bad   bool   // a fault of its chain was reported

	said, has amendments // changes by later messages, and changes that rows claim
}

func (p *transcriptPage) checkMessage(m linkRow) {
	for p.at < len(p.heads) && p.heads[p.at].ID < m.ConversationID {
		p.close()
	}
	p.r.Messages++
	if p.at == len(p.heads) || p.heads[p.at].ID != m.ConversationID {
		p.r.addFault("Message %s (number %d) belongs to a conversation %s that does not exist.", m.ID, m.Seq,
			m.ConversationID)
		return
	}
	h := p.heads[p.at]
	if m.Seq != p.seq+1 && !p.bad {
		p.reportBroken("%s: message %d follows message %d, so some are missing.", h, m.Seq, p.seq)
	}
	if want := transcript.Chain(p.hash, m.Entry()); !bytes.Equal(want, m.Hash) && !p.bad {
		p.reportBroken("%s: message %d is not what was said there (its hash does not follow from the messages before it).", h, m.Seq)
	}
	p.seq, p.hash = m.Seq, m.Hash
	p.noteAmended(h, m.MessageRow)
	if !task.State(m.TaskState).Terminal() {
		return
	}
	switch {
	case !m.Ended.Valid:
		p.r.addFault("%s: message %d ends a task %s that does not exist.", h, m.Seq, m.TaskID)
	case m.Room.String != m.ConversationID:
		p.r.addFault("%s: message %d ends task %s of another conversation.", h, m.Seq, m.TaskID)
	case m.AnswerSeq.Int64 != m.Seq || m.Ended.String != m.TaskState:
		p.r.addFault("%s: message %d says that task %s ended as %s, but the task says %s with message %d.", h, m.Seq,
			m.TaskID, m.TaskState, m.Ended.String, m.AnswerSeq.Int64)
	}
}

// reportBroken reports the first fault of a conversation's chain. Later ones are not reported, because
// they follow from the first.
func (p *transcriptPage) reportBroken(format string, args ...any) {
	p.bad = true
	p.r.addFault(format, args...)
}

// close checks the end of the current conversation against its row and goes to the next one.
func (p *transcriptPage) close() {
	h := p.heads[p.at]
	switch {
	case p.bad:
	case p.seq != h.LastSeq:
		p.r.addFault("%s: it should end with message %d but ends with %d.", h, h.LastSeq, p.seq)
	case !bytes.Equal(p.hash, h.HeadHash):
		p.r.addFault("%s: its last message is not the one that was said last (the hash at its head differs).", h)
	}
	if !p.bad {
		p.compareAmended(h)
	}
	p.r.Conversations++
	p.said, p.has = nil, nil
	p.at, p.seq, p.hash, p.bad = p.at+1, 0, nil, false
}

func (v *verifier) clientIDs(ctx context.Context) error {
	type row struct {
		Room string `db:"conversation_id"`
		ID   string `db:"client_id"`
		Seq  int64  `db:"seq"`
	}
	return sqlite.EachRow(ctx, v.c, func(c row) {
		v.r.addFault("Conversation %s: the sender's id %q is noted for message %d, which is not by that sender.",
			c.Room, rows.ClipText(c.ID, 80), c.Seq)
	}, `SELECT c.conversation_id, c.client_id, c.seq FROM client_ids c
		LEFT JOIN messages m ON m.conversation_id = c.conversation_id AND m.seq = c.seq AND m.sender_id = c.sender_id
		WHERE m.seq IS NULL`)
}

type doneRow struct {
	ID         string         `db:"id"`
	Room       string         `db:"conversation_id"`
	State      string         `db:"state"`
	MessageSeq int64          `db:"message_seq"`
	AnswerSeq  int64          `db:"answer_seq"`
	LastSeq    sql.NullInt64  `db:"last_seq"`
	Answers    sql.NullString `db:"answers"` // task that the answer names
	AnswerSays sql.NullString `db:"answer_says"`
	Queued     bool           `db:"queued"`
}

// checkTasks checks each task against its answer and the outbox. Together with checkTranscripts, which
// checks each final message against its task, this proves that every ended task has exactly one final
// message.
func (v *verifier) checkTasks(ctx context.Context) error {
	for after := ""; ; {
		n := 0
		err := sqlite.EachRow(ctx, v.c, func(t doneRow) {
			n++
			after = t.ID
			v.r.Tasks++
			v.checkTask(t)
		}, `SELECT t.id, t.conversation_id, t.state, t.message_seq, t.answer_seq, c.last_seq, m.task_id AS answers, m.task_state AS answer_says, o.ref IS NOT NULL AS queued
			FROM tasks t LEFT JOIN conversations c ON c.id = t.conversation_id
			LEFT JOIN messages m ON m.conversation_id = t.conversation_id AND m.seq = t.answer_seq
			LEFT JOIN outbox o ON o.topic = 'task' AND o.ref = t.id
			WHERE t.id > ? ORDER BY t.id LIMIT ?`, after, verifyPage)
		if err != nil || n < verifyPage {
			return err
		}
	}
}

func (v *verifier) checkTask(t doneRow) {
	s := task.State(t.State)
	who := fmt.Sprintf("Conversation %s: task %s", t.Room, t.ID)
	if !knownState(s) {
		v.r.addFault("%s has a state %q that does not exist.", who, t.State)
		return
	}
	if t.MessageSeq < 1 || t.MessageSeq > t.LastSeq.Int64 {
		v.r.addFault("%s was asked for by message %d, which does not exist.", who, t.MessageSeq)
	}
	switch {
	case s.Terminal() && t.AnswerSeq == 0:
		v.r.addFault("%s ended as %s without a message.", who, s)
	case t.AnswerSeq != 0 && t.Answers.String != t.ID:
		v.r.addFault("%s names message %d as its answer, which is not.", who, t.AnswerSeq)
	case s.Terminal() && t.AnswerSays.String != t.State:
		v.r.addFault("%s ended as %s, but its answer, message %d, says %s.", who, s, t.AnswerSeq, t.AnswerSays.String)
	}
	switch {
	case s.Terminal() && t.Queued:
		v.r.addFault("%s ended as %s but still waits in the queue.", who, s)
	case s.Active() && !t.Queued:
		v.r.addFault("%s is %s but not in the queue, so nobody will work on it.", who, s)
	}
}

func knownState(s task.State) bool {
	return s.Terminal() || s.Active() || s == task.InputRequired || s == task.AuthRequired
}

func (v *verifier) checkOutbox(ctx context.Context) error {
	type row struct {
		Ref string `db:"ref"`
	}
	return sqlite.EachRow(ctx, v.c, func(o row) {
		v.r.addFault("The queue holds task %s, which does not exist.", o.Ref)
	}, `SELECT o.ref FROM outbox o LEFT JOIN tasks t ON t.id = o.ref WHERE o.topic = 'task' AND t.id IS NULL`)
}

func (v *verifier) checkNames(ctx context.Context) error {
	type row struct {
		Name string `db:"name"`
		Kind string `db:"kind"`
	}
	return sqlite.EachRow(ctx, v.c, func(n row) {
		v.r.addFault("The name %q and the %s it belongs to do not fit together.", n.Name, n.Kind)
	}, `SELECT n.name, n.kind FROM names n LEFT JOIN accounts a ON a.id = n.ref AND a.name = n.name WHERE n.kind = 'account' AND a.id IS NULL
		UNION ALL SELECT n.name, n.kind FROM names n LEFT JOIN agents g ON g.id = n.ref AND g.name = n.name WHERE n.kind <> 'account' AND g.id IS NULL
		UNION ALL SELECT a.name, 'account' FROM accounts a LEFT JOIN names n ON n.name = a.name WHERE n.name IS NULL OR n.ref <> a.id OR n.kind <> 'account'
		UNION ALL SELECT g.name, 'agent' FROM agents g LEFT JOIN names n ON n.name = g.name WHERE n.name IS NULL OR n.ref <> g.id OR n.kind <> 'agent'`)
}

func (v *verifier) checkAgents(ctx context.Context) error {
	type row struct {
		ID   string `db:"id"`
		Name string `db:"name"`
	}
	return sqlite.EachRow(ctx, v.c, func(a row) {
		v.r.addFault("Agent %s (%s) is not the version it says, or that version cannot be read.", a.Name, a.ID)
	}, `SELECT a.id, a.name FROM agents a LEFT JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.version
		WHERE v.agent_id IS NULL OR v.spec <> a.spec OR v.title <> a.title OR v.visibility <> a.visibility OR NOT json_valid(a.spec)`)
}

// checkStorage counts the stored bytes anew and compares them with the counters.
func (v *verifier) checkStorage(ctx context.Context) error {
	return sqlite.EachRow(ctx, v.c, func(w quotas.WrongRow) {
		v.r.addFault("The %s %s is said to store %d bytes, but stores %d.", w.Kind, w.ID, w.Counted, w.Stored)
	}, quotas.WrongQuery)
}

func (v *verifier) checkServers(ctx context.Context) error {
	type row struct {
		Name   string `db:"name"`
		Latest int    `db:"latest"`
		Wrong  int    `db:"wrong"`
	}
	return sqlite.EachRow(ctx, v.c, func(s row) {
		v.r.addFault("Server %s of the MCP registry has %d latest versions, and %d that are not what was published.",
			s.Name, s.Latest, s.Wrong)
	}, `SELECT s.name, COALESCE(SUM(r.latest), 0) AS latest, COALESCE(SUM(r.size <> octet_length(r.document) OR NOT json_valid(r.document)), 0) AS wrong
		FROM servers s LEFT JOIN releases r ON r.name = s.name GROUP BY s.name HAVING latest <> 1 OR wrong > 0`)
}

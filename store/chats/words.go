package chats

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"agentsite/internal/task"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// Words maintains the full-text index of messages.
type Words struct {
	db       engine.DB
	index    engine.WordIndex
	wordless rooms
}

func NewWords(db engine.DB) *Words { return &Words{db: db, index: db.Words()} }

// Messages are indexed after they are stored, so that a post costs no more. The table said_words has a
// row for each text, with an id that begins with the time of the message, so that the index returns the
// newest first. Each word begins with the id of its room, so that a search reads only the member's rooms.

const (
	// saidShift is the number of low bits of an id for texts of the same millisecond: two million. The
	// times last until the year 2109.
	saidShift = 21
	// wordsPage and wordsBytes bound the messages that one transaction indexes, because other writers
	// wait for it: some milliseconds.
	wordsPage  = 32
	wordsBytes = 32 << 10
	// wordsRooms bounds the rooms of one page, because the words of each room cost a part of the index,
	// as much as ten short texts.
	wordsRooms = 50
	// maxWordBytes is the part of a text in bytes that is indexed.
	maxWordBytes = 64 << 10
)

// saidFrom returns the first id in the index for texts of a time in milliseconds.
func saidFrom(at int64) int64 { return min(max(at, 0), 1<<(63-saidShift)-1) << saidShift }

// rooms is the set of rooms with messages to index, and the progress of the scan of all rooms since
// the start: rooms beyond it may have messages that are not indexed.
type rooms struct {
	mu    sync.Mutex // guards the fields below
	ids   map[string]struct{}
	after string
	lap   bool // the scan of all rooms has ended
}

// maxWordless bounds the set. When it is full, the set is emptied and all rooms are scanned again.
const maxWordless = 65_536

func (r *rooms) addRoom(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.ids[id]; ok {
		return
	}
	if r.ids == nil {
		r.ids = make(map[string]struct{})
	}
	if len(r.ids) >= maxWordless {
		clear(r.ids)
		r.after, r.lap = "", false
	}
	r.ids[id] = struct{}{}
}

// nextRoom removes up to wordsRooms rooms from the set and returns them, with the progress of the scan.
// lap is true if no scan is needed now.
func (r *rooms) nextRoom() (ids []string, after string, lap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.ids {
		if ids = append(ids, id); len(ids) == wordsRooms {
			break
		}
	}
	for _, id := range ids {
		delete(r.ids, id)
	}
	return ids, r.after, r.lap || len(ids) > 0
}

// passed records the progress of the scan of all rooms, unless another scan was started since from was
// read.
func (r *rooms) passed(from, after string, end bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.after == from && !r.lap {
		r.after, r.lap = after, end
	}
}

// IndexWords indexes some messages that are not in the index yet, and reports whether there are more.
// Without any it costs almost nothing. It must not run twice at a time.
func (d *Words) IndexWords(ctx context.Context) (more bool, err error) {
	ids, after, lap := d.wordless.nextRoom()
	switch {
	case len(ids) > 0:
		return true, d.readAll(ctx, ids)
	case lap:
		return false, nil
	}
	if err := d.db.List(ctx, &ids, `SELECT id FROM conversations WHERE id > ? AND words_seq < last_seq ORDER BY id LIMIT ?`, after, wordsRooms); err != nil {
		return true, engine.MapError(err)
	}
	if len(ids) == 0 {
		d.wordless.passed(after, "", true)
		return false, nil
	}
	if err := d.readAll(ctx, ids); err != nil {
		return true, err
	}
	d.wordless.passed(after, ids[len(ids)-1], false)
	return true, nil
}

// readAll indexes messages of some rooms. Rooms that are not done go back into the set.
func (d *Words) readAll(ctx context.Context, ids []string) error {
	rest, err := d.readWords(ctx, ids...)
	if err != nil && len(ids) > 1 && ctx.Err() == nil {
		// Try the rooms one by one, so that one that cannot be read does not hold up the others.
		rest, err = nil, nil
		for _, id := range ids {
			one, oneErr := d.readWords(ctx, id)
			if oneErr != nil {
				one = []string{id}
			}
			rest, err = append(rest, one...), errors.Join(err, oneErr)
		}
	} else if err != nil {
		rest = ids
	}
	for _, id := range rest {
		d.wordless.addRoom(id)
	}
	return err
}

// readWords indexes a page of messages of some rooms in one transaction, and returns the rooms that have
// more.
func (d *Words) readWords(ctx context.Context, ids ...string) (rest []string, err error) {
	err = d.writeWords(ctx, func(t engine.Tx) error {
		rest = nil
		page := wordsLeft{wordsPage, wordsBytes}
		for i, id := range ids {
			if page.messages <= 0 || page.bytes <= 0 {
				rest = append(rest, ids[i:]...)
				break
			}
			more, err := d.indexPage(t, id, &page)
			if err != nil {
				return err
			}
			if more {
				rest = append(rest, id)
			}
		}
		return nil
	})
	return rest, err
}

// wordsLeft holds the numbers of messages and bytes that a transaction may still index.
type wordsLeft struct{ messages, bytes int }

// indexPage indexes messages of a room while page lasts, but at least one, and reports whether there are
// more. It skips damaged messages.
func (d *Words) indexPage(t engine.Tx, conversationID string, page *wordsLeft) (more bool, err error) {
	var c struct {
		WordsSeq int64 `db:"words_seq"`
		LastSeq  int64 `db:"last_seq"`
	}
	err = t.Get(&c, `SELECT words_seq, last_seq FROM conversations WHERE id = ?`, conversationID)
	if errors.Is(err, sql.ErrNoRows) || err == nil && c.WordsSeq >= c.LastSeq {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	upTo := min(c.LastSeq, c.WordsSeq+int64(page.messages))
	more = upTo < c.LastSeq
	var rows []struct {
		Seq       int64  `db:"seq"`
		CreatedAt int64  `db:"created_at"`
		Body      string `db:"body"`
	}
	if err := t.List(&rows, `SELECT m.seq, m.created_at, COALESCE(e.body, m.body) AS body
		FROM messages m LEFT JOIN messages e ON m.edit_seq > 0 AND e.conversation_id = m.conversation_id AND e.seq = m.edit_seq
		WHERE m.conversation_id = ? AND m.seq > ? AND m.seq <= ? AND m.kind = 'text' AND m.gone_seq = 0 ORDER BY m.seq`,
		conversationID, c.WordsSeq, upTo); err != nil {
		return false, err
	}
	page.messages -= int(upTo - c.WordsSeq)
	for i, r := range rows {
		if page.bytes -= len(r.Body); page.bytes < 0 && i > 0 {
			upTo, more = r.Seq-1, true
			break
		}
		parts, err := partsOf(r.Body)
		if err != nil {
			d.db.Log().Error("skip the words of a damaged message", "conversation", conversationID, "seq", r.Seq,
				"error", err)
			continue
		}
		if err := d.insertWord(t, conversationID, r.Seq, r.CreatedAt, task.PlainText(parts)); err != nil {
			return false, err
		}
	}
	_, err = t.Exec(`UPDATE conversations SET words_seq = ? WHERE id = ?`, upTo, conversationID)
	return more, err
}

// insertWord indexes a text, unless it has no words or is indexed already.
func (d *Words) insertWord(t engine.Tx, conversationID string, seq, at int64, text string) error {
	words := roomWords(conversationID, rows.ClipText(text, maxWordBytes))
	if words == "" {
		return nil
	}
	from := saidFrom(at)
	var id int64
	if err := t.Get(&id, `SELECT COALESCE(MAX(id) + 1, ?1) FROM said WHERE id >= ?1 AND id < ?2`, from,
		from+1<<saidShift); err != nil {
		return err
	}
	res, err := t.Exec(`INSERT INTO said (id, conversation_id, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id,
		conversationID, seq)
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return nil // The text is indexed already.
	}
	return d.index.AddWords(t, id, words)
}

// deleteWords removes a text from the index. PurgeWords removes its words from the disk.
func deleteWords(t engine.Tx, conversationID string, seq int64) error {
	var id int64
	err := t.Get(&id, `SELECT id FROM said WHERE conversation_id = ? AND seq = ?`, conversationID, seq)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := t.Exec(`DELETE FROM said_words WHERE rowid = ?`, id); err != nil {
		return err
	}
	_, err = t.Exec(`DELETE FROM said WHERE id = ?`, id)
	return err
}

// replaceWord indexes a text in place of the previous one of the message, if that was indexed.
func (d *Words) replaceWord(t engine.Tx, conversationID string, seq int64, text string) error {
	var c struct {
		WordsSeq  int64 `db:"words_seq"`
		CreatedAt int64 `db:"created_at"`
	}
	if err := t.Get(&c, `SELECT c.words_seq, m.created_at FROM conversations c JOIN messages m ON m.conversation_id = c.id AND m.seq = ? WHERE c.id = ?`, seq, conversationID); err != nil {
		return err
	}
	if c.WordsSeq < seq {
		return nil
	}
	if err := deleteWords(t, conversationID, seq); err != nil {
		return err
	}
	return d.insertWord(t, conversationID, seq, c.CreatedAt, text)
}

// PurgeWords removes the words of deleted texts from the disk, for privacy. It costs little if no text was
// deleted since the last call.
func (d *Words) PurgeWords(ctx context.Context) error {
	return engine.MapError(d.index.PurgeWords(ctx, d.writeWords))
}

// writeWords is DB.Write for transactions that change the index. If the index is damaged, it is emptied
// and fn runs again; later calls of IndexWords fill the index from the messages.
func (d *Words) writeWords(ctx context.Context, fn func(engine.Tx) error) error {
	err := d.db.Write(ctx, fn)
	if engine.ReasonOf(err) != engine.IndexDamaged {
		return err
	}
	if err := d.emptyWords(ctx, err); err != nil {
		return err
	}
	return d.db.Write(ctx, fn)
}

// emptyWords empties a damaged index, so that all messages are indexed anew. cause is logged.
func (d *Words) emptyWords(ctx context.Context, cause error) error {
	d.db.Log().Warn("read the words of all messages anew", "cause", cause)
	err := d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.index.EmptyWords(t); err != nil {
			return err
		}
		for _, q := range []string{`DELETE FROM said`, `UPDATE conversations SET words_seq = 0 WHERE words_seq > 0`} {
			if _, err := t.Exec(q); err != nil {
				return err
			}
		}
		return nil
	})
	d.wordless.rescanAll()
	return err
}

// rescanAll makes IndexWords scan all rooms again.
func (r *rooms) rescanAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.ids)
	r.after, r.lap = "", false
}

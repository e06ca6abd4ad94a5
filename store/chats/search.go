package chats

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
	"agentsite/store/engine"
)

// Search finds messages by their words. It implements SearchMessages of chat.Transcripts.
type Search struct {
	db    engine.DB
	chats *Chats
	words *Words
}

func NewSearch(db engine.DB, chats *Chats, words *Words) *Search { return &Search{db, chats, words} }

// Bounds of one search.
const (
	maxSearchedRooms = 10_000
	roomsPerMatch    = 256 // rooms of one query to the index, which looks up each word in each room
	foundPage        = 100
	maxFoundPages    = 50 // pages of hits that the member may not see, after which a search gives up
	catchUpPages     = 16 // pages of messages that one search indexes before it asks the index
	minPrefixRunes   = 3  // a prefix costs as much as there are words that begin with it in the searched rooms
	// shortPrefixes is the number of messages, in the rooms that changed last, in which a shorter prefix is looked for.
	shortPrefixes = 20_000
)

type searchedRoom struct {
	ID      string `db:"id"`
	Title   string `db:"title"`
	FromSeq int64  `db:"from_seq"`
	LastSeq int64  `db:"last_seq"`
	Behind  bool   `db:"behind"`
}

type foundRow struct {
	ID             int64  `db:"id"`
	ConversationID string `db:"conversation_id"`
	Seq            int64  `db:"seq"`
}

// SearchMessages implements chat.Transcripts. limit is at most 200. Messages in conversations with many
// unindexed ones are found only after IndexWords has reached them.
func (d *Search) SearchMessages(ctx context.Context, memberKind, memberID, query string, before chat.Point,
	limit int) (out []chat.Found, more bool, err error) {
	words, joined := queryWords(query, false), queryWords(query, true)
	limit = min(limit, 200)
	if len(words) == 0 || limit < 1 {
		return []chat.Found{}, false, nil
	}
	var list []searchedRoom
	if err := d.db.List(ctx, &list, `SELECT c.id, c.title, m.from_seq, c.last_seq, c.words_seq < c.last_seq AS behind
		FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.member_id = ? AND m.kind = ? AND m.left_at = 0 ORDER BY c.updated_at DESC LIMIT ?`, memberID,
		memberKind, maxSearchedRooms); err != nil {
		return nil, false, engine.MapError(err)
	}
	d.catchUp(ctx, list)
	below, err := d.foundBefore(ctx, before)
	if err != nil {
		return nil, false, err
	}
	in := make(map[string]searchedRoom, len(list))
	for _, r := range list {
		in[r.ID] = r
	}
	var hits []foundRow
	groups := wordGroups(list, words)
	if !slices.Equal(words, joined) {
		groups = append(groups, wordGroups(list, joined)...)
		words = slices.Concat(words, joined)
	}
	for chunk := range slices.Chunk(groups, roomsPerMatch) {
		some, err := d.find(ctx, chunk, in, below, limit)
		if engine.ReasonOf(err) == engine.IndexDamaged {
			if err := d.words.emptyWords(ctx, err); err != nil {
				return nil, false, err
			}
			return nil, false, fault.New(fault.Unavailable,
				"The words of your messages have to be read anew. Search again in a while.")
		}
		if err != nil {
			return nil, false, err
		}
		hits = append(hits, some...)
	}
	slices.SortFunc(hits, func(a, b foundRow) int { return cmp.Compare(b.ID, a.ID) })
	hits = slices.Compact(hits) // found as both
	more = len(hits) >= limit
	size := 0
	for _, h := range hits[:min(len(hits), limit)] {
		if size > chat.PageBytes {
			return out, true, nil
		}
		m, err := d.chats.Message(ctx, h.ConversationID, h.Seq)
		if fault.Is(err, fault.NotFound) || err == nil && !m.Now.UnsaidAt.IsZero() {
			continue // The message was deleted since the index was read.
		}
		if err != nil {
			return nil, false, err
		}
		for _, p := range m.Parts {
			size += len(p.Text) + len(p.Data) + len(p.URL) + len(p.Metadata) + rowBytes
		}
		out = append(out, chat.Found{ConversationID: h.ConversationID, Title: in[h.ConversationID].Title, Message: m,
			Snippet: around(task.PlainText(m.Parts), words)})
	}
	return out, more, nil
}

// catchUp indexes new messages of the member's rooms, the last changed room first, at most catchUpPages.
// An error is logged only, because the search can use the existing index.
func (d *Search) catchUp(ctx context.Context, list []searchedRoom) {
	pages := 0
	for _, r := range list {
		for more := r.Behind; more && pages < catchUpPages; pages++ {
			rest, err := d.words.readWords(ctx, r.ID)
			if err != nil {
				d.db.Log().Warn("read the words of messages", "error", err)
				return
			}
			more = len(rest) > 0
		}
	}
}

// foundBefore returns the id in the index below which a search continues after the message at p.
func (d *Search) foundBefore(ctx context.Context, p chat.Point) (int64, error) {
	if p.At.IsZero() {
		return 1<<63 - 1, nil
	}
	from := saidFrom(clock.Milli(p.At))
	var id int64
	err := d.db.Get(ctx, &id, `SELECT s.id FROM said s JOIN messages m ON m.conversation_id = s.conversation_id AND m.seq = s.seq
		WHERE s.id >= ? AND s.id < ? AND m.id = ?`, from, from+1<<saidShift, p.ID)
	if errors.Is(err, sql.ErrNoRows) { // The message was deleted meanwhile: continue before its time.
		return from, nil
	}
	return id, engine.MapError(err)
}

// find returns the newest indexed texts that match, whose id is less than below and that the member may
// see, at most limit. It gives up after maxFoundPages pages of texts that the member may not see.
func (d *Search) find(ctx context.Context, groups []engine.WordGroup, in map[string]searchedRoom, below int64,
	limit int) (hits []foundRow, err error) {
	for range maxFoundPages {
		var page []foundRow
		if err := d.words.index.MatchWords(ctx, &page, groups, below, foundPage); err != nil {
			return nil, engine.MapError(err)
		}
		for _, f := range page {
			below = f.ID
			if r, ok := in[f.ConversationID]; ok && f.Seq > r.FromSeq {
				if hits = append(hits, f); len(hits) == limit {
					return hits, nil
				}
			}
		}
		if len(page) < foundPage {
			break
		}
	}
	return hits, nil
}

// wordGroups returns the groups that match texts of the rooms, the last changed first, with all the words. The last
// word matches as a prefix; one of one or two letters only in the first rooms, up to shortPrefixes messages.
func wordGroups(list []searchedRoom, words []string) []engine.WordGroup {
	long := utf8.RuneCountInString(words[len(words)-1]) >= minPrefixRunes
	out := make([]engine.WordGroup, len(list))
	left := int64(shortPrefixes)
	for i, r := range list {
		left -= r.LastSeq
		out[i].Prefix = long || left >= 0
		for _, w := range words {
			out[i].Phrases = append(out[i].Phrases, r.ID+strings.ReplaceAll(w, " ", " "+r.ID))
		}
	}
	return out
}

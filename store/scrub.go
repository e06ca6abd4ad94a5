package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"agentsite/internal/clock"
	"agentsite/internal/transcript"
	"agentsite/store/chats"
	"agentsite/store/replica"
	"agentsite/store/sqlite"
)

// scrubRows is the number of messages that a scrub reads between two looks at the time.
const scrubRows = 64

// Scrub checks the databases of a running portal in slices, round after round: the pages of every table,
// and the chain of hashes over every conversation. Damage is found within a round, not only when a person reads
// it. One goroutine calls Next; State is safe for concurrent use.
type Scrub struct {
	db    *sqlite.DB
	slice time.Duration
	log   func(fault string)
	files []*sqlite.DB

	tables []scrubTable // those left in this round
	key    []any        // of the last row read of the first table, if that takes several slices
	room   scrubRoom

	mu    sync.Mutex // guards state
	state ScrubState
	found []string // faults of this round
}

// ScrubState is the result of a scrub so far.
type ScrubState struct {
	// Faults are sentences for the operator about damage found in this round and the last; none means
	// no damage was found.
	Faults []string
	// Completed is the time at which the last round ended; zero before the first.
	Completed time.Time
}

type scrubTable struct {
	db   *sqlite.DB
	name string
	long bool // the table is read row by row, because its check takes longer than a slice
}

// scrubRoom is the position in the conversations: the messages of id are checked up to seq, whose hash in
// the chain is hash.
type scrubRoom struct {
	id   string
	seq  int64
	hash []byte
}

// NewScrub returns a Scrub of a portal's database and its replica, nil for none. slice bounds the time of
// one call of Next; log is called once a round with each fault.
func NewScrub(db *DB, r *replica.Replica, slice time.Duration, log func(fault string)) *Scrub {
	s := &Scrub{db: db.file, slice: slice, log: log}
	if db.file != nil {
		s.files = append(s.files, db.file)
	}
	if r != nil && r.File != nil {
		s.files = append(s.files, r.File)
	}
	return s
}

// State returns the result so far.
func (s *Scrub) State() ScrubState {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.state
	out.Faults = slices.Clone(s.state.Faults)
	for _, fault := range s.found {
		if !slices.Contains(out.Faults, fault) {
			out.Faults = append(out.Faults, fault)
		}
	}
	return out
}

func (s *Scrub) addFault(format string, args ...any) {
	fault := fmt.Sprintf(format, args...)
	s.mu.Lock()
	known := slices.Contains(s.found, fault) || len(s.found) == maxFaults
	if !known {
		s.found = append(s.found, fault)
	}
	s.mu.Unlock()
	if !known {
		s.log(fault)
	}
}

// Next checks one slice, and reports whether it was the last of a round. After an error the next call
// goes on behind the part that could not be read.
func (s *Scrub) Next(ctx context.Context) (done bool, err error) {
	if s.tables == nil {
		return false, s.startRound(ctx)
	}
	if len(s.tables) > 0 {
		return false, s.checkTable(ctx, &s.tables[0])
	}
	done, err = s.checkRooms(ctx, time.Now().Add(s.slice))
	if err != nil && ctx.Err() == nil {
		// Skip the conversation, because the others may be readable.
		if sqlite.IsDamaged(err) {
			s.addFault("Conversation %s cannot be read after message %d: %v.", s.room.id, s.room.seq, err)
			err = nil
		}
		s.room.seq, s.room.hash = 1<<62, nil
	}
	if !done || err != nil {
		return false, err
	}
	s.mu.Lock()
	s.state = ScrubState{s.found, clock.Now()}
	s.found = nil
	s.mu.Unlock()
	s.tables, s.room = nil, scrubRoom{}
	return true, nil
}

func (s *Scrub) startRound(ctx context.Context) error {
	tables := []scrubTable{}
	for _, f := range s.files {
		names, err := f.Tables(ctx)
		if err != nil {
			return fmt.Errorf("list the tables of %s: %w", f.Path(), err)
		}
		for _, name := range names {
			tables = append(tables, scrubTable{db: f, name: name})
		}
	}
	s.tables = tables
	return nil
}

// checkTable checks the pages of a table and its indexes, or, if that takes longer than a slice, some of
// its rows.
func (s *Scrub) checkTable(ctx context.Context, t *scrubTable) error {
	var faults []string
	var err error
	if !t.long {
		bounded, cancel := context.WithTimeout(ctx, s.slice)
		faults, err = t.db.CheckTable(bounded, t.name)
		t.long = bounded.Err() != nil && err != nil
		cancel()
		if t.long {
			return ctx.Err()
		}
	} else if s.key, err = t.db.ReadTable(ctx, t.name, s.key, time.Now().Add(s.slice)); err == nil && s.key != nil {
		return nil
	}
	if err != nil && sqlite.IsDamaged(err) {
		faults, err = []string{err.Error()}, nil
	}
	for _, fault := range faults {
		s.addFault("%s, table %s: %s.", filepath.Base(t.db.Path()), t.name, fault)
		t.db.MarkDamaged()
	}
	s.tables, s.key = s.tables[1:], nil
	return err
}

// checkRooms checks the chains of conversations until a point in time. It reports whether the last one
// was checked.
func (s *Scrub) checkRooms(ctx context.Context, until time.Time) (done bool, err error) {
	if s.db == nil {
		return true, nil // PostgreSQL checks its own pages.
	}
	for !done && err == nil {
		err = s.db.ReadTx(ctx, func(tx *sqlx.Tx) error {
			done, err = s.checkRoom(ctx, tx)
			return err
		})
		if time.Now().After(until) {
			break
		}
	}
	return done, err
}

// noteReanchored begins the present conversation anew if the hash of the last checked message is another one now:
// messages were erased since then, and those that stay have new hashes.
func (s *Scrub) noteReanchored(ctx context.Context, tx *sqlx.Tx) error {
	p := &s.room
	if p.hash == nil {
		return nil
	}
	var now []byte
	err := tx.GetContext(ctx, &now, `SELECT hash FROM messages WHERE conversation_id = ? AND seq = ?`, p.id, p.seq)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil && !bytes.Equal(now, p.hash) {
		p.seq, p.hash = 0, nil
	}
	return err
}

// checkRoom checks the next messages of the present conversation, or goes to the next one. It reports
// whether there is none.
func (s *Scrub) checkRoom(ctx context.Context, tx *sqlx.Tx) (last bool, err error) {
	p := &s.room
	if err := s.noteReanchored(ctx, tx); err != nil {
		return false, err
	}
	var h headRow
	err = tx.GetContext(ctx, &h, `SELECT id, title, last_seq, head_hash FROM conversations WHERE id = ?`, p.id)
	if errors.Is(err, sql.ErrNoRows) || err == nil && p.seq >= h.LastSeq {
		if err == nil && p.seq == h.LastSeq && p.seq > 0 && !bytes.Equal(p.hash, h.HeadHash) {
			s.addFault("%s: its last message is not the one that was said last (the hash at its head differs).", h)
		}
		err = tx.GetContext(ctx, &p.id, `SELECT id FROM conversations WHERE id > ? ORDER BY id LIMIT 1`, p.id)
		p.seq, p.hash = 0, nil
		if errors.Is(err, sql.ErrNoRows) {
			return true, nil
		}
		return false, err
	}
	if err != nil {
		return false, err
	}
	before := p.seq
	broken := ""
	err = sqlite.EachRow(ctx, tx, func(m chats.MessageRow) {
		switch {
		case broken != "":
		case m.Seq != p.seq+1:
			broken = fmt.Sprintf("message %d follows message %d, so some are missing", m.Seq, p.seq)
		case !bytes.Equal(transcript.Chain(p.hash, m.Entry()), m.Hash):
			broken = fmt.Sprintf("message %d is not what was said there (its hash does not follow from the messages before it)", m.Seq)
		}
		p.seq, p.hash = m.Seq, m.Hash
	}, `SELECT conversation_id, seq, id, sender_kind, sender_id, sender_handle, kind, body, task_id, task_state, reason, created_at, hash, target, gone_seq, body_hash, salt
		FROM messages WHERE conversation_id = ? AND seq > ? ORDER BY seq LIMIT ?`, p.id, p.seq, scrubRows)
	if err == nil && broken == "" && (p.seq == before || p.seq > h.LastSeq) {
		broken = fmt.Sprintf("it should end with message %d but ends with %d", h.LastSeq, p.seq)
	}
	if broken != "" {
		s.addFault("%s: %s.", h, broken)
		p.seq, p.hash = 1<<62, nil // The rest follows from it: go on with the next conversation.
	}
	return false, err
}

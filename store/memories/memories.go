// Package memories stores the memories of agents. It implements memory.Store.
package memories

import (
	"context"
	"errors"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
	"agentsite/store/engine"
	"agentsite/store/quotas"
)

// Memories is the table memories.
type Memories struct {
	db    engine.DB
	quota *quotas.Quotas
}

var _ memory.Store = (*Memories)(nil)

// New returns the store of memories in a database.
func New(db engine.DB, q *quotas.Quotas) *Memories { return &Memories{db, q} }

type row struct {
	ID             string `db:"id"`
	PersonID       string `db:"person_id"`
	AgentID        string `db:"agent_id"`
	Agent          string `db:"agent"`
	RoomID         string `db:"room_id"`
	ConversationID string `db:"conversation_id"`
	Seq            int64  `db:"seq"`
	Text           string `db:"text"`
	Distilled      bool   `db:"distilled"`
	Binding        string `db:"binding"`
	CreatedAt      int64  `db:"created_at"`
	UsedAt         int64  `db:"used_at"`
}

func (r row) memory() memory.Memory {
	return memory.Memory{ID: r.ID, Place: memory.Place{PersonID: r.PersonID, AgentID: r.AgentID, RoomID: r.RoomID},
		Agent: r.Agent, Text: r.Text, ConversationID: r.ConversationID, Seq: r.Seq, Distilled: r.Distilled,
		Binding: r.Binding, CreatedAt: clock.FromMilli(r.CreatedAt), UsedAt: clock.FromMilli(r.UsedAt)}
}

const selectRows = `SELECT m.id, m.person_id, m.agent_id, a.name AS agent, m.room_id, m.conversation_id, m.seq, m.text,
	m.distilled, m.binding, m.created_at, m.used_at FROM memories m JOIN agents a ON a.id = m.agent_id `

// rowBytes are the bytes that a memory counts besides its text, as in the triggers.
const rowBytes = 300

// PutMemories implements memory.Store.
func (d *Memories) PutMemories(ctx context.Context, list []memory.Memory, b memory.Bounds) (added []memory.Memory,
	dropped []string, err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		added, dropped = nil, nil
		if len(list) == 0 {
			return nil
		}
		room, err := roomOf(t, list[0], b)
		if err != nil {
			return err
		}
		for _, m := range list {
			res, err := t.Exec(`UPDATE memories SET used_at = ? WHERE person_id = ? AND agent_id = ? AND room_id = ?
				AND text = ?`, clock.Milli(m.UsedAt), m.PersonID, m.AgentID, m.RoomID, m.Text)
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n > 0 {
				if err != nil {
					return err
				}
				continue
			}
			gone, err := room.dropUnused(t, m)
			if err != nil {
				return err
			}
			dropped = append(dropped, gone...)
			if err := d.quota.CheckRoom(t, string(ident.Person), m.PersonID, int64(len(m.Text)+rowBytes)); err != nil {
				return err
			}
			if _, err := t.Exec(`INSERT INTO memories (id, person_id, agent_id, room_id, conversation_id, seq, text,
				distilled, binding, created_at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, m.ID, m.PersonID,
				m.AgentID, m.RoomID, m.ConversationID, m.Seq, m.Text, m.Distilled, m.Binding, clock.Milli(m.CreatedAt),
				clock.Milli(m.UsedAt)); err != nil {
				return err
			}
			added = append(added, m)
		}
		return nil
	})
	return added, dropped, engine.MapError(err)
}

// room is how many more memories fit into a place and for its person.
type room struct{ place, person int }

func roomOf(t engine.Tx, m memory.Memory, b memory.Bounds) (r room, err error) {
	var place, person int
	if err := t.Get(&place, `SELECT COUNT(*) FROM memories WHERE person_id = ? AND agent_id = ? AND room_id = ?`,
		m.PersonID, m.AgentID, m.RoomID); err != nil {
		return r, err
	}
	err = t.Get(&person, `SELECT COUNT(*) FROM memories WHERE person_id = ?`, m.PersonID)
	return room{b.Place - place, b.Person - person}, err
}

// dropUnused takes the room for one memory. If there is none, it deletes those of the place that were not used for the
// longest time, or those of the person in all places.
func (r *room) dropUnused(t engine.Tx, m memory.Memory) (dropped []string, err error) {
	r.place, r.person = r.place-1, r.person-1
	switch {
	case r.place < 0:
		err = t.List(&dropped, `SELECT id FROM memories WHERE person_id = ? AND agent_id = ? AND room_id = ?
			ORDER BY used_at, id LIMIT ?`, m.PersonID, m.AgentID, m.RoomID, -r.place)
		r.place += len(dropped)
	case r.person < 0:
		err = t.List(&dropped, `SELECT id FROM memories WHERE person_id = ? ORDER BY used_at, id LIMIT ?`, m.PersonID,
			-r.person)
	}
	r.person += len(dropped)
	for _, id := range dropped {
		if err == nil {
			_, err = t.Exec(`DELETE FROM memories WHERE id = ?`, id)
		}
	}
	return dropped, err
}

// MemoriesOf implements memory.Store.
func (d *Memories) MemoriesOf(ctx context.Context, personID string, f memory.Filter) ([]memory.Memory, error) {
	query, args := selectRows+`WHERE m.person_id = ?`, []any{personID}
	if f.Agent != "" {
		query += ` AND a.name = ?`
		args = append(args, f.Agent)
	}
	if f.Before != "" {
		query += ` AND m.id < ?`
		args = append(args, f.Before)
	}
	return d.list(ctx, query+` ORDER BY m.id DESC LIMIT ?`, append(args, f.Limit)...)
}

func (d *Memories) list(ctx context.Context, query string, args ...any) ([]memory.Memory, error) {
	var list []row
	if err := d.db.List(ctx, &list, query, args...); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]memory.Memory, len(list))
	for i, r := range list {
		out[i] = r.memory()
	}
	return out, nil
}

// MemoriesByID implements memory.Store.
func (d *Memories) MemoriesByID(ctx context.Context, ids []string) ([]memory.Memory, error) {
	if len(ids) == 0 {
		return []memory.Memory{}, nil
	}
	query := selectRows + `WHERE m.id IN (` + marks(len(ids)) + `)`
	return d.list(ctx, query, anyOf(ids)...)
}

// marks returns placeholders for at least n values, of which there are few numbers, because statements stay prepared.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", roundUp(n)), ", ") }

func roundUp(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}

// anyOf returns the values for marks; the last one is repeated.
func anyOf(ids []string) []any {
	out := make([]any, roundUp(len(ids)))
	for i := range out {
		out[i] = ids[min(i, len(ids)-1)]
	}
	return out
}

// MemoriesAt implements memory.Store.
func (d *Memories) MemoriesAt(ctx context.Context, p memory.Place) ([]memory.Memory, error) {
	if p.RoomID != "" {
		return d.list(ctx, selectRows+`WHERE m.room_id = ? AND m.agent_id = ? ORDER BY m.id`, p.RoomID, p.AgentID)
	}
	return d.list(ctx, selectRows+`WHERE m.person_id = ? AND m.agent_id = ? AND m.room_id = '' ORDER BY m.id`,
		p.PersonID, p.AgentID)
}

// EachText implements memory.Store.
func (d *Memories) EachText(ctx context.Context, personID, roomID, agentID string, yield func(memory.Memory)) error {
	query, args := `SELECT id, person_id, agent_id, room_id, text FROM memories WHERE person_id = ?`, []any{personID}
	if roomID != "" {
		query = `SELECT id, person_id, agent_id, room_id, text FROM memories WHERE room_id = ? AND agent_id = ?`
		args = []any{roomID, agentID}
	}
	rows, err := d.db.Rows(ctx, query, args...)
	if err != nil {
		return engine.MapError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.StructScan(&r); err != nil {
			return engine.MapError(d.db.Classify(err))
		}
		yield(r.memory())
	}
	return engine.MapError(d.db.Classify(rows.Err()))
}

// SetMemoryText implements memory.Store.
func (d *Memories) SetMemoryText(ctx context.Context, personID, id, text string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.quota.CheckRoom(t, string(ident.Person), personID, int64(len(text))); err != nil {
			return err
		}
		res, err := t.Exec(`UPDATE memories SET text = ?, distilled = 0 WHERE person_id = ? AND id = ?`, text, personID,
			id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, fault.New(fault.NotFound, "There is no memory with the id %.80q.", id))
		}
		return nil
	}))
}

// DeleteMemories implements memory.Store.
func (d *Memories) DeleteMemories(ctx context.Context, personID string, ids []string) (n int, err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		n = 0
		for _, id := range ids {
			res, err := t.Exec(`DELETE FROM memories WHERE person_id = ? AND id = ?`, personID, id)
			if err != nil {
				return err
			}
			gone, err := res.RowsAffected()
			if err != nil {
				return err
			}
			n += int(gone)
		}
		return nil
	})
	return n, engine.MapError(err)
}

// DeleteMemoriesOf implements memory.Store.
func (d *Memories) DeleteMemoriesOf(ctx context.Context, personID, agent string) (ids []string, err error) {
	err = d.db.Write(ctx, func(t engine.Tx) error {
		ids = nil
		if err := t.List(&ids, `SELECT m.id FROM memories m JOIN agents a ON a.id = m.agent_id
			WHERE m.person_id = ? AND a.name = ?`, personID, agent); err != nil {
			return err
		}
		_, err := t.Exec(`DELETE FROM memories WHERE person_id = ?1
			AND agent_id IN (SELECT id FROM agents WHERE name = ?2)`, personID, agent)
		return err
	})
	return ids, engine.MapError(err)
}

// MarkUsed implements memory.Store.
func (d *Memories) MarkUsed(_ context.Context, ids []string, at time.Time) error {
	d.db.WriteSoon(usedDelay, used{ids, clock.Milli(at)})
	return nil
}

// usedDelay is how long the note of a recall may wait for another write.
const usedDelay = 2 * time.Second

// used notes the recall of memories.
type used struct {
	ids []string
	at  int64
}

// WriteRows implements engine.SoonWrite.
func (u used) WriteRows(t engine.Tx) error {
	for _, id := range u.ids {
		if err := t.Send(`UPDATE memories SET used_at = ? WHERE id = ?`, u.at, id); err != nil {
			return err
		}
	}
	return nil
}

// NoteOutcome implements engine.SoonWrite. A lost note makes a memory look older.
func (used) NoteOutcome(error) {}

// CountMemories implements memory.Store.
func (d *Memories) CountMemories(ctx context.Context, personID, agent string) (n int, err error) {
	err = d.db.Get(ctx, &n, `SELECT COUNT(*) FROM memories WHERE person_id = ?
		AND agent_id = (SELECT id FROM agents WHERE name = ?)`, personID, agent)
	return n, engine.MapError(err)
}

package store

import (
	"context"
	"encoding/json"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// CreateConversation implements chat.Rooms.
func (d *DB) CreateConversation(ctx context.Context, c chat.Conversation, events []chat.Message) error {
	return d.write(ctx, func(t *tx) error {
		at := clock.Milli(c.CreatedAt)
		if _, err := t.exec(`INSERT INTO conversations (id, title, created_at, updated_at) VALUES (?, ?, ?, ?)`, c.ID, c.Title, at, at); err != nil {
			return err
		}
		for _, m := range c.Members {
			if err := t.join(c.ID, m, at); err != nil {
				return err
			}
		}
		for _, e := range events {
			if _, err := t.event(c.ID, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// join adds a member, or lets one who left come back.
func (t *tx) join(id string, m chat.Member, at int64) error {
	_, err := t.exec(`INSERT INTO members (conversation_id, kind, member_id, handle, role, joined_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (conversation_id, kind, member_id) DO UPDATE SET left_at = 0, joined_at = excluded.joined_at, handle = excluded.handle`,
		id, m.Kind, m.ID, m.Handle, m.Role, at)
	return err
}

func (t *tx) event(id string, e chat.Message) (chat.Message, error) {
	body, err := json.Marshal(e.Parts)
	if err != nil {
		return e, err
	}
	e.ConversationID = id
	return t.append(e, string(body), "")
}

type roomRow struct {
	ID        string `db:"id"`
	Title     string `db:"title"`
	LastSeq   int64  `db:"last_seq"`
	CreatedAt int64  `db:"created_at"`
	UpdatedAt int64  `db:"updated_at"`
	ReadSeq   int64  `db:"read_seq"`
	Body      string `db:"body"`
}

func (r roomRow) conversation() chat.Conversation {
	return chat.Conversation{ID: r.ID, Title: r.Title, LastSeq: r.LastSeq, CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt), ReadSeq: r.ReadSeq}
}

type memberRow struct {
	ConversationID string `db:"conversation_id"`
	Kind           string `db:"kind"`
	ID             string `db:"member_id"`
	Handle         string `db:"handle"`
	Role           string `db:"role"`
	Spec           string `db:"spec"`
	AgentKind      string `db:"agent_kind"`
}

// memberQuery reads present members with what is needed to say where an
// agent's text goes.
const memberQuery = `SELECT m.conversation_id, m.kind, m.member_id, m.handle, m.role, COALESCE(a.spec, '') AS spec, COALESCE(a.kind, '') AS agent_kind
	FROM members m LEFT JOIN agents a ON m.kind = 'agent' AND a.id = m.member_id
	WHERE m.left_at = 0 AND m.conversation_id `

func (r memberRow) member() chat.Member {
	m := chat.Member{Kind: r.Kind, ID: r.ID, Handle: r.Handle, Role: r.Role}
	if r.AgentKind != "" && r.AgentKind != "builtin" {
		var s agentSpec
		if json.Unmarshal([]byte(r.Spec), &s) == nil {
			m.Remote = hostOf(s.Endpoint)
		}
	}
	return m
}

// Room implements chat.Rooms.
func (d *DB) Room(ctx context.Context, id, memberKind, memberID string) (chat.Conversation, error) {
	var r roomRow
	err := d.get(ctx, &r, `SELECT c.id, c.title, c.last_seq, c.created_at, c.updated_at, m.read_seq, '' AS body
		FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.conversation_id = ? AND m.kind = ? AND m.member_id = ? AND m.left_at = 0`, id, memberKind, memberID)
	if err != nil {
		return chat.Conversation{}, mapError(err)
	}
	c := r.conversation()
	var members []memberRow
	if err := d.list(ctx, &members, memberQuery+`= ? ORDER BY m.joined_at, m.kind DESC, m.handle`, id); err != nil {
		return chat.Conversation{}, mapError(err)
	}
	for _, m := range members {
		c.Members = append(c.Members, m.member())
	}
	return c, nil
}

// Members implements chat.Rooms. They are remembered, because every message
// begins with them.
func (d *DB) Members(ctx context.Context, id string) ([]chat.Member, error) {
	list, age, ok := d.members.get(id)
	if ok {
		return list, nil
	}
	var rows []memberRow
	if err := d.list(ctx, &rows, `SELECT kind, member_id, handle, role FROM members
		WHERE conversation_id = ? AND left_at = 0
		ORDER BY joined_at, kind DESC, handle`, id); err != nil {
		return nil, mapError(err)
	}
	for _, r := range rows {
		list = append(list, r.member())
	}
	if len(list) > 0 { // what is not there takes no room
		d.members.put(id, list, age)
	}
	return list, nil
}

// RoomsOf implements chat.Rooms.
func (d *DB) RoomsOf(ctx context.Context, memberKind, memberID string, before chat.Point, limit int) ([]chat.Conversation, error) {
	at, id := clock.Milli(before.At), before.ID
	if before.At.IsZero() {
		at, id = 1<<62, "~"
	}
	var rows []roomRow
	err := d.list(ctx, &rows, `SELECT c.id, c.title, c.last_seq, c.created_at, c.updated_at, m.read_seq, COALESCE(s.body, '') AS body
		FROM members m JOIN conversations c ON c.id = m.conversation_id
		LEFT JOIN messages s ON s.conversation_id = c.id AND s.seq = c.last_seq
		WHERE m.member_id = ? AND m.kind = ? AND m.left_at = 0 AND (c.updated_at < ? OR c.updated_at = ? AND c.id < ?)
		ORDER BY c.updated_at DESC, c.id DESC LIMIT ?`, memberID, memberKind, at, at, id, min(limit, 200))
	if err != nil {
		return nil, mapError(err)
	}
	out := make([]chat.Conversation, len(rows))
	place := make(map[string]int, len(rows))
	ids := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.conversation()
		var parts []task.Part
		if r.Body != "" && json.Unmarshal([]byte(r.Body), &parts) == nil {
			out[i].Snippet = clip(task.PlainText(parts), 400)
		}
		place[r.ID], ids[i] = i, r.ID
	}
	in, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var members []memberRow
	if err := d.list(ctx, &members, memberQuery+`IN (SELECT value FROM json_each(?)) ORDER BY m.joined_at, m.kind DESC, m.handle`, string(in)); err != nil {
		return nil, mapError(err)
	}
	for _, m := range members {
		c := &out[place[m.ConversationID]]
		c.Members = append(c.Members, m.member())
	}
	return out, nil
}

// Rename implements chat.Rooms.
func (d *DB) Rename(ctx context.Context, id, title string, event chat.Message) (chat.Message, error) {
	return d.roomEvent(ctx, id, event, func(t *tx) error {
		_, err := t.exec(`UPDATE conversations SET title = ? WHERE id = ?`, title, id)
		return err
	})
}

// Join implements chat.Rooms.
func (d *DB) Join(ctx context.Context, id string, m chat.Member, event chat.Message) (chat.Message, error) {
	return d.roomEvent(ctx, id, event, func(t *tx) error { return t.join(id, m, clock.Milli(event.CreatedAt)) })
}

// Leave implements chat.Rooms.
func (d *DB) Leave(ctx context.Context, id, memberKind, memberID string, at time.Time, event chat.Message) (chat.Message, error) {
	return d.roomEvent(ctx, id, event, func(t *tx) error {
		res, err := t.exec(`UPDATE members SET left_at = ?, role = 'member' WHERE conversation_id = ? AND kind = ? AND member_id = ? AND left_at = 0`, clock.Milli(at), id, memberKind, memberID)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.NotFound, "There is no such member.")
		}
		// A room keeps an owner: whoever has been in it longest.
		_, err = t.exec(`UPDATE members SET role = 'owner' WHERE conversation_id = ?1 AND left_at = 0 AND kind <> 'agent'
			AND NOT EXISTS (SELECT 1 FROM members WHERE conversation_id = ?1 AND left_at = 0 AND role = 'owner')
			AND member_id = (SELECT member_id FROM members WHERE conversation_id = ?1 AND left_at = 0 AND kind <> 'agent' ORDER BY joined_at, member_id LIMIT 1)`, id)
		return err
	})
}

func (d *DB) roomEvent(ctx context.Context, id string, e chat.Message, change func(*tx) error) (chat.Message, error) {
	var out chat.Message
	err := d.write(ctx, func(t *tx) error {
		if err := change(t); err != nil {
			return err
		}
		var err error
		out, err = t.event(id, e)
		return err
	})
	return out, err
}

// DeleteRoom implements chat.Rooms.
func (d *DB) DeleteRoom(ctx context.Context, id string) error {
	return d.write(ctx, func(t *tx) error {
		for _, q := range []string{
			`DELETE FROM outbox WHERE topic = 'task' AND ref IN (SELECT id FROM tasks WHERE conversation_id = ?)`,
			`DELETE FROM agent_traces WHERE (agent_id, task_id) IN (SELECT agent_id, id FROM tasks WHERE conversation_id = ?)`,
			`DELETE FROM tasks WHERE conversation_id = ?`,
			`DELETE FROM client_ids WHERE conversation_id = ?`,
			`DELETE FROM messages WHERE conversation_id = ?`,
			`DELETE FROM members WHERE conversation_id = ?`,
			`DELETE FROM conversations WHERE id = ?`,
		} {
			if _, err := t.exec(q, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// MarkRead implements chat.Rooms.
func (d *DB) MarkRead(ctx context.Context, id, memberKind, memberID string, seq int64) error {
	return d.write(ctx, func(t *tx) error {
		_, err := t.exec(`UPDATE members SET read_seq = MAX(read_seq, ?) WHERE conversation_id = ? AND kind = ? AND member_id = ?`, seq, id, memberKind, memberID)
		return err
	})
}

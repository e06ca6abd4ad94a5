package chats

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/agents"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

type memberRow struct {
	ConversationID string `db:"conversation_id"`
	Kind           string `db:"kind"`
	ID             string `db:"member_id"`
	Handle         string `db:"handle"`
	Role           string `db:"role"`
	FromSeq        int64  `db:"from_seq"`
	ReadSeq        int64  `db:"read_seq"`
	Spec           string `db:"spec"`
	AgentKind      string `db:"agent_kind"`
	Elsewhere      string `db:"elsewhere"`
}

// memberQuery reads present members with the fields that decide to which host an agent's text goes.
const memberQuery = `SELECT m.conversation_id, m.kind, m.member_id, m.handle, m.role, m.from_seq, m.read_seq, COALESCE(a.spec, '') AS spec, COALESCE(a.kind, '') AS agent_kind, COALESCE(e.host, '') AS elsewhere
	FROM members m LEFT JOIN agents a ON m.kind = 'agent' AND a.id = m.member_id LEFT JOIN elsewhere e ON e.agent_id = a.id
	WHERE m.left_at = 0 AND m.conversation_id `

func (r memberRow) member() chat.Member {
	m := chat.Member{Kind: r.Kind, ID: r.ID, Handle: r.Handle, Role: r.Role, FromSeq: r.FromSeq, ReadSeq: r.ReadSeq}
	if m.Remote = r.Elsewhere; m.Remote == "" && r.AgentKind != "" && r.AgentKind != "builtin" {
		var s agents.AgentSpec
		if json.Unmarshal([]byte(r.Spec), &s) == nil {
			m.Remote = rows.HostOf(s.Endpoint)
		}
	}
	return m
}

// Members implements chat.Rooms. The list is cached, because every message needs it.
func (d *Chats) Members(ctx context.Context, id string) ([]chat.Member, error) {
	list, generation, ok := d.members.Get(id)
	if ok {
		return list, nil
	}
	var rows []memberRow
	if err := d.db.List(ctx, &rows, `SELECT kind, member_id, handle, role, from_seq FROM members
		WHERE conversation_id = ? AND left_at = 0
		ORDER BY joined_at, kind DESC, handle`, id); err != nil {
		return nil, engine.MapError(err)
	}
	for _, r := range rows {
		list = append(list, r.member())
	}
	if len(list) > 0 { // Do not cache an empty list: the conversation may not exist, and any id can be asked for.
		d.members.Put(id, list, generation)
	}
	return list, nil
}

// insertMember adds a member, or restores a former one with the new role; a reader stays one, because an
// owner decided so. A present member keeps role and visible messages.
func (d *Chats) insertMember(t engine.Tx, id string, m chat.Member, at int64) error {
	d.members.Invalidate(t)
	_, err := t.Exec(`INSERT INTO members (conversation_id, kind, member_id, handle, role, joined_at, from_seq)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, CASE WHEN ?7 < 0 THEN (SELECT last_seq FROM conversations WHERE id = ?1) ELSE ?7 END)
		ON CONFLICT (conversation_id, kind, member_id) DO UPDATE SET left_at = 0, handle = excluded.handle,
			joined_at = CASE members.left_at WHEN 0 THEN members.joined_at ELSE excluded.joined_at END,
			role = CASE WHEN members.left_at = 0 OR members.role = 'reader' THEN members.role ELSE excluded.role END,
			from_seq = CASE members.left_at WHEN 0 THEN members.from_seq ELSE excluded.from_seq END,
			archived_at = CASE members.left_at WHEN 0 THEN members.archived_at ELSE 0 END`,
		id, m.Kind, m.ID, m.Handle, m.Role, at, m.FromSeq)
	return err
}

// Join implements chat.Rooms. More than chat.MaxMembers are a Conflict fault.
func (d *Chats) Join(ctx context.Context, id string, m chat.Member, linkID string, event chat.Message) (chat.Message,
	error) {
	return d.roomEvent(ctx, id, event, func(t engine.Tx) error {
		if linkID != "" {
			if err := countLinkUse(t, id, linkID); err != nil {
				return err
			}
			if err := checkReturn(t, id, &m); err != nil {
				return err
			}
		}
		if err := d.insertMember(t, id, m, clock.Milli(event.CreatedAt)); err != nil {
			return err
		}
		// An invited person who joins by a link, or by a direct addition, needs the invitation no more.
		if m.Kind == "person" {
			if _, err := t.Exec(`DELETE FROM room_invitations WHERE conversation_id = ? AND person_id = ? AND declined_at = 0`,
				id, m.ID); err != nil {
				return err
			}
		}
		return checkFull(t, id)
	})
}

// checkReturn checks a former member who joins by a link: one who was removed needs an invitation (a
// Conflict fault), and a reader stays a reader.
func checkReturn(t engine.Tx, id string, m *chat.Member) error {
	var was struct {
		LeftAt int64  `db:"left_at"`
		Role   string `db:"role"`
	}
	err := t.Get(&was, `SELECT left_at, role FROM members WHERE conversation_id = ? AND kind = ? AND member_id = ?`, id,
		m.Kind, m.ID)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case was.LeftAt < 0:
		return fault.New(fault.Conflict, "You were removed from this conversation. Somebody in it has to invite you.")
	case was.Role == chat.RoleReader:
		m.Role = chat.RoleReader
	}
	return nil
}

// Leave implements chat.Rooms. The time is stored negative if another member removed this one, so that
// checkReturn can refuse a return by link.
func (d *Chats) Leave(ctx context.Context, id, memberKind, memberID string, at time.Time,
	event chat.Message) (chat.Message, error) {
	left := max(clock.Milli(at), 1)
	if event.Sender.ID != memberID {
		left = -left
	}
	return d.roomEvent(ctx, id, event, func(t engine.Tx) error {
		d.members.Invalidate(t)
		if err := changeMember(t, `UPDATE members SET left_at = ?, role = CASE role WHEN 'reader' THEN role ELSE 'member' END WHERE conversation_id = ? AND kind = ? AND member_id = ? AND left_at = 0`,
			left, id, memberKind, memberID); err != nil {
			return err
		}
		if _, err := t.Exec(`DELETE FROM room_invitations WHERE conversation_id = ? AND inviter_id = ? AND declined_at = 0`,
			id, memberID); err != nil {
			return err
		}
		// The next owner is the person who joined first; readers come last.
		_, err := t.Exec(`UPDATE members SET role = 'owner' WHERE conversation_id = ?1 AND left_at = 0 AND kind <> 'agent'
			AND NOT EXISTS (SELECT 1 FROM members WHERE conversation_id = ?1 AND left_at = 0 AND role = 'owner')
			AND (kind, member_id) = (SELECT kind, member_id FROM members WHERE conversation_id = ?1 AND left_at = 0 AND kind <> 'agent'
				ORDER BY role = 'reader', joined_at, member_id LIMIT 1)`, id)
		return err
	})
}

// SetRole implements chat.Rooms. A change that would leave no owner is a Conflict fault.
func (d *Chats) SetRole(ctx context.Context, id, memberKind, memberID, role string, event chat.Message) (chat.Message,
	error) {
	return d.roomEvent(ctx, id, event, func(t engine.Tx) error {
		d.members.Invalidate(t)
		if err := changeMember(t, `UPDATE members SET role = ? WHERE conversation_id = ? AND kind = ? AND member_id = ? AND left_at = 0`,
			role, id, memberKind, memberID); err != nil {
			return err
		}
		var owners int
		if err := t.Get(&owners, `SELECT COUNT(*) FROM members WHERE conversation_id = ? AND left_at = 0 AND role = 'owner'`, id); err != nil {
			return err
		}
		if owners == 0 {
			return fault.New(fault.Conflict, "A conversation keeps an owner: make somebody else its owner first.")
		}
		return nil
	})
}

// ReplaceGuest implements chat.Rooms.
func (d *Chats) ReplaceGuest(ctx context.Context, id, guestID string, m chat.Member,
	event chat.Message) (chat.Message, error) {
	return d.roomEvent(ctx, id, event, func(t engine.Tx) error {
		d.members.Invalidate(t)
		return changeMember(t, `UPDATE members SET kind = ?1, member_id = ?2, handle = ?3
			WHERE conversation_id = ?4 AND kind = 'guest' AND member_id = ?5 AND left_at = 0
			AND NOT EXISTS (SELECT 1 FROM members WHERE conversation_id = ?4 AND kind = ?1 AND member_id = ?2)
			AND NOT EXISTS (SELECT 1 FROM room_invitations WHERE conversation_id = ?4 AND person_id = ?2)`,
			m.Kind, m.ID, m.Handle, id, guestID)
	})
}

// SetMine implements chat.Rooms. A member who left is a NotFound fault.
func (d *Chats) SetMine(ctx context.Context, id, memberKind, memberID string, m chat.Mine) error {
	now := clock.Milli(clock.Now())
	return d.db.Write(ctx, func(t engine.Tx) error {
		return changeMember(t, `UPDATE members SET pinned_at = CASE WHEN ? <> 0 THEN ? ELSE 0 END, archived_at = CASE WHEN ? <> 0 THEN ? ELSE 0 END, notify = ?
			WHERE conversation_id = ? AND kind = ? AND member_id = ? AND left_at = 0`, m.Pinned, now, m.Archived, now,
			string(m.Notify), id, memberKind, memberID)
	})
}

// changeMember runs an update of one present member; NotFound if it changed no row.
func changeMember(t engine.Tx, query string, args ...any) error {
	res, err := t.Exec(query, args...)
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return fault.New(fault.NotFound, "There is no such member.")
	}
	return nil
}

// MarkRead implements chat.Rooms. It does nothing for a missing member.
func (d *Chats) MarkRead(ctx context.Context, id, memberKind, memberID string, seq int64) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE members SET read_seq = MAX(read_seq, ?) WHERE conversation_id = ? AND kind = ? AND member_id = ?`, seq, id, memberKind, memberID)
		return err
	})
}

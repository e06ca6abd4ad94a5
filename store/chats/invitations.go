package chats

import (
	"cmp"
	"context"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/engine"
)

// dayMilli is the length of a day in milliseconds, the unit of invitation_days.
const dayMilli = 24 * 60 * 60 * 1000

// CreateInviting implements chat.Invitations.
func (d *Chats) CreateInviting(ctx context.Context, c chat.Conversation, in chat.Invitees) (chat.Conversation, error) {
	err := d.db.Write(ctx, func(t engine.Tx) error {
		if err := d.beginRoom(t, c, nil); err != nil {
			return err
		}
		for _, m := range in.People {
			if _, err := d.admitPerson(t, c.ID, m, in, "", c.CreatedAt); err != nil {
				return err
			}
		}
		return checkFull(t, c.ID)
	})
	if err != nil {
		return c, err
	}
	owner := c.Members[0]
	return d.Room(ctx, c.ID, owner.Kind, owner.ID)
}

// InvitePerson implements chat.Invitations.
func (d *Chats) InvitePerson(ctx context.Context, id string, in chat.Invitees, joined, invited chat.Message) (chat.Member,
	chat.Message, error) {
	m := in.People[0]
	var e chat.Message
	err := d.db.Write(ctx, func(t engine.Tx) error {
		m, e = in.People[0], chat.Message{}
		var now struct {
			Inviter string `db:"inviter"`
			Here    bool   `db:"here"`
			Member  bool   `db:"member"`
		}
		if err := t.Get(&now, `SELECT EXISTS (SELECT 1 FROM members m WHERE m.conversation_id = c.id AND m.kind = 'person' AND m.member_id = ?2 AND m.left_at = 0) AS here,
				EXISTS (SELECT 1 FROM members m
					WHERE m.conversation_id = c.id AND m.kind = 'person' AND m.member_id = ?3 AND m.left_at = 0) AS member,
				COALESCE((SELECT i.inviter_id FROM room_invitations i WHERE i.conversation_id = c.id AND i.person_id = ?2 AND i.declined_at = 0 LIMIT 1), '') AS inviter
			FROM conversations c WHERE c.id = ?1`, id, m.ID, in.By.ID); err != nil {
			return err
		}
		if !now.Member { // The inviter was removed at this moment.
			return fault.New(fault.NotFound, "There is no such conversation.")
		}
		if now.Here {
			return nil
		}
		var err error
		if m, err = d.admitPerson(t, id, m, in, now.Inviter, invited.CreatedAt); err != nil {
			return err
		}
		if now.Inviter != "" && m.InviterID != "" {
			return nil
		}
		if err := checkFull(t, id); err != nil {
			return err
		}
		if m.InviterID == "" {
			e, err = d.appendEvent(t, id, joined)
		} else {
			e, err = d.appendEvent(t, id, invited)
		}
		if m.FromSeq < 0 {
			m.FromSeq = e.Seq - 1
		}
		return err
	})
	return m, e, engine.MapError(err)
}

// admitPerson makes m a member or stores an invitation of in.By and a notice, unless pending, the inviter of
// an unanswered invitation, is set. It returns m with InviterID set if m is only invited.
func (d *Chats) admitPerson(t engine.Tx, id string, m chat.Member, in chat.Invitees, pending string,
	at time.Time) (chat.Member, error) {
	now := clock.Milli(at)
	var s struct {
		Accepted  bool `db:"accepted"`
		Blocked   bool `db:"blocked"`
		Left      bool `db:"left_self"`
		Declined  bool `db:"declined"`
		Pending   int  `db:"pending"`
		PendingBy int  `db:"pending_by"`
		Sent      int  `db:"sent"`
		Rooms     int  `db:"rooms"`
	}
	if err := t.Get(&s, `SELECT
			EXISTS (SELECT 1 FROM accepted_inviters WHERE person_id = ?1 AND inviter_id = ?2) AS accepted,
			EXISTS (SELECT 1 FROM blocks WHERE person_id = ?1 AND blocked_id = ?2) AS blocked,
			EXISTS (SELECT 1 FROM members WHERE conversation_id = ?3 AND kind = 'person' AND member_id = ?1 AND left_at > 0) AS left_self,
			EXISTS (SELECT 1 FROM room_invitations WHERE conversation_id = ?3 AND person_id = ?1 AND inviter_id = ?2 AND declined_at > 0) AS declined,
			(SELECT COUNT(*) FROM room_invitations WHERE person_id = ?1 AND declined_at = 0) AS pending,
			(SELECT COUNT(*) FROM room_invitations
				WHERE person_id = ?1 AND inviter_id = ?2 AND declined_at = 0) AS pending_by,
			(SELECT COUNT(*) FROM (SELECT 1 FROM members
				WHERE member_id = ?1 AND kind = 'person' AND left_at = 0 LIMIT ?5) AS few) AS rooms,
			COALESCE((SELECT sent FROM invitation_days WHERE inviter_id = ?2 AND day = ?4), 0) AS sent`,
		m.ID, in.By.ID, id, now/dayMilli, in.Limits.FreelyAdded()); err != nil {
		return m, err
	}
	if m.InviterID = pending; pending != "" && !s.Accepted {
		return m, nil // Another answer would betray a block.
	}
	direct, err := chat.Standing(s).Admit(m.Handle, in.Limits, at)
	if err != nil {
		return m, err
	}
	if direct {
		m.InviterID = ""
		if _, err := t.Exec(`DELETE FROM room_invitations WHERE conversation_id = ? AND person_id = ? AND declined_at = 0`,
			id, m.ID); err != nil {
			return m, err
		}
		if err := d.insertMember(t, id, m, now); err != nil {
			return m, err
		}
		return m, d.hooks.NotifyAdded(t, m.ID, in.By.Handle, "/chat/"+id, at)
	}
	if m.InviterID = cmp.Or(pending, in.By.ID); pending != "" {
		return m, nil
	}
	if _, err := t.Exec(`INSERT INTO room_invitations (conversation_id, person_id, inviter_id, handle, inviter_handle, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
		id, m.ID, in.By.ID, m.Handle, in.By.Handle, now); err != nil {
		return m, err
	}
	if _, err := t.Exec(`DELETE FROM invitation_days WHERE inviter_id = ? AND day < ?`, in.By.ID, now/dayMilli); err != nil {
		return m, err
	}
	if _, err := t.Exec(`INSERT INTO invitation_days (inviter_id, day, sent) VALUES (?, ?, 1)
		ON CONFLICT (inviter_id, day) DO UPDATE SET sent = invitation_days.sent + 1`, in.By.ID, now/dayMilli); err != nil {
		return m, err
	}
	return m, d.hooks.NotifyInvited(t, m.ID, in.By.Handle, at)
}

// checkFull returns a Conflict fault if a conversation has more than chat.MaxMembers members and invited
// people.
func checkFull(t engine.Tx, id string) error {
	var n int
	if err := t.Get(&n, `SELECT (SELECT COUNT(*) FROM members WHERE conversation_id = ?1 AND left_at = 0)
		+ (SELECT COUNT(DISTINCT person_id) FROM room_invitations WHERE conversation_id = ?1 AND declined_at = 0)`,
		id); err != nil {
		return err
	}
	if n > chat.MaxMembers {
		return fault.New(fault.Conflict, "A conversation has at most %d members, with those who are invited.",
			chat.MaxMembers)
	}
	return nil
}

type invitedRow struct {
	ConversationID string `db:"conversation_id"`
	PersonID       string `db:"person_id"`
	Handle         string `db:"handle"`
	InviterID      string `db:"inviter_id"`
}

func (r invitedRow) member() chat.Member {
	return chat.Member{Kind: "person", ID: r.PersonID, Handle: r.Handle, Role: chat.RoleMember, InviterID: r.InviterID}
}

// invitedQuery reads the invited people of conversations; a condition on conversation_id follows.
const invitedQuery = `SELECT conversation_id, person_id, handle, inviter_id FROM room_invitations
	WHERE declined_at = 0 AND conversation_id `

// Invited implements chat.Invitations.
func (d *Chats) Invited(ctx context.Context, id string) ([]chat.Member, error) {
	var rows []invitedRow
	if err := d.db.List(ctx, &rows, invitedQuery+`= ? ORDER BY created_at, handle`, id); err != nil {
		return nil, engine.MapError(err)
	}
	var out []chat.Member
	for _, r := range rows {
		out = append(out, r.member())
	}
	return out, nil
}

// pendingQuery is a constant of its own because a test checks its query plan.
const pendingQuery = `SELECT i.conversation_id, c.title, i.inviter_id, i.inviter_handle, i.created_at,
		(SELECT COUNT(*) FROM members m WHERE m.conversation_id = i.conversation_id AND m.left_at = 0) AS members
	FROM room_invitations i JOIN conversations c ON c.id = i.conversation_id
	WHERE i.person_id = ? AND i.declined_at = 0 ORDER BY i.created_at DESC, i.conversation_id DESC LIMIT ?`

// maxPending bounds the list of invitations. A limit of pending invitations above it makes no sense.
const maxPending = 1000

// InvitationsOf implements chat.Invitations.
func (d *Chats) InvitationsOf(ctx context.Context, personID string) ([]chat.PendingInvitation, error) {
	var rows []struct {
		ConversationID string `db:"conversation_id"`
		Title          string `db:"title"`
		InviterID      string `db:"inviter_id"`
		Inviter        string `db:"inviter_handle"`
		CreatedAt      int64  `db:"created_at"`
		Members        int    `db:"members"`
	}
	if err := d.db.List(ctx, &rows, pendingQuery, personID, maxPending); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]chat.PendingInvitation, len(rows))
	for i, r := range rows {
		out[i] = chat.PendingInvitation{ConversationID: r.ConversationID, Title: r.Title, InviterID: r.InviterID,
			Inviter: r.Inviter, Members: r.Members, CreatedAt: clock.FromMilli(r.CreatedAt)}
	}
	return out, nil
}

// AcceptInvitation implements chat.Invitations.
func (d *Chats) AcceptInvitation(ctx context.Context, id string, person chat.Member, event chat.Message) (chat.Message,
	error) {
	at := clock.Milli(event.CreatedAt)
	return d.roomEvent(ctx, id, event, func(t engine.Tx) error {
		if _, err := t.Exec(`INSERT INTO accepted_inviters (person_id, inviter_id, accepted_at)
			SELECT person_id, inviter_id, ? FROM room_invitations WHERE conversation_id = ? AND person_id = ? AND declined_at = 0
			ON CONFLICT (person_id, inviter_id) DO NOTHING`, at, id, person.ID); err != nil {
			return err
		}
		if err := changeInvitation(t, `DELETE FROM room_invitations WHERE conversation_id = ? AND person_id = ? AND declined_at = 0`,
			id, person.ID); err != nil {
			return err
		}
		if err := d.insertMember(t, id, person, at); err != nil {
			return err
		}
		return checkFull(t, id)
	})
}

// DeclineInvitation implements chat.Invitations.
func (d *Chats) DeclineInvitation(ctx context.Context, id, personID string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		return changeInvitation(t, `UPDATE room_invitations SET declined_at = ? WHERE conversation_id = ? AND person_id = ? AND declined_at = 0`,
			max(clock.Milli(clock.Now()), 1), id, personID)
	})
}

// WithdrawInvitation implements chat.Invitations.
func (d *Chats) WithdrawInvitation(ctx context.Context, id, personID string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		return changeInvitation(t, `DELETE FROM room_invitations WHERE conversation_id = ? AND person_id = ? AND declined_at = 0`,
			id, personID)
	})
}

// changeInvitation runs a change of a pending invitation; NotFound if it changed no row.
func changeInvitation(t engine.Tx, query string, args ...any) error {
	res, err := t.Exec(query, args...)
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return fault.New(fault.NotFound, "There is no such invitation. It was answered or withdrawn, or never sent.")
	}
	return nil
}

// CountRooms implements chat.Invitations.
func (d *Chats) CountRooms(ctx context.Context, personID string, most int) (n int, err error) {
	err = d.db.Get(ctx, &n, `SELECT COUNT(*) FROM (SELECT 1 FROM members WHERE member_id = ? AND kind = 'person' AND left_at = 0 LIMIT ?) AS few`,
		personID, most)
	return n, engine.MapError(err)
}

// Blocks implements chat.Invitations.
func (d *Chats) Blocks(ctx context.Context, personID string) ([]chat.Block, error) {
	var rows []struct {
		BlockedID string `db:"blocked_id"`
		Handle    string `db:"handle"`
		CreatedAt int64  `db:"created_at"`
	}
	if err := d.db.List(ctx, &rows, `SELECT blocked_id, handle, created_at FROM blocks WHERE person_id = ? ORDER BY handle, blocked_id LIMIT ?`,
		personID, chat.MaxBlocks); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]chat.Block, len(rows))
	for i, r := range rows {
		out[i] = chat.Block{ID: r.BlockedID, Handle: r.Handle, CreatedAt: clock.FromMilli(r.CreatedAt)}
	}
	return out, nil
}

// Block implements chat.Invitations.
func (d *Chats) Block(ctx context.Context, personID string, b chat.Block) error {
	at := max(clock.Milli(b.CreatedAt), 1)
	return d.db.Write(ctx, func(t engine.Tx) error {
		d.blockers.InvalidateKey(t, b.ID)
		if _, err := t.Exec(`INSERT INTO blocks (person_id, blocked_id, handle, created_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (person_id, blocked_id) DO NOTHING`, personID, b.ID, b.Handle, at); err != nil {
			return err
		}
		var n int
		if err := t.Get(&n, `SELECT COUNT(*) FROM blocks WHERE person_id = ?`, personID); err != nil {
			return err
		}
		if n > chat.MaxBlocks {
			return fault.New(fault.Conflict, "An account can block at most %d people. Unblock some first.", chat.MaxBlocks)
		}
		if _, err := t.Exec(`DELETE FROM accepted_inviters WHERE person_id = ? AND inviter_id = ?`, personID, b.ID); err != nil {
			return err
		}
		_, err := t.Exec(`UPDATE room_invitations SET declined_at = ? WHERE person_id = ? AND inviter_id = ? AND declined_at = 0`,
			at, personID, b.ID)
		return err
	})
}

// Unblock implements chat.Invitations.
func (d *Chats) Unblock(ctx context.Context, personID, blockedID string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		d.blockers.InvalidateKey(t, blockedID)
		_, err := t.Exec(`DELETE FROM blocks WHERE person_id = ? AND blocked_id = ?`, personID, blockedID)
		return err
	})
}

// InvalidatePeople drops cached blocks and members, for a transaction that erases a person.
func (d *Chats) InvalidatePeople(t engine.Tx) {
	d.blockers.Invalidate(t)
	d.members.Invalidate(t)
}

// BlockersOf implements chat.Invitations. The list is cached, because messages between two people need it.
func (d *Chats) BlockersOf(ctx context.Context, personID string) ([]string, error) {
	list, generation, ok := d.blockers.Get(personID)
	if ok {
		return list, nil
	}
	if err := d.db.List(ctx, &list, `SELECT person_id FROM blocks WHERE blocked_id = ? ORDER BY person_id`,
		personID); err != nil {
		return nil, engine.MapError(err)
	}
	d.blockers.Put(personID, list, generation)
	return list, nil
}

package hooks

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/store/engine"
)

// Inbox stores the notices of accounts, which the account's page lists. It implements hub.Notices.
type Inbox struct {
	db    engine.DB
	hooks *Hooks
}

// NewInbox returns the notices, which hooks queues for browsers.
func NewInbox(db engine.DB, hooks *Hooks) *Inbox { return &Inbox{db, hooks} }

// maxNotices is the number of notices kept for each account; older ones are deleted.
const maxNotices = 200

// AddNotice implements hub.Notices. It deletes the account's oldest notices beyond maxNotices.
func (d *Inbox) AddNotice(ctx context.Context, n hub.Notice) error {
	return d.db.Write(ctx, func(t engine.Tx) error { return d.hooks.insertNotice(t, n) })
}

// insertNotice stores a notice unless the account switched off its kind, and queues it for the account's browsers.
func (d *Hooks) insertNotice(t engine.Tx, n hub.Notice) error {
	var muted bool
	if err := t.Get(&muted, `SELECT EXISTS (SELECT 1 FROM profiles WHERE account_id = ?
		AND ' ' || muted || ' ' LIKE '% ' || ? || ' %')`, n.AccountID, n.Kind); err != nil || muted {
		return err
	}
	if _, err := t.Exec(`INSERT INTO notices (id, account_id, kind, subject, text, href, created_at, read_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		n.ID, n.AccountID, n.Kind, n.Subject, n.Text, n.Href, clock.Milli(n.CreatedAt),
		clock.Milli(n.ReadAt)); err != nil {
		return err
	}
	if err := d.queuePushes(t, n.ID, n.AccountID); err != nil {
		return err
	}
	_, err := t.Exec(`DELETE FROM notices WHERE account_id = ?1 AND id <= (SELECT id FROM notices WHERE account_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`, n.AccountID, maxNotices)
	return err
}

// Notices implements hub.Notices. It returns the newest first.
func (d *Inbox) Notices(ctx context.Context, accountID string, limit int) ([]hub.Notice, error) {
	var rows []struct {
		ID        string `db:"id"`
		Kind      string `db:"kind"`
		Subject   string `db:"subject"`
		Text      string `db:"text"`
		Href      string `db:"href"`
		CreatedAt int64  `db:"created_at"`
		ReadAt    int64  `db:"read_at"`
	}
	if err := d.db.List(ctx, &rows, `SELECT id, kind, subject, text, href, created_at, read_at FROM notices WHERE account_id = ? ORDER BY id DESC LIMIT ?`, accountID, limit); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Notice, len(rows))
	for i, r := range rows {
		out[i] = hub.Notice{ID: r.ID, AccountID: accountID, Kind: r.Kind, Subject: r.Subject, Text: r.Text,
			Href:      r.Href,
			CreatedAt: clock.FromMilli(r.CreatedAt), ReadAt: clock.FromMilli(r.ReadAt)}
	}
	return out, nil
}

// Unread implements hub.Notices. It counts the notices that MarkNotices has not marked.
func (d *Inbox) Unread(ctx context.Context, accountID string) (int, error) {
	var n int
	err := d.db.Get(ctx, &n, `SELECT COUNT(*) FROM notices WHERE account_id = ? AND read_at = 0`, accountID)
	return n, engine.MapError(err)
}

// MarkNotices implements hub.Notices. Notices that arrived after upTo stay unread.
func (d *Inbox) MarkNotices(ctx context.Context, accountID, upTo string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE notices SET read_at = ? WHERE account_id = ? AND id <= ? AND read_at = 0`,
			clock.Milli(clock.Now()), accountID, upTo)
		return err
	})
}

// NotifyInvited stores a notice for a person whom the inviter invited to a conversation. It lacks the
// title, because a title can be the text of a message that is deleted later.
func (d *Hooks) NotifyInvited(t engine.Tx, personID, inviter string, at time.Time) error {
	return d.insertNotice(t, hub.Notice{ID: ident.NewID(), AccountID: personID, Kind: hub.NoticeInvited, Subject: inviter,
		Text: inviter + " invites you to a conversation.", Href: "/chat#invitations", CreatedAt: at})
}

// NotifyAdded stores a notice for a person that the inviter added to a conversation without asking, because the person
// accepted an earlier invitation.
func (d *Hooks) NotifyAdded(t engine.Tx, personID, inviter, href string, at time.Time) error {
	return d.insertNotice(t, hub.Notice{ID: ident.NewID(), AccountID: personID, Kind: hub.NoticeAdded, Subject: inviter,
		Text: inviter + " added you to a conversation.", Href: href, CreatedAt: at})
}

// NotifyMentioned stores a notice for a member of a conversation that the sender of a message mentions, unless the
// member blocked the sender, wants no notifications here or at all, or has an unread notice of a mention in the
// conversation.
func (d *Hooks) NotifyMentioned(t engine.Tx, personID, room, senderID, sender, href string, at time.Time) error {
	var wanted bool
	if err := t.Get(&wanted, `SELECT EXISTS (SELECT 1 FROM members m LEFT JOIN chat_prefs p ON p.account_id = m.member_id
		WHERE m.conversation_id = ?1 AND m.kind = 'person' AND m.member_id = ?2 AND m.left_at = 0
		AND m.notify <> 'nothing' AND COALESCE(p.notify, '') <> 'nothing'
		AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.person_id = ?2 AND b.blocked_id = ?3)
		AND NOT EXISTS (SELECT 1 FROM notices n WHERE n.account_id = ?2 AND n.kind = ?4 AND n.read_at = 0 AND n.href LIKE ?5 || '%'))`,
		room, personID, senderID, hub.NoticeMention, "/chat/"+room); err != nil || !wanted {
		return err
	}
	return d.insertNotice(t, hub.Notice{ID: ident.NewID(), AccountID: personID, Kind: hub.NoticeMention, Subject: sender,
		Text: sender + " mentioned you in a conversation.", Href: href, CreatedAt: at})
}

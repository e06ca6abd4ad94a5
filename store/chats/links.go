package chats

import (
	"context"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/store/engine"
	"agentsite/store/quotas"
)

type roomLinkRow struct {
	ID             string `db:"id"`
	ConversationID string `db:"conversation_id"`
	Kind           string `db:"kind"`
	Role           string `db:"role"`
	FromSeq        int64  `db:"from_seq"`
	UpToSeq        int64  `db:"up_to_seq"`
	CreatorKind    string `db:"creator_kind"`
	CreatorID      string `db:"creator_id"`
	CreatorHandle  string `db:"creator_handle"`
	Uses           int    `db:"uses"`
	MaxUses        int    `db:"max_uses"`
	CreatedAt      int64  `db:"created_at"`
	ExpiresAt      int64  `db:"expires_at"`
}

func (r roomLinkRow) link() chat.Link {
	return chat.Link{ID: r.ID, ConversationID: r.ConversationID, Kind: chat.LinkKind(r.Kind), Role: r.Role,
		FromSeq: r.FromSeq, UpToSeq: r.UpToSeq,
		Creator: chat.Sender{Kind: r.CreatorKind, ID: r.CreatorID, Handle: r.CreatorHandle}, Uses: r.Uses,
		MaxUses:   r.MaxUses,
		CreatedAt: clock.FromMilli(r.CreatedAt), ExpiresAt: clock.FromMilli(r.ExpiresAt)}
}

const (
	linkColumns = `id, conversation_id, kind, role, from_seq, up_to_seq, creator_kind, creator_id, creator_handle, uses, max_uses, created_at, expires_at`
	openLink    = ` AND expires_at > ? AND (max_uses = 0 OR uses < max_uses)`
)

// PutLink implements chat.Links. Membership and number are checked in the transaction, so that they hold
// against a removal, and other links, at the same moment. It also deletes links that expired more than a day ago.
func (d *Chats) PutLink(ctx context.Context, l chat.Link, secretHash string) error {
	now := clock.Milli(clock.Now())
	return d.db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`DELETE FROM room_links WHERE expires_at < ?`, now-24*60*60*1000); err != nil {
			return err
		}
		var now struct {
			Member bool `db:"member"`
			Links  int  `db:"links"`
		}
		if err := t.Get(&now, `SELECT EXISTS (SELECT 1 FROM members
				WHERE conversation_id = ?1 AND kind = ?2 AND member_id = ?3 AND left_at = 0) AS member,
			(SELECT COUNT(*) FROM room_links
				WHERE conversation_id = ?1 AND expires_at > ?4 AND (max_uses = 0 OR uses < max_uses)) AS links`,
			l.ConversationID, l.Creator.Kind, l.Creator.ID, clock.Milli(l.CreatedAt)); err != nil {
			return err
		}
		switch {
		case !now.Member:
			return fault.New(fault.NotFound, "There is no such conversation.")
		case now.Links >= chat.MaxLinks:
			return chat.ErrManyLinks()
		}
		if err := d.quotas.CheckRoom(t, l.Creator.Kind, l.Creator.ID, quotas.RowBytes); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO room_links (`+linkColumns+
			`, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			l.ID, l.ConversationID, string(l.Kind), l.Role, l.FromSeq, l.UpToSeq, l.Creator.Kind, l.Creator.ID,
			l.Creator.Handle,
			l.Uses, l.MaxUses, clock.Milli(l.CreatedAt), clock.Milli(l.ExpiresAt), secretHash)
		return err
	})
}

// LinkByHash implements chat.Links. An expired or used-up link is a NotFound fault.
func (d *Chats) LinkByHash(ctx context.Context, secretHash string) (chat.Link, error) {
	var r roomLinkRow
	if err := d.db.Get(ctx, &r, `SELECT `+linkColumns+` FROM room_links WHERE hash = ?`+openLink, secretHash,
		clock.Milli(clock.Now())); err != nil {
		return chat.Link{}, engine.MapError(err)
	}
	return r.link(), nil
}

// LinksOf implements chat.Links. It leaves out expired and used-up links and returns at most 500.
func (d *Chats) LinksOf(ctx context.Context, conversationID string) ([]chat.Link, error) {
	var rows []roomLinkRow
	if err := d.db.List(ctx, &rows, `SELECT `+linkColumns+` FROM room_links WHERE conversation_id = ?`+openLink+
		` ORDER BY id LIMIT 500`,
		conversationID, clock.Milli(clock.Now())); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]chat.Link, len(rows))
	for i, r := range rows {
		out[i] = r.link()
	}
	return out, nil
}

// DropLink implements chat.Links. A missing link is a NotFound fault.
func (d *Chats) DropLink(ctx context.Context, conversationID, id string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		res, err := t.Exec(`DELETE FROM room_links WHERE conversation_id = ? AND id = ?`, conversationID, id)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.NotFound, "There is no such link.")
		}
		return nil
	})
}

// countLinkUse counts a use of a link of kind join. A link without uses left, or one that ended, is a
// Conflict fault.
func countLinkUse(t engine.Tx, conversationID, id string) error {
	res, err := t.Exec(`UPDATE room_links SET uses = uses + 1 WHERE id = ? AND conversation_id = ? AND kind = 'join'`+
		openLink, id, conversationID, clock.Milli(clock.Now()))
	if err != nil {
		return err
	}
	if n, _ := res.RowsAffected(); n == 0 {
		return fault.New(fault.Conflict, "This link has ended. Ask whoever gave it to you for another one.")
	}
	return nil
}

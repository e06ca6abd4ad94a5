package chats

import (
	"context"
	"encoding/json"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/task"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// roomColumns are the columns of a conversation that are the same for all members, settingColumns the
// settings among them.
const (
	roomColumns = `c.id, c.title, c.last_seq, c.created_at, c.updated_at, c.branched_from, c.branched_seq, ` +
		settingColumns
	settingColumns = `c.speaks, c.speaker_id, c.spoke_id, c.past, c.hops, c.turns, c.budget`
	mineColumns    = `m.role, m.read_seq, m.from_seq, m.pinned_at, m.archived_at, m.notify`
)

type settingsRow struct {
	Speaks    string `db:"speaks"`
	SpeakerID string `db:"speaker_id"`
	SpokeID   string `db:"spoke_id"`
	Past      string `db:"past"`
	Hops      int    `db:"hops"`
	Turns     int    `db:"turns"`
	Budget    int    `db:"budget"`
}

func (r settingsRow) settings() chat.Settings {
	return chat.Settings{Speaks: chat.Speaks(r.Speaks), SpeakerID: r.SpeakerID, Past: chat.Past(r.Past), Hops: r.Hops,
		Turns: r.Turns, Budget: r.Budget}
}

type roomRow struct {
	settingsRow
	ID           string `db:"id"`
	Title        string `db:"title"`
	LastSeq      int64  `db:"last_seq"`
	CreatedAt    int64  `db:"created_at"`
	UpdatedAt    int64  `db:"updated_at"`
	BranchedFrom string `db:"branched_from"`
	BranchedSeq  int64  `db:"branched_seq"`
	Role         string `db:"role"`
	ReadSeq      int64  `db:"read_seq"`
	FromSeq      int64  `db:"from_seq"`
	PinnedAt     int64  `db:"pinned_at"`
	ArchivedAt   int64  `db:"archived_at"`
	Notify       string `db:"notify"`
	Unread       int    `db:"unread"`
	Body         string `db:"body"`
}

func (r roomRow) conversation() chat.Conversation {
	c := chat.Conversation{ID: r.ID, Title: r.Title, LastSeq: r.LastSeq, CreatedAt: clock.FromMilli(r.CreatedAt),
		UpdatedAt: clock.FromMilli(r.UpdatedAt),
		Settings:  r.settings(), BranchedFrom: r.BranchedFrom, BranchedSeq: r.BranchedSeq, ReadSeq: r.ReadSeq,
		Unread: r.Unread,
		Mine: chat.Mine{Role: r.Role, FromSeq: r.FromSeq, Pinned: r.PinnedAt > 0, Archived: r.ArchivedAt > 0,
			Notify: chat.Notify(r.Notify)}}
	var parts []task.Part
	if r.Body != "" && json.Unmarshal([]byte(r.Body), &parts) == nil {
		c.Snippet = rows.ClipText(task.PlainText(parts), 400)
	}
	return c
}

// Room implements chat.Rooms. A member who left gets the same NotFound fault as for a missing
// conversation.
func (d *Chats) Room(ctx context.Context, id, memberKind, memberID string) (chat.Conversation, error) {
	var r roomRow
	if err := d.db.Get(ctx, &r, `SELECT `+roomColumns+`, `+mineColumns+
		` FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.conversation_id = ? AND m.kind = ? AND m.member_id = ? AND m.left_at = 0`, id, memberKind,
		memberID); err != nil {
		return chat.Conversation{}, engine.MapError(err)
	}
	return d.withMembers(ctx, r)
}

// RoomByLink implements chat.Links. Mine and ReadSeq are zero. The caller has checked the link.
func (d *Chats) RoomByLink(ctx context.Context, l chat.Link) (chat.Conversation, error) {
	var r roomRow
	if err := d.db.Get(ctx, &r, `SELECT `+roomColumns+` FROM conversations c WHERE c.id = ?`,
		l.ConversationID); err != nil {
		return chat.Conversation{}, engine.MapError(err)
	}
	return d.withMembers(ctx, r)
}

func (d *Chats) withMembers(ctx context.Context, r roomRow) (chat.Conversation, error) {
	c := r.conversation()
	var members []memberRow
	if err := d.db.List(ctx, &members, memberQuery+`= ? ORDER BY m.joined_at, m.kind DESC, m.handle`,
		r.ID); err != nil {
		return chat.Conversation{}, engine.MapError(err)
	}
	for _, m := range members {
		c.Members = append(c.Members, m.member())
	}
	var err error
	c.Invited, err = d.Invited(ctx, r.ID)
	return c, err
}

// SettingsOf implements chat.Rooms. The settings are cached, because every message needs them.
func (d *Chats) SettingsOf(ctx context.Context, id string) (s chat.Settings, spokeID string, err error) {
	r, generation, ok := d.settings.Get(id)
	if !ok {
		if err := d.db.Get(ctx, &r, `SELECT `+settingColumns+` FROM conversations c WHERE c.id = ?`, id); err != nil {
			return s, "", engine.MapError(err)
		}
		d.settings.Put(id, r, generation)
	}
	return r.settings(), r.SpokeID, nil
}

// listWindow is the number of last messages of a conversation in which a list looks for unread ones and
// the snippet, so that a long conversation does not slow it.
const listWindow = 300

// roomsQuery selects a page of conversations first, and reads messages only for that page.
const roomsQuery = `SELECT r.*, COALESCE(e.body, s.body, '') AS body,
		(SELECT COUNT(*) FROM (SELECT 1 FROM messages x WHERE x.conversation_id = r.id AND x.seq > MAX(r.read_seq, r.from_seq, r.last_seq - ?6)
			AND x.kind = 'text' AND x.gone_seq = 0 AND NOT (x.sender_id = ?1 AND x.sender_kind = ?2)
			AND x.sender_id NOT IN (SELECT blocked_id FROM blocks WHERE person_id = ?1) LIMIT ?7) AS new) AS unread
	FROM (SELECT ` + roomColumns + `, ` + mineColumns + `
		FROM members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.member_id = ?1 AND m.kind = ?2 AND m.left_at = 0 AND (c.updated_at < ?3 OR c.updated_at = ?3 AND c.id < ?4)
			AND CASE WHEN m.archived_at > 0 THEN 1 ELSE 0 END = ?8 AND (?9 = 0 OR m.pinned_at > 0)
		ORDER BY c.updated_at DESC, c.id DESC LIMIT ?5) r
	LEFT JOIN messages s ON s.conversation_id = r.id AND s.seq = (SELECT x.seq FROM messages x
		WHERE x.conversation_id = r.id AND x.seq > MAX(r.from_seq, r.last_seq - ?6) AND x.kind = 'text' AND x.gone_seq = 0 AND x.newer_seq = 0
			AND x.sender_id NOT IN (SELECT blocked_id FROM blocks WHERE person_id = ?1)
		ORDER BY x.seq DESC LIMIT 1)
	LEFT JOIN messages e ON s.edit_seq > 0 AND e.conversation_id = r.id AND e.seq = s.edit_seq
	ORDER BY r.updated_at DESC, r.id DESC`

// RoomsOf implements chat.Rooms. f.Limit is at most 200.
func (d *Chats) RoomsOf(ctx context.Context, memberKind, memberID string, f chat.RoomFilter) ([]chat.Conversation,
	error) {
	at, id := clock.Milli(f.Before.At), f.Before.ID
	if f.Before.At.IsZero() {
		at, id = 1<<62, "~"
	}
	var out []chat.Conversation
	place := make(map[string]int)
	var ids []string
	// Each row has the body of the last message, of which only the snippet is kept.
	if err := engine.Each(ctx, d.db, func(r roomRow) bool {
		place[r.ID] = len(out)
		out, ids = append(out, r.conversation()), append(ids, r.ID)
		return true
	}, roomsQuery, memberID, memberKind, at, id, min(f.Limit, 200), listWindow,
		chat.MaxUnread, f.Archived, f.Pinned); err != nil {
		return nil, engine.MapError(err)
	}
	if len(out) == 0 {
		return []chat.Conversation{}, nil
	}
	in, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var members []memberRow
	if err := d.db.List(ctx, &members, memberQuery+
		`IN (SELECT value FROM json_each(?)) ORDER BY m.joined_at, m.kind DESC, m.handle`, string(in)); err != nil {
		return nil, engine.MapError(err)
	}
	for _, m := range members {
		c := &out[place[m.ConversationID]]
		c.Members = append(c.Members, m.member())
	}
	var invited []invitedRow
	if err := d.db.List(ctx, &invited, invitedQuery+`IN (SELECT value FROM json_each(?)) ORDER BY created_at, handle`,
		string(in)); err != nil {
		return nil, engine.MapError(err)
	}
	for _, m := range invited {
		c := &out[place[m.ConversationID]]
		c.Invited = append(c.Invited, m.member())
	}
	return out, nil
}

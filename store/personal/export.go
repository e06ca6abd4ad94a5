package personal

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentsite/internal/personal"
	"agentsite/store/engine"
)

// Data reads the personal data of accounts. It implements personal.Store.
type Data struct{ db engine.DB }

// New returns Data on a database.
func New(db engine.DB) *Data { return &Data{db} }

// set is one file of an export: the rows of an account. Each ? of the query is the account's id, and order has the
// columns that put the rows in order.
type set struct{ name, query, order string }

const (
	ownAgents = `(SELECT id FROM agents WHERE owner_id = ?)`
	ownHooks  = `(SELECT id FROM hooks WHERE owner_id = ?)`
)

var sets = []set{
	{"account", `SELECT id, name, email, operator, disabled_at, created_at FROM accounts WHERE id = ?`, `id`},
	{"profile", `SELECT display_name, shown, theme, muted, picture_hash, picture, updated_at FROM profiles
		WHERE account_id = ?`, `updated_at`},
	{"credentials", `SELECT id, kind, label, scopes, created_at, used_at, expires_at FROM credentials
		WHERE account_id = ?`, `id`},
	{"domains", `SELECT domain, proved_at, checked_at FROM account_domains WHERE account_id = ?`, `domain`},
	{"agents", `SELECT id, name, kind, version, title, visibility, spec, status, status_message,
		proof_origin, created_at, updated_at,
		deleted_at FROM agents WHERE owner_id = ?`, `id`},
	{"agent_versions", `SELECT agent_id, version, title, visibility, spec, kind, note, status, icon,
		created_at FROM agent_versions
		WHERE author_id = ? OR agent_id IN ` + ownAgents, `agent_id, version`},
	{"agent_icons", `SELECT hash, data, created_at FROM icons WHERE hash IN (SELECT icon FROM agent_versions
		WHERE agent_id IN ` + ownAgents + `)`, `hash`},
	{"shared_agents", `SELECT agent_id, added_at FROM agent_owners WHERE account_id = ?`, `agent_id`},
	{"offered_agents", `SELECT agent_id, created_at FROM agent_offers WHERE account_id = ?`, `agent_id`},
	{"ceilings", `SELECT agent_id, tokens, cost FROM ceilings WHERE owner_id = ?`, `agent_id`},
	{"models", `SELECT id, name, provider, url, model, fallback, price_input, price_output,
		created_at, updated_at FROM models
		WHERE owner_id = ?`, `id`},
	{"modules", `SELECT m.hash, m.name, m.size, m.created_at, m.package, m.portal, b.data FROM modules m
		JOIN module_bytes b ON b.hash = m.hash WHERE m.account_id = ?`, `m.hash`},
	{"memories", `SELECT m.id, a.name AS agent, m.room_id, m.conversation_id, m.seq, m.text, m.distilled, m.created_at,
		m.used_at FROM memories m JOIN agents a ON a.id = m.agent_id WHERE m.person_id = ?`, `m.id`},
	{"library_files", `SELECT path, version, hash, size, media_type, updated_at FROM library_files
		WHERE person_id = ?`, `path`},
	{"library_versions", `SELECT path, version, hash, size, media_type, restores, agent, conversation_id, task_id, created_at
		FROM library_versions WHERE person_id = ?`, `path, version`},
	{"library_texts", `SELECT path, text FROM library_texts WHERE person_id = ?`, `path`},
	{"library_shares", `SELECT id, path, version, created_at, expires_at FROM library_shares WHERE person_id = ?`, `id`},
	{"packages", `SELECT id, author, name, version, manifest, readme, module, size, state, note, downloads, created_at,
		updated_at FROM packages WHERE account_id = ?`, `id`},
	{"goals", `SELECT id, goal, state, reason, parent_id, parent_task, created_at, updated_at FROM goals
		WHERE owner_id = ?`, `id`},
	{"goal_events", `SELECT goal_id, seq, event FROM goal_events
		WHERE goal_id IN (SELECT id FROM goals WHERE owner_id = ?)`, `goal_id, seq`},
	{"halts", `SELECT kind, subject, name, reason, created_at FROM halts WHERE subject = ? OR subject
		IN ` + ownAgents, `subject`},
	{"searches", `SELECT id, title, query, seen_at, created_at FROM searches WHERE account_id = ?`, `id`},
	{"chat_settings", `SELECT notify, quiet_from, quiet_to, zone FROM chat_prefs WHERE account_id = ?`, `zone`},
	{"notices", `SELECT id, kind, subject, text, href, created_at, read_at FROM notices WHERE account_id = ?`, `id`},
	{"push_browsers", `SELECT host, texts, created_at FROM push_browsers WHERE account_id = ?`, `created_at, host`},
	{"webhooks", `SELECT id, kind, name, version, label, url, host, events, scheme, state, reason,
		created_at, updated_at FROM hooks
		WHERE owner_id = ?`, `id`},
	{"webhook_events", `SELECT id, hook_id, event_id, type, facts, created_at FROM hook_events WHERE
		hook_id IN ` + ownHooks, `id`},
	{"webhook_attempts", `SELECT id, hook_id, event_id, type, at, status, took, error FROM hook_attempts
		WHERE hook_id IN ` + ownHooks, `id`},
	{"grants", `SELECT id, agent, tool, target, conversation_id, allowed, calls, used, until_at,
		created_at FROM grants
		WHERE person_id = ?`, `id`},
	{"usage", `SELECT day, agent_id, model, purpose, portal, calls, estimated, input, output, cost FROM usage_days
		WHERE person_id = ? OR owner_id = ?`, `day, agent_id, model, purpose`},
	{"portal_model_usage", `SELECT day, tokens FROM model_days WHERE who = 'account:' || ?`, `day`},
	{"storage", `SELECT bytes, day, today, place FROM storage WHERE kind = 'account' AND id = ?`, `bytes`},
	{"reports", `SELECT id, agent_id, reporter_handle, reason, text, outcome, created_at, closed_at FROM reports
		WHERE reporter_id = ?`, `id`},
	{"blocks", `SELECT handle, created_at FROM blocks WHERE person_id = ?`, `handle`},
	{"invitations", `SELECT conversation_id, handle, inviter_handle, created_at, declined_at FROM room_invitations
		WHERE person_id = ? OR inviter_id = ?`, `conversation_id, created_at, handle`},
	{"invitation_days", `SELECT day, sent FROM invitation_days WHERE inviter_id = ?`, `day`},
	{"accepted_inviters", `SELECT person_id, inviter_id, accepted_at FROM accepted_inviters WHERE
		person_id = ? OR inviter_id = ?`,
		`person_id, inviter_id`},
	{"room_links", `SELECT id, conversation_id, kind, role, creator_handle, uses, max_uses,
		created_at, expires_at FROM room_links
		WHERE creator_id = ?`, `id`},
	{"disclosures", `SELECT agent_id, host, share, told_at FROM disclosures WHERE member_id = ?`, `agent_id`},
	{"first_messages", `SELECT agent_id, client_id, conversation_id FROM first_asks WHERE caller_id =
		?`, `agent_id, client_id`},
	{"client_ids", `SELECT conversation_id, client_id, seq FROM client_ids WHERE sender_id =
		?`, `conversation_id, seq`},
	{"memberships", `SELECT m.conversation_id, c.title, m.handle, m.role, m.notify, m.read_seq,
		m.joined_at, m.left_at, m.pinned_at,
		m.archived_at FROM members m JOIN conversations c ON c.id = m.conversation_id WHERE m.member_id =
		?`, `m.conversation_id`},
	{"reactions", `SELECT conversation_id, seq, emoji, handle FROM reactions WHERE member_id =
		?`, `conversation_id, seq, emoji`},
	{"tasks", `SELECT id, conversation_id, agent_handle, caller_handle, state, reason, artifacts,
		message_seq, answer_seq, created_at,
		updated_at FROM tasks WHERE caller_id = ?`, `id`},
	{"traces", `SELECT agent_id, task_id, n, at, head, body FROM agent_traces
		WHERE task_id IN (SELECT id FROM tasks WHERE caller_id = ?)`, `agent_id, task_id, n`},
	{"summaries", `SELECT conversation_id, agent_id, text, created_at FROM summaries WHERE caller_id =
		?`, `conversation_id, agent_id`},
	{"own_messages", `SELECT conversation_id, seq, id, sender_handle, kind, body, reason, created_at
		FROM messages WHERE sender_id = ?`,
		`conversation_id, seq`},
	{"decisions", `SELECT act, subject, why, created_at FROM audit WHERE actor_id = ?
		OR subject IN (SELECT name FROM accounts WHERE id = ?) OR subject = ?`, `id`},
	{personal.Uploads, `SELECT u.hash, f.size, f.media_type, u.created_at FROM uploads u JOIN files f
		ON f.hash = u.hash
		WHERE u.owner_id = ?`, `u.hash`},
}

// page is the number of rows that are read at a time, so that a slow reader holds no transaction open.
const page = 200

// EachRecord implements personal.Store.
func (d *Data) EachRecord(ctx context.Context, accountID string, yield func(set string, record map[string]any) error) error {
	for _, s := range sets {
		args := slices.Repeat([]any{accountID}, strings.Count(s.query, "?"))
		query := s.query + ` ORDER BY ` + s.order + ` LIMIT ? OFFSET ?`
		for at := 0; ; at += page {
			rows, err := d.read(ctx, query, append(slices.Clone(args), page, at)...)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if err := yield(s.name, r); err != nil {
					return err
				}
			}
			if len(rows) < page {
				break
			}
		}
	}
	return d.eachTranscript(ctx, accountID, yield)
}

// eachTranscript yields the messages of the conversations of which the person is a member, as the person may read them.
func (d *Data) eachTranscript(ctx context.Context, accountID string, yield func(string, map[string]any) error) error {
	var rooms []struct {
		ID   string `db:"conversation_id"`
		From int64  `db:"from_seq"`
	}
	if err := d.db.List(ctx, &rooms, `SELECT conversation_id, from_seq FROM members WHERE member_id =
		? AND kind = 'person'
		AND left_at = 0 ORDER BY conversation_id`, accountID); err != nil {
		return engine.MapError(err)
	}
	for _, room := range rooms {
		for after := room.From; ; {
			rows, err := d.read(ctx, `SELECT seq, id, sender_kind, sender_handle, kind, body, target,
		reason, created_at FROM messages
				WHERE conversation_id = ? AND seq > ? AND (target = 0 OR target > ?) ORDER BY seq LIMIT
		?`, room.ID, after, room.From, page)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if err := yield(personal.Transcripts+room.ID, r); err != nil {
					return err
				}
			}
			if len(rows) < page {
				break
			}
			after, _ = rows[len(rows)-1]["seq"].(int64)
		}
	}
	return nil
}

// read returns rows by their columns. Columns with JSON hold it, not its text.
func (d *Data) read(ctx context.Context, query string, args ...any) ([]map[string]any, error) {
	rows, err := d.db.Rows(ctx, query, args...)
	if err != nil {
		return nil, engine.MapError(err)
	}
	defer rows.Close()
	var out []map[string]any
	for rows.Next() {
		r := make(map[string]any)
		if err := rows.MapScan(r); err != nil {
			return nil, err
		}
		for k, v := range r {
			if b, ok := v.([]byte); ok && k != "data" {
				v = string(b)
			}
			if s, ok := v.(string); ok {
				r[k] = s
				if s != "" && (s[0] == '{' || s[0] == '[') && json.Valid([]byte(s)) {
					r[k] = json.RawMessage(s)
				}
			}
		}
		out = append(out, r)
	}
	return out, engine.MapError(d.db.Classify(rows.Err()))
}

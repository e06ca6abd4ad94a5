// Package erasure takes the name of an erased person out of the rows that stay in the conversations of
// others.
package erasure

import (
	"context"
	"regexp"

	"agentsite/internal/ident"
	"agentsite/store/engine"
	"agentsite/store/transcripts"
)

// Handle stands for the name of an erased person in conversations.
const Handle = "deleted account"

// Person is an account that is erased.
type Person struct{ ID, Name string }

// Rooms returns the ids of all conversations that name the person, also of those that the person left, was only
// invited to, or that have copies of messages from elsewhere. All messages are read.
func Rooms(ctx context.Context, db engine.DB, p Person) (ids []string, err error) {
	err = db.List(ctx, &ids, `SELECT conversation_id FROM messages WHERE sender_id = ?1
		OR kind = 'event' AND instr(body, ?2) > 0
		UNION SELECT conversation_id FROM members WHERE member_id = ?1
		UNION SELECT conversation_id FROM reactions WHERE member_id = ?1
		UNION SELECT conversation_id FROM tasks WHERE caller_id = ?1`, p.ID, p.Name)
	return ids, engine.MapError(err)
}

// Texts returns the messages of the person in a conversation that have a text which can be deleted.
func Texts(ctx context.Context, db engine.DB, conversationID string, p Person) (seqs []int64, err error) {
	err = db.List(ctx, &seqs, `SELECT seq FROM messages WHERE conversation_id = ? AND sender_id = ? AND kind = 'text'
		AND gone_seq = 0 ORDER BY seq`, conversationID, p.ID)
	return seqs, engine.MapError(err)
}

// renaming returns a pattern of the name as a word of its own.
func renaming(name string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w@/.-])` + regexp.QuoteMeta(name) + `($|[^\w@/-])`)
}

// AnonymizeRoom replaces the name of the person in a conversation, and hashes its messages anew from the first that
// named the person on.
func AnonymizeRoom(t engine.Tx, conversationID string, p Person, by ident.Actor) error {
	renew := make(map[int64]bool)
	var named []struct {
		Seq  int64  `db:"seq"`
		Mine bool   `db:"mine"`
		Kind string `db:"kind"`
		Body string `db:"body"`
	}
	if err := t.List(&named, `SELECT seq, CASE WHEN sender_id = ?1 AND sender_handle <> ?2 THEN 1 ELSE 0 END AS mine, kind, body
		FROM messages WHERE conversation_id = ?3 AND (sender_id = ?1 AND sender_handle <> ?2
		OR kind = 'event' AND instr(body, ?4) > 0) ORDER BY seq`, p.ID, Handle, conversationID, p.Name); err != nil {
		return err
	}
	name := renaming(p.Name)
	for _, m := range named {
		renew[m.Seq] = m.Mine
		if m.Kind != "event" {
			continue
		}
		// Twice, because two names may share the sign between them.
		body := name.ReplaceAllString(name.ReplaceAllString(m.Body, "${1}"+Handle+"${2}"), "${1}"+Handle+"${2}")
		if body == m.Body {
			continue
		}
		renew[m.Seq] = true
		if _, err := t.Exec(`UPDATE messages SET body = ? WHERE conversation_id = ? AND seq = ?`, body, conversationID,
			m.Seq); err != nil {
			return err
		}
	}
	for _, q := range []string{
		`UPDATE messages SET sender_handle = ?1 WHERE conversation_id = ?2 AND sender_id = ?3`,
		`UPDATE members SET handle = ?1, notify = '' WHERE conversation_id = ?2 AND member_id = ?3`,
		`UPDATE reactions SET handle = ?1 WHERE conversation_id = ?2 AND member_id = ?3`,
		`UPDATE tasks SET caller_handle = ?1 WHERE conversation_id = ?2 AND caller_id = ?3`,
	} {
		if _, err := t.Exec(q, Handle, conversationID, p.ID); err != nil {
			return err
		}
	}
	for _, m := range named {
		if renew[m.Seq] {
			_, err := transcripts.Reanchor(t, conversationID, m.Seq, by, "an account was erased",
				func(r *transcripts.Row) bool { return renew[r.Seq] })
			return err
		}
	}
	return nil
}

// DropNotices deletes the notices of others that name an erased account or agent.
func DropNotices(t engine.Tx, name string) error {
	var notices []struct {
		ID   string `db:"id"`
		Text string `db:"words"`
	}
	if err := t.List(&notices, `SELECT id, subject || ' ' || text || ' ' || href AS words FROM notices
		WHERE instr(subject || ' ' || text || ' ' || href, ?) > 0`, name); err != nil {
		return err
	}
	word := regexp.MustCompile(`(^|[^\w.-])` + regexp.QuoteMeta(name) + `($|[^\w-])`)
	for _, n := range notices {
		if !word.MatchString(n.Text) {
			continue
		}
		if _, err := t.Exec(`DELETE FROM notices WHERE id = ?`, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// ReserveName gives the row of an erased account or agent the reserved form of its name, that no other can have or
// take, and removes the name.
func ReserveName(t engine.Tx, table, id, name, reserved string) error {
	if name == reserved {
		return nil
	}
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{`INSERT INTO names (name, kind, ref, created_at) SELECT ?, kind, ref, created_at FROM names WHERE name = ?`,
			[]any{reserved, name}},
		{`UPDATE ` + table + ` SET name = ? WHERE id = ?`, []any{reserved, id}},
		{`DELETE FROM names WHERE name = ?`, []any{name}},
	} {
		if _, err := t.Exec(q.sql, q.args...); err != nil {
			return err
		}
	}
	return nil
}

package store

import (
	"context"
	"fmt"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// accountRow names rows that belong to one account by a column with its id.
type accountRow struct{ table, column string }

// erasedRows returns the rows that are deleted with an account, in an order that keeps references. Rows of
// its conversations and agents are not among them, because those are deleted before.
func erasedRows() []accountRow {
	return []accountRow{
		{"credentials", "account_id"}, {"hooks", "owner_id"}, {"notices", "account_id"}, {"searches", "account_id"},
		{"chat_prefs", "account_id"}, {"account_domains", "account_id"}, {"agent_offers", "account_id"},
		{"agent_owners", "account_id"}, {"uploads", "owner_id"}, {"disclosures", "member_id"}, {"reports", "reporter_id"},
		{"room_links", "creator_id"}, {"room_invitations", "person_id"}, {"room_invitations", "inviter_id"},
		{"invitation_days", "inviter_id"}, {"accepted_inviters", "person_id"}, {"accepted_inviters", "inviter_id"},
		{"blocks", "person_id"}, {"blocks", "blocked_id"}, {"first_asks", "caller_id"}, {"client_ids", "sender_id"},
		{"grants", "person_id"}, {"usage_days", "person_id"}, {"usage_days", "owner_id"},
		{"goals", "owner_id"}, {"models", "owner_id"}, {"halts", "subject"}, {"ceilings", "owner_id"}, {"summaries", "caller_id"},
	}
}

// ListRooms returns the ids of up to limit conversations of which the person is a member.
func (d *DB) ListRooms(ctx context.Context, personID string, limit int) ([]string, error) {
	var ids []string
	err := d.List(ctx, &ids, `SELECT conversation_id FROM members WHERE member_id = ? AND kind = 'person' AND left_at = 0
		ORDER BY conversation_id LIMIT ?`, personID, limit)
	return ids, engine.MapError(err)
}

// EraseAccount deletes the rows of an account, and adds the decision of by to the operators' log.
// The account must have been disabled, have left its conversations and own no agents. Its row stays without
// password, address and rights, because transcripts name it and its name is never given to another.
func (d *DB) EraseAccount(ctx context.Context, id string, by ident.Actor) error {
	now := clock.Milli(clock.Now())
	return d.Write(ctx, func(t engine.Tx) error {
		var name string
		if err := t.Get(&name, `SELECT name FROM accounts WHERE id = ?`, id); err != nil {
			return err
		}
		d.Accounts.InvalidateCredentials(t)
		d.Hooks.InvalidateListeners(t)
		d.Chat.InvalidateBlocks(t)
		d.Hub.AgentsChanged(t)
		for _, q := range []string{
			`DELETE FROM hook_events WHERE hook_id IN (SELECT id FROM hooks WHERE owner_id = ?)`,
			`DELETE FROM hook_attempts WHERE hook_id IN (SELECT id FROM hooks WHERE owner_id = ?)`,
			`DELETE FROM model_days WHERE who = 'account:' || ?1 OR who LIKE 'account:' || ?1 || ' %'`,
			`DELETE FROM goal_events WHERE goal_id IN (SELECT id FROM goals WHERE owner_id = ?)`,
			// A deleted agent keeps its row, but not the text of its last version.
			`UPDATE agent_versions SET spec = '{}', note = '', title = '', icon = ''
				WHERE agent_id IN (SELECT id FROM agents WHERE owner_id = ?)`,
			`UPDATE agents SET spec = '{}', title = '' WHERE owner_id = ?`,
		} {
			if _, err := t.Exec(q, id); err != nil {
				return err
			}
		}
		for _, r := range erasedRows() {
			if _, err := t.Exec(fmt.Sprintf(`DELETE FROM %s WHERE %s = ?`, r.table, r.column), id); err != nil {
				return fmt.Errorf("erase rows of %s: %w", r.table, err)
			}
		}
		if _, err := t.Exec(`UPDATE accounts SET password_hash = '', email = '', operator = 0, disabled_at = ? WHERE id = ?`,
			now, id); err != nil {
			return err
		}
		return rows.AppendAudit(t, by, "account.remove", name, "")
	})
}

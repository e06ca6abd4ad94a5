package store

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/store/engine"
	"agentsite/store/erasure"
	"agentsite/store/rows"
	"agentsite/store/sqlite"
)

// accountRow names rows that belong to one account by a column with its id.
type accountRow struct{ table, column string }

// erasedRows returns the rows that are deleted with an account, in an order that keeps references. Rows of
// its conversations and agents are not among them, because those are deleted before.
func erasedRows() []accountRow {
	return []accountRow{
		{"push_browsers", "account_id"}, {"credentials", "account_id"}, {"hooks", "owner_id"}, {"notices", "account_id"}, {"searches", "account_id"},
		{"chat_prefs", "account_id"}, {"account_domains", "account_id"}, {"agent_offers", "account_id"},
		{"agent_owners", "account_id"}, {"uploads", "owner_id"}, {"disclosures", "member_id"}, {"reports", "reporter_id"},
		{"room_links", "creator_id"}, {"room_invitations", "person_id"}, {"room_invitations", "inviter_id"},
		{"invitation_days", "inviter_id"}, {"accepted_inviters", "person_id"}, {"accepted_inviters", "inviter_id"},
		{"blocks", "person_id"}, {"blocks", "blocked_id"}, {"first_asks", "caller_id"}, {"client_ids", "sender_id"},
		{"grants", "person_id"}, {"usage_days", "person_id"}, {"usage_days", "owner_id"},
		{"goals", "owner_id"}, {"models", "owner_id"}, {"halts", "subject"}, {"ceilings", "owner_id"}, {"summaries", "caller_id"},
		{"packages", "account_id"}, {"modules", "account_id"}, {"memories", "person_id"},
		{"library_shares", "person_id"}, {"library_texts", "person_id"}, {"library_files", "person_id"},
		{"library_versions", "person_id"},
		{"profiles", "account_id"},
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
// name, password, address and rights, because transcripts refer to it. Its name stays taken in a form that only the
// portal can compute.
func (d *DB) EraseAccount(ctx context.Context, id string, by ident.Actor) error {
	now := clock.Milli(clock.Now())
	return d.Write(ctx, func(t engine.Tx) error {
		d.Accounts.InvalidateCredentials(t)
		d.Hooks.InvalidateListeners(t)
		d.Chat.InvalidatePeople(t)
		d.Hub.AgentsChanged(t)
		for _, q := range []string{
			`DELETE FROM hook_events WHERE hook_id IN (SELECT id FROM hooks WHERE owner_id = ?)`,
			`DELETE FROM hook_attempts WHERE hook_id IN (SELECT id FROM hooks WHERE owner_id = ?)`,
			`DELETE FROM model_days WHERE who = 'account:' || ?1 OR who LIKE 'account:' || ?1 || ' %'`,
			`DELETE FROM goal_events WHERE goal_id IN (SELECT id FROM goals WHERE owner_id = ?)`,
			`DELETE FROM agent_traces WHERE task_id IN (SELECT id FROM tasks WHERE caller_id = ?)`,
			`UPDATE tasks SET checkpoint = '', long_checkpoint = '' WHERE caller_id = ? AND (checkpoint <> '' OR long_checkpoint <> '')`,
			// A deleted agent keeps its row, but not the text of its last version.
			`UPDATE agent_versions SET spec = '{}', note = '', title = '', icon = ''
				WHERE agent_id IN (SELECT id FROM agents WHERE owner_id = ?)`,
			`UPDATE library_versions SET agent = '' WHERE agent_id IN (SELECT id FROM agents WHERE owner_id = ?)`,
			`UPDATE agents SET spec = '{}', title = '', status_message = '', live_reason = '', proof_origin = '' WHERE owner_id = ?`,
		} {
			if _, err := t.Exec(q, id); err != nil {
				return err
			}
		}
		if err := rows.DropLibrary(t, id, now); err != nil {
			return err
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
		if err := d.eraseNames(t, id); err != nil {
			return err
		}
		return rows.AppendAudit(t, by, "account.remove", id, d.copiesOf())
	})
}

// eraseNames replaces the names of an account and its agents by reserved forms, and deletes notices of others that have
// them.
func (d *DB) eraseNames(t engine.Tx, accountID string) error {
	var named []struct {
		Table string `db:"of"`
		ID    string `db:"id"`
		Name  string `db:"name"`
	}
	if err := t.List(&named, `SELECT 'accounts' AS of, id, name FROM accounts WHERE id = ?1
		UNION ALL SELECT 'agents', id, name FROM agents WHERE owner_id = ?1`, accountID); err != nil {
		return err
	}
	for _, n := range named {
		if err := erasure.DropNotices(t, n.Name); err != nil {
			return err
		}
		reserved, err := d.reserve.Form(n.Name)
		if err != nil {
			return err
		}
		if err := erasure.ReserveName(t, n.Table, n.ID, n.Name, reserved); err != nil {
			return err
		}
	}
	return nil
}

// EraseAuthor takes the name of a person out of all conversations, and deletes the person's messages there if texts is
// set. Each deletion and each conversation is a transaction of its own.
func (d *DB) EraseAuthor(ctx context.Context, id, name string, texts bool, by ident.Actor) error {
	p := erasure.Person{ID: id, Name: name}
	rooms, err := erasure.Rooms(ctx, d.Engine, p)
	if err != nil {
		return err
	}
	for _, room := range rooms {
		if texts {
			if err := d.deleteTexts(ctx, room, p); err != nil {
				return err
			}
		}
		if err := d.Write(ctx, func(t engine.Tx) error {
			d.Chat.InvalidatePeople(t)
			return erasure.AnonymizeRoom(t, room, p, by)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (d *DB) deleteTexts(ctx context.Context, conversationID string, p erasure.Person) error {
	seqs, err := erasure.Texts(ctx, d.Engine, conversationID, p)
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		// The portal deletes them, because the person may have left the conversation long ago.
		_, err := d.Chat.Amend(ctx, chat.Message{ConversationID: conversationID, ID: ident.NewID(), Kind: chat.Unsaid,
			Sender: chat.Sender{Kind: "system", ID: p.ID, Handle: erasure.Handle}, Target: seq, CreatedAt: clock.Now()}, true)
		if err != nil && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}

// PurgeErased removes erased data from the files besides the tables: the index of words, and the write-ahead log of
// SQLite. On PostgreSQL the server does it in its own time; VACUUM FULL does it at once.
func (d *DB) PurgeErased(ctx context.Context) error {
	if err := d.Words.PurgeWords(ctx); err != nil || d.file == nil {
		return err
	}
	done, err := d.file.PurgeLog(ctx)
	if err == nil && !done {
		d.Log().Warn("erased data stays in the write-ahead log until readers of the database end")
	}
	return err
}

// OlderCopies returns the names of the copies of the database in the data folder that were made before upgrades. They
// still hold accounts that are erased now.
func (d *DB) OlderCopies() ([]string, error) {
	paths, err := sqlite.SchemaCopies(filepath.Join(d.dir, FileName))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range paths {
		out = append(out, filepath.Base(p))
	}
	return out, nil
}

// copiesOf returns the older copies as a reason in the operators' log.
func (d *DB) copiesOf() string {
	if d.file == nil {
		return "Backups made before still hold the account, also base backups and archived logs (WAL) of PostgreSQL."
	}
	names, err := d.OlderCopies()
	if err != nil || len(names) == 0 {
		return "Backups made before still hold the account."
	}
	return rows.ClipText("Backups made before still hold the account, among them "+strings.Join(names, ", "), 500)
}

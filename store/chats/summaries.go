package chats

import (
	"context"
	"database/sql"
	"errors"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
	"agentsite/store/engine"
)

// Summaries is the table summaries.
type Summaries struct{ db engine.DB }

// NewSummaries returns the store of summaries in a database.
func NewSummaries(db engine.DB) *Summaries { return &Summaries{db} }

// SummaryOf returns a summary; zero if there is none.
func (d *Summaries) SummaryOf(ctx context.Context, k task.SummaryKey) (task.Summary, error) {
	var row struct {
		UpTo int64  `db:"up_to"`
		Text string `db:"text"`
	}
	err := d.db.Get(ctx, &row, `SELECT up_to, text FROM summaries
		WHERE conversation_id = ? AND agent_id = ? AND caller_id = ? AND scope = ?`, k.ConversationID, k.AgentID, k.CallerID,
		k.Scope)
	if errors.Is(err, sql.ErrNoRows) {
		return task.Summary{}, nil
	}
	return task.Summary{UpTo: row.UpTo, Text: row.Text}, engine.MapError(err)
}

// PutSummary stores a summary in place of that of the same person, whatever its scope. seen is a position of the
// conversation up to which the messages were read as they are in the summary: a Conflict fault says that one of them
// was changed or deleted since.
func (d *Summaries) PutSummary(ctx context.Context, k task.SummaryKey, seen int64, s task.Summary) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		var changed, exists bool
		if err := t.Get(&changed, `SELECT EXISTS (SELECT 1 FROM messages WHERE conversation_id = ?1 AND seq > ?2
			AND kind IN (?4, ?5) AND target <= ?3)`, k.ConversationID, seen, s.UpTo, string(chat.Edit),
			string(chat.Unsaid)); err != nil {
			return err
		}
		if err := t.Get(&exists, `SELECT EXISTS (SELECT 1 FROM conversations WHERE id = ?)`, k.ConversationID); err != nil {
			return err
		}
		if changed || !exists {
			return fault.New(fault.Conflict, "The messages were changed meanwhile.")
		}
		_, err := t.Exec(`INSERT INTO summaries (conversation_id, agent_id, caller_id, scope, up_to, text, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (conversation_id, agent_id, caller_id) DO UPDATE SET scope = excluded.scope, up_to = excluded.up_to,
				text = excluded.text, created_at = excluded.created_at`, k.ConversationID, k.AgentID, k.CallerID, k.Scope,
			s.UpTo, s.Text, clock.Milli(clock.Now()))
		return err
	}))
}

// dropSummaries deletes the summaries that contain a message.
func dropSummaries(t engine.Tx, conversationID string, seq int64) error {
	_, err := t.Exec(`DELETE FROM summaries WHERE conversation_id = ? AND up_to >= ?`, conversationID, seq)
	return err
}

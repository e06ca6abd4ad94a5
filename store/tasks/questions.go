package tasks

import (
	"context"

	"agentsite/internal/chat"
	"agentsite/internal/task"
	"agentsite/store/engine"
)

// Questions implements chat.Tasks. A task stores only the last message it got; the client ids of the
// agent's questions contain the seqs of the earlier ones.
func (d *Tasks) Questions(ctx context.Context, t task.Task) (map[int64]string, error) {
	var rows []struct {
		Seq      int64  `db:"seq"`
		ClientID string `db:"client_id"`
	}
	err := d.db.List(ctx, &rows, `WITH asked (seq) AS (
			SELECT ?5
			UNION SELECT CAST(substr(client_id, length(?2) + 2) AS INTEGER) FROM client_ids
			WHERE conversation_id = ?1 AND sender_id = ?3 AND client_id > ?2 || '/' AND client_id < ?2 || '0')
		SELECT a.seq AS seq, COALESCE((SELECT c.client_id FROM client_ids c
			WHERE c.conversation_id = ?1 AND c.sender_id = ?4 AND c.seq = a.seq), '') AS client_id
		FROM asked a`, t.ConversationID, t.ID, t.AgentID, t.CallerID, t.MessageSeq)
	out := make(map[int64]string, len(rows))
	for _, r := range rows {
		out[r.Seq] = r.ClientID
	}
	return out, engine.MapError(err)
}

const firstAsked = `SELECT conversation_id FROM first_asks WHERE caller_id = ? AND agent_id = ? AND client_id = ?`

// FirstAsked implements chat.Tasks. The row is deleted with the conversation.
func (d *Tasks) FirstAsked(ctx context.Context, a chat.FirstAsk) (string, error) {
	var id string
	err := d.db.Get(ctx, &id, firstAsked, a.CallerID, a.AgentID, a.ClientID)
	return id, engine.MapError(err)
}

// ClaimFirstAsk stores which conversation a message opened, and returns it: another one if the message
// was sent before. Other transactions see it only after the commit.
func ClaimFirstAsk(t engine.Tx, a chat.FirstAsk) (conversationID string, err error) {
	if _, err := t.Exec(`INSERT INTO first_asks (caller_id, agent_id, client_id, conversation_id) VALUES (?, ?, ?, ?)
		ON CONFLICT (caller_id, agent_id, client_id) DO NOTHING`, a.CallerID, a.AgentID, a.ClientID,
		a.ConversationID); err != nil {
		return "", err
	}
	err = t.Get(&conversationID, firstAsked, a.CallerID, a.AgentID, a.ClientID)
	return conversationID, err
}

package tasks

import (
	"context"

	"agentsite/internal/task"
	"agentsite/store/engine"
)

// Asides implements chat.Tasks. The client ids of the questions begin with the id of the asking task.
func (d *Tasks) Asides(ctx context.Context, t task.Task) ([]task.Task, error) {
	var rows []taskRow
	if err := d.db.List(ctx, &rows, `SELECT `+taskColumns+` FROM tasks WHERE face IN ('agent', 'relay')`+ActiveStates+`
		AND conversation_id IN (SELECT conversation_id FROM first_asks WHERE caller_id = ?1 AND client_id = ?2)
		AND EXISTS (SELECT 1 FROM client_ids c WHERE c.conversation_id = tasks.conversation_id AND c.sender_id = ?3
			AND c.client_id > ?4 || '/' AND c.client_id < ?4 || '0' AND c.seq = tasks.message_seq)
		ORDER BY id`, t.CallerID, "aside/"+t.ConversationID+"/"+t.AgentID, t.AgentID, t.ID); err != nil {
		return nil, engine.MapError(err)
	}
	return tasksOf(rows)
}

// AskedAs returns the face of a task, its caller, and the client id of the message that asks for it; "" if that is
// gone.
func (d *Tasks) AskedAs(ctx context.Context, taskID string) (face, callerID, clientID string, err error) {
	var r struct {
		Face     string `db:"face"`
		CallerID string `db:"caller_id"`
		ClientID string `db:"client_id"`
	}
	err = d.db.Get(ctx, &r, `SELECT t.face, t.caller_id, COALESCE((SELECT MIN(c.client_id) FROM client_ids c
			WHERE c.conversation_id = t.conversation_id AND c.seq = t.message_seq), '') AS client_id
		FROM tasks t WHERE t.id = ?`, taskID)
	return r.Face, r.CallerID, r.ClientID, engine.MapError(err)
}

// Orphans implements chat.Tasks. Only tasks in the outbox run again after a start.
func (d *Tasks) Orphans(ctx context.Context) ([]task.Task, error) {
	var rows []taskRow
	if err := d.db.List(ctx, &rows, `SELECT `+taskColumns+` FROM tasks WHERE id IN
		(SELECT t.id FROM outbox o JOIN tasks t ON t.id = o.ref
			JOIN client_ids c ON c.conversation_id = t.conversation_id AND c.seq = t.message_seq
			LEFT JOIN tasks p ON p.id = substr(c.client_id, 1, 26)
			WHERE o.topic = 'task' AND t.face IN ('agent', 'relay') AND substr(c.client_id, 27, 1) = '/'
			AND (p.id IS NULL OR p.state IN ('completed', 'failed', 'canceled', 'rejected')))
		ORDER BY id`); err != nil {
		return nil, engine.MapError(err)
	}
	return tasksOf(rows)
}

package tasks

import (
	"context"

	"agentsite/internal/task"
	"agentsite/store/engine"
)

// ActivePortals implements task.Portals. The lists are in no order.
func (d *Tasks) ActivePortals(ctx context.Context) (asking, asked []string, err error) {
	// The condition must repeat that of the index tasks_portals word for word, because SQLite uses a
	// partial index only then.
	if err := d.db.List(ctx, &asking, `SELECT DISTINCT substr(caller_id, 1, instr(caller_id, '/') - 1) FROM tasks WHERE caller_kind = 'portal'`+ActiveStates); err != nil {
		return nil, nil, engine.MapError(err)
	}
	err = d.db.List(ctx, &asked, `SELECT DISTINCT e.portal_id FROM outbox o JOIN tasks t ON t.id = o.ref JOIN elsewhere e ON e.agent_id = t.agent_id WHERE o.topic = 'task'`)
	return asking, asked, engine.MapError(err)
}

// TasksFor implements task.Portals. It returns only tasks that have not ended.
func (d *Tasks) TasksFor(ctx context.Context, portalID string) ([]task.Task, error) {
	var rows []taskRow
	// The caller ids of a portal's people begin with its id and "/"; "0" is the character after "/".
	if err := d.db.List(ctx, &rows, `SELECT `+taskColumns+` FROM tasks WHERE caller_kind = 'portal'`+ActiveStates+
		` AND caller_id >= ? AND caller_id < ? ORDER BY caller_id LIMIT ?`,
		portalID+"/", portalID+"0", task.MaxStopped); err != nil {
		return nil, engine.MapError(err)
	}
	return tasksOf(rows)
}

// TasksAt implements task.Portals. It returns only tasks in the outbox, which have not ended.
func (d *Tasks) TasksAt(ctx context.Context, portalID string) ([]task.Task, error) {
	var rows []taskRow
	if err := d.db.List(ctx, &rows, `SELECT `+taskColumns+` FROM tasks WHERE id IN
		(SELECT t.id FROM outbox o JOIN tasks t ON t.id = o.ref JOIN elsewhere e ON e.agent_id = t.agent_id WHERE o.topic = 'task' AND e.portal_id = ? LIMIT ?)`, portalID, task.MaxStopped); err != nil {
		return nil, engine.MapError(err)
	}
	return tasksOf(rows)
}

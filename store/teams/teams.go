// Package teams stores goals and the logs of their teams. It implements team.Store.
package teams

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/team"
	"agentsite/internal/team/flow"
	"agentsite/store/engine"
)

// Teams are the tables goals and goal_events.
type Teams struct{ db engine.DB }

var _ team.Store = (*Teams)(nil)

// New returns the store of goals in a database.
func New(db engine.DB) *Teams { return &Teams{db} }

type row struct {
	ID         string `db:"id"`
	OwnerID    string `db:"owner_id"`
	Owner      string `db:"owner"`
	Key        string `db:"key"`
	Goal       string `db:"goal"`
	State      string `db:"state"`
	Reason     string `db:"reason"`
	Open       bool   `db:"open"`
	ParentID   string `db:"parent_id"`
	ParentTask int    `db:"parent_task"`
	Seq        int64  `db:"seq"`
	CreatedAt  int64  `db:"created_at"`
	UpdatedAt  int64  `db:"updated_at"`
}

const columns = `id, owner_id, owner, key, goal, state, reason, open, parent_id, parent_task, seq, created_at,
	updated_at`

func (r row) goal() team.Goal {
	g := team.Goal{ID: r.ID, OwnerID: r.OwnerID, OwnerName: r.Owner, Text: r.Goal, State: r.State, Reason: r.Reason,
		Open: r.Open, ParentID: r.ParentID, ParentTask: r.ParentTask, Seq: r.Seq,
		CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt)}
	if r.Key != r.ID {
		g.Key = r.Key
	}
	return g
}

func goalsOf(list []row) []team.Goal {
	out := make([]team.Goal, len(list))
	for i, r := range list {
		out[i] = r.goal()
	}
	return out
}

// CreateGoal implements team.Store.
func (d *Teams) CreateGoal(ctx context.Context, g team.Goal, first flow.Event, most int) (stored team.Goal, repeat bool,
	err error) {
	event, err := json.Marshal(first)
	if err != nil {
		return g, false, err
	}
	err = d.db.Write(ctx, func(t engine.Tx) error {
		stored, repeat = g, false
		if g.Key != "" {
			var r row
			err := t.Get(&r, `SELECT `+columns+` FROM goals WHERE owner_id = ? AND key = ?`, g.OwnerID, g.Key)
			if err == nil {
				stored, repeat = r.goal(), true
				return nil
			}
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		var open int
		if err := t.Get(&open, `SELECT COUNT(*) FROM goals WHERE open = 1 AND owner_id = ? AND parent_id = ''`,
			g.OwnerID); err != nil {
			return err
		}
		if g.ParentID == "" && open >= most {
			return fault.New(fault.RateLimited, "%d of your goals are running, which is the most there may be. Wait until "+
				"one has ended, or cancel one.", open)
		}
		if _, err := t.Exec(`INSERT INTO goals (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, g.ID,
			g.OwnerID, g.OwnerName, cmp.Or(g.Key, g.ID), g.Text, g.State, g.Reason, g.Open, g.ParentID, g.ParentTask, g.Seq,
			clock.Milli(g.CreatedAt), clock.Milli(g.UpdatedAt)); err != nil {
			return err
		}
		return appendEvent(t, g.ID, first.Seq, event)
	})
	return stored, repeat, engine.MapError(err)
}

func appendEvent(t engine.Tx, goalID string, seq int64, event []byte) error {
	_, err := t.Exec(`INSERT INTO goal_events (goal_id, seq, event) VALUES (?, ?, ?)`, goalID, seq, string(event))
	return err
}

// AppendEvent implements team.Store.
func (d *Teams) AppendEvent(ctx context.Context, g team.Goal, e flow.Event) error {
	event, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		res, err := t.Exec(`UPDATE goals SET state = ?, reason = ?, open = ?, seq = ?, updated_at = ?
			WHERE id = ? AND seq = ?`, g.State, g.Reason, g.Open, e.Seq, clock.Milli(g.UpdatedAt), g.ID, e.Seq-1)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			var have int
			if err := t.Get(&have, `SELECT COUNT(*) FROM goals WHERE id = ?`, g.ID); err != nil {
				return err
			}
			if have > 0 {
				return fault.New(fault.Conflict, "The goal went on meanwhile.")
			}
			return errNoGoal(g.ID)
		}
		return appendEvent(t, g.ID, e.Seq, event)
	}))
}

func errNoGoal(id string) error { return fault.New(fault.NotFound, "There is no goal %.80q.", id) }

// SettleGoal implements team.Store.
func (d *Teams) SettleGoal(ctx context.Context, id string) error {
	return engine.MapError(d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE goals SET open = 0 WHERE id = ?`, id)
		return err
	}))
}

// GoalByID implements team.Store.
func (d *Teams) GoalByID(ctx context.Context, id string) (team.Goal, error) {
	var r row
	err := d.db.Get(ctx, &r, `SELECT `+columns+` FROM goals WHERE id = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return team.Goal{}, errNoGoal(id)
	}
	return r.goal(), engine.MapError(err)
}

// GoalsOf implements team.Store.
func (d *Teams) GoalsOf(ctx context.Context, ownerID, before string, limit int) ([]team.Goal, error) {
	var list []row
	err := d.db.List(ctx, &list, `SELECT `+columns+` FROM goals WHERE owner_id = ?1 AND parent_id = ''
		AND (?2 = '' OR id < ?2) ORDER BY id DESC LIMIT ?3`, ownerID, before, limit)
	return goalsOf(list), engine.MapError(err)
}

// GoalsBelow implements team.Store.
func (d *Teams) GoalsBelow(ctx context.Context, parentID string) ([]team.Goal, error) {
	var list []row
	err := d.db.List(ctx, &list, `SELECT `+columns+` FROM goals WHERE parent_id = ? AND parent_id <> ''
		ORDER BY parent_task, id`, parentID)
	return goalsOf(list), engine.MapError(err)
}

// OpenGoals implements team.Store.
func (d *Teams) OpenGoals(ctx context.Context, ownerID string) ([]team.Goal, error) {
	var list []row
	err := d.db.List(ctx, &list, `SELECT `+columns+` FROM goals WHERE open = 1 AND (?1 = '' OR owner_id = ?1)
		ORDER BY id`, ownerID)
	return goalsOf(list), engine.MapError(err)
}

// WorkByPortal implements team.Store. The outbox has the tasks that run or wait to run.
func (d *Teams) WorkByPortal(ctx context.Context, ownerID string) (map[string]int, error) {
	var list []struct {
		Portal string `db:"portal_id"`
		Tasks  int    `db:"tasks"`
	}
	if err := d.db.List(ctx, &list, `SELECT e.portal_id, COUNT(*) AS tasks FROM outbox o JOIN tasks t ON t.id = o.ref
		JOIN elsewhere e ON e.agent_id = t.agent_id
		WHERE o.topic = 'task' AND t.face = 'goal' AND t.caller_id = ? GROUP BY e.portal_id`, ownerID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make(map[string]int, len(list))
	for _, r := range list {
		out[r.Portal] = r.Tasks
	}
	return out, nil
}

// EventsOf implements team.Store.
func (d *Teams) EventsOf(ctx context.Context, goalID string, after int64, limit int) ([]flow.Event, error) {
	var list []string
	if err := d.db.List(ctx, &list, `SELECT event FROM goal_events WHERE goal_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
		goalID, after, limit); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]flow.Event, len(list))
	for i, s := range list {
		if err := json.Unmarshal([]byte(s), &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

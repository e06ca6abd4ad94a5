package agents

import (
	"context"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/store/engine"
	"agentsite/store/figures"
	"agentsite/store/rows"
)

// Uses stores counts of calls by day, and traces of calls. It implements hub.Uses.
type Uses struct {
	db     engine.DB
	agents *Agents
}

func NewUses(db engine.DB, agents *Agents) *Uses { return &Uses{db, agents} }

const (
	DayMilli = 24 * 60 * 60 * 1000
	// maxDays is the number of days for which counts are kept.
	maxDays = 800
	// maxTracedCalls is the number of calls of one agent with stored traces.
	maxTracedCalls = 20
	maxCalls       = 200
)

// dayOf returns the day (UTC, since 1970) of a time in milliseconds.
func dayOf(at int64) int64 {
	day := at / DayMilli
	if at%DayMilli < 0 {
		day--
	}
	return day
}

// usedBy selects the calls of people since a time, without those of an agent's owner. usersQuery counts the people; an
// agent of another portal has the id of the network.
const (
	usedBy = ` FROM tasks t JOIN agents a ON a.id = t.agent_id LEFT JOIN elsewhere e ON e.agent_id = t.agent_id
		WHERE t.created_at >= ? AND t.caller_kind IN ('person', 'operator') AND COALESCE(a.owner_id, '') <> t.caller_id`
	usersQuery = `SELECT COALESCE(e.network_id, t.agent_id) AS id, COUNT(DISTINCT t.caller_id) AS people` + usedBy +
		` GROUP BY COALESCE(e.network_id, t.agent_id) ORDER BY people DESC, id LIMIT ?`
)

// CountUsers implements popularity.Store.
func (d *Uses) CountUsers(ctx context.Context, since time.Time, limit int) (map[string]int, error) {
	var list []struct {
		ID     string `db:"id"`
		People int    `db:"people"`
	}
	if err := d.db.List(ctx, &list, usersQuery, clock.Milli(since), limit); err != nil {
		return nil, engine.MapError(err)
	}
	users := make(map[string]int, len(list))
	for _, r := range list {
		users[r.ID] = r.People
	}
	return users, nil
}

// CountCall counts a submitted task on the day of its creation, and also its end if it is completed.
func CountCall(t engine.Tx, k task.Task) error {
	guests := 0
	if k.CallerKind == "guest" || k.CallerKind == "portal" {
		guests = 1
	}
	day := dayOf(clock.Milli(k.CreatedAt))
	completed, ms := 0, int64(0)
	if k.State == task.Completed {
		completed, ms = 1, max(clock.Milli(k.UpdatedAt)-clock.Milli(k.CreatedAt), 0)
	}
	var calls int
	if err := t.Get(&calls, `INSERT INTO agent_days (agent_id, day, calls, guests, completed, ms) VALUES (?, ?, 1, ?, ?, ?)
		ON CONFLICT (agent_id, day) DO UPDATE SET calls = agent_days.calls + 1,
			guests = agent_days.guests + excluded.guests, completed = agent_days.completed + excluded.completed,
			ms = agent_days.ms + excluded.ms RETURNING calls`, k.AgentID, day, guests,
		completed, ms); err != nil {
		return err
	}
	if calls > 1 {
		return nil
	}
	_, err := t.Exec(`DELETE FROM agent_days WHERE agent_id = ? AND day < ?`, k.AgentID, day-maxDays)
	return err
}

// CountEnd counts the end of a task on the day of its submission. It adds no row for a missing day, so
// that no day has more ends than calls.
func CountEnd(t engine.Tx, agentID string, created int64, state task.State, at time.Time) error {
	var completed, failed, canceled int
	switch state {
	case task.Completed:
		completed = 1
	case task.Failed, task.Rejected:
		failed = 1
		if err := figures.CountError(t, dayOf(clock.Milli(at))); err != nil {
			return err
		}
	case task.Canceled:
		canceled = 1
	default:
		return nil
	}
	return t.Send(`UPDATE agent_days SET completed = completed + ?, failed = failed + ?, canceled = canceled + ?, ms = ms + ? WHERE agent_id = ? AND day = ?`,
		completed, failed, canceled, max(clock.Milli(at)-created, 0), agentID, dayOf(created))
}

// Days implements hub.Uses. Days without calls are missing.
func (d *Uses) Days(ctx context.Context, agentID string, since time.Time) ([]hub.Day, error) {
	var rows []struct {
		Day       int64 `db:"day"`
		Calls     int   `db:"calls"`
		Completed int   `db:"completed"`
		Failed    int   `db:"failed"`
		Canceled  int   `db:"canceled"`
		Guests    int   `db:"guests"`
		MS        int64 `db:"ms"`
	}
	if err := d.db.List(ctx, &rows, `SELECT day, calls, completed, failed, canceled, guests, ms FROM agent_days
		WHERE agent_id = ? AND day >= ? ORDER BY day LIMIT ?`, agentID, dayOf(clock.Milli(since)),
		maxDays+1); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Day, len(rows))
	for i, r := range rows {
		out[i] = hub.Day{Day: time.UnixMilli(r.Day * DayMilli).UTC(), Calls: r.Calls, Completed: r.Completed,
			Failed: r.Failed, Canceled: r.Canceled,
			Guests: r.Guests, Took: time.Duration(r.MS) * time.Millisecond}
	}
	return out, nil
}

const callsQuery = `SELECT t.id, t.caller_kind, t.face, t.state, t.reason, t.created_at, t.updated_at,
		t.caller_kind NOT IN ('guest', 'agent', 'portal') AND t.caller_id = ? AND t.caller_id <> '' AS own
	FROM tasks t WHERE t.agent_id = ? ORDER BY t.created_at DESC, t.id DESC LIMIT ?`

// Calls implements hub.Uses. The calls of deleted conversations are missing; reasons are set only for
// the viewer's own calls.
func (d *Uses) Calls(ctx context.Context, agentID, viewerID string, limit int) ([]hub.CallRecord, error) {
	var rows []struct {
		ID         string `db:"id"`
		Own        bool   `db:"own"`
		CallerKind string `db:"caller_kind"`
		Face       string `db:"face"`
		State      string `db:"state"`
		Reason     string `db:"reason"`
		CreatedAt  int64  `db:"created_at"`
		UpdatedAt  int64  `db:"updated_at"`
	}
	if err := d.db.List(ctx, &rows, callsQuery, viewerID, agentID, min(limit, maxCalls)); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.CallRecord, len(rows))
	for i, r := range rows {
		c := hub.CallRecord{TaskID: r.ID, Own: r.Own, CallerKind: r.CallerKind, Face: r.Face, State: r.State,
			At: clock.FromMilli(r.CreatedAt)}
		if r.Own {
			c.Reason = r.Reason
		}
		if task.State(r.State).Terminal() {
			c.Took = time.Duration(max(r.UpdatedAt-r.CreatedAt, 0)) * time.Millisecond
		}
		out[i] = c
	}
	return out, nil
}

// CallsSince implements hub.Uses. Counts are by day: the day of then is counted from tasks, without
// deleted conversations, later days in full.
func (d *Uses) CallsSince(ctx context.Context, agentID string, then time.Time) (int, error) {
	at := clock.Milli(then)
	whole := dayOf(at + DayMilli - 1)
	var n int
	err := d.db.Get(ctx, &n, `SELECT (SELECT COALESCE(SUM(calls), 0) FROM agent_days WHERE agent_id = ?1 AND day >= ?2)
		+ (SELECT COUNT(*) FROM tasks WHERE agent_id = ?1 AND created_at >= ?3 AND created_at < ?4)`, agentID, whole,
		at, whole*DayMilli)
	return n, engine.MapError(err)
}

// Traces implements hub.Uses. A call of another person has no traces for the viewer.
func (d *Uses) Traces(ctx context.Context, agentID, taskID, viewerID string) ([]hub.Trace, error) {
	var rows []struct {
		At   int64  `db:"at"`
		Sent bool   `db:"sent"`
		Head string `db:"head"`
		Body string `db:"body"`
		Size int64  `db:"size"`
	}
	if err := d.db.List(ctx, &rows, `SELECT at, sent, head, body, size FROM agent_traces WHERE agent_id = ?1 AND task_id = ?2
		AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = ?2 AND t.caller_id = ?3 AND t.caller_kind NOT IN ('guest', 'portal')) ORDER BY n`, agentID, taskID, viewerID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Trace, len(rows))
	for i, r := range rows {
		out[i] = hub.Trace{At: clock.FromMilli(r.At), Sent: r.Sent, Head: r.Head, Body: r.Body, Size: r.Size}
	}
	return out, nil
}

// AddTraces implements hub.Uses. The traces of a continued call are appended; the last task.MaxTraces of
// a call are kept.
func (d *Uses) AddTraces(ctx context.Context, agentID, taskID string, list []hub.Trace) error {
	if len(list) == 0 {
		return nil
	}
	list = list[max(len(list)-task.MaxTraces, 0):]
	return d.agents.aboutAgent(ctx, agentID, func(t engine.Tx, _ string) error {
		var n int
		if err := t.Get(&n, `SELECT COUNT(*) FROM tasks WHERE id = ? AND agent_id = ?`, taskID, agentID); err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.NotFound, "The call is gone.")
		}
		if err := t.Get(&n, `SELECT COALESCE(MAX(n), 0) FROM agent_traces WHERE agent_id = ? AND task_id = ?`, agentID,
			taskID); err != nil {
			return err
		}
		for _, one := range list {
			n++
			if _, err := t.Exec(`INSERT INTO agent_traces (agent_id, task_id, n, at, sent, head, body, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				agentID, taskID, n, clock.Milli(one.At), one.Sent, traceText(one.Head), traceText(one.Body),
				one.Size); err != nil {
				return err
			}
		}
		if _, err := t.Exec(`DELETE FROM agent_traces WHERE agent_id = ? AND task_id = ? AND n <= ?`, agentID, taskID,
			n-task.MaxTraces); err != nil {
			return err
		}
		_, err := t.Exec(`DELETE FROM agent_traces WHERE agent_id = ?1 AND task_id NOT IN
			(SELECT task_id FROM agent_traces WHERE agent_id = ?1 GROUP BY task_id ORDER BY task_id = ?2 DESC, MAX(at) DESC, task_id DESC LIMIT ?3)`, agentID, taskID, maxTracedCalls)
		return err
	})
}

// traceText makes network data valid UTF-8 of at most task.MaxTraced bytes.
func traceText(s string) string {
	return rows.ClipText(strings.ToValidUTF8(s, "\uFFFD"), task.MaxTraced)
}

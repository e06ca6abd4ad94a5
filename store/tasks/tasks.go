// Package tasks stores tasks and the queue of those that wait for the runtime.
package tasks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/store/agents"
	"agentsite/store/engine"
	"agentsite/store/hooks"
)

// Tasks stores tasks, and the queue of those that wait for the runtime. It implements task.Reads,
// task.Queue, task.Portals and chat.Tasks.
type Tasks struct {
	db    engine.DB
	hooks *hooks.Hooks
}

var (
	_ task.Reads   = (*Tasks)(nil)
	_ task.Queue   = (*Tasks)(nil)
	_ task.Portals = (*Tasks)(nil)
	_ chat.Tasks   = (*Tasks)(nil)
)

func New(db engine.DB, hooks *hooks.Hooks) *Tasks { return &Tasks{db, hooks} }

type taskRow struct {
	ID             string `db:"id"`
	ConversationID string `db:"conversation_id"`
	AgentID        string `db:"agent_id"`
	AgentHandle    string `db:"agent_handle"`
	CallerKind     string `db:"caller_kind"`
	CallerID       string `db:"caller_id"`
	CallerHandle   string `db:"caller_handle"`
	MessageSeq     int64  `db:"message_seq"`
	AnswerSeq      int64  `db:"answer_seq"`
	State          string `db:"state"`
	Reason         string `db:"reason"`
	Artifacts      string `db:"artifacts"`
	Attempt        int    `db:"attempt"`
	Checkpoint     string `db:"checkpoint"`
	Face           string `db:"face"`
	CreatedAt      int64  `db:"created_at"`
	UpdatedAt      int64  `db:"updated_at"`
	RootSeq        int64  `db:"root_seq"`
	Hop            int    `db:"hop"`
	Replaces       int64  `db:"replaces"`
	Share          string `db:"share"`
	Pushed         bool   `db:"pushed"`
	Via            string `db:"via"`
	Budget         string `db:"budget"`
	Direct         bool   `db:"direct"`
	CallerGroup    string `db:"caller_group"`
}

const taskColumns = `id, conversation_id, agent_id, agent_handle, caller_kind, caller_id, caller_handle, message_seq, answer_seq,
	state, reason, artifacts, attempt, CASE long_checkpoint WHEN '' THEN checkpoint ELSE long_checkpoint END AS checkpoint, face, created_at, updated_at,
	root_seq, hop, replaces, share, pushed, via, budget, direct, caller_group`

func (r taskRow) task() (task.Task, error) {
	t := task.Task{
		ID: r.ID, ConversationID: r.ConversationID, AgentID: r.AgentID, AgentHandle: r.AgentHandle,
		CallerKind: r.CallerKind, CallerID: r.CallerID, CallerHandle: r.CallerHandle, CallerGroup: r.CallerGroup, MessageSeq: r.MessageSeq,
		AnswerSeq: r.AnswerSeq,
		State:     task.State(r.State), Reason: r.Reason, Attempt: r.Attempt, Face: r.Face,
		CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt),
		Hop: r.Hop, Replaces: r.Replaces, Share: r.Share, Direct: r.Direct,
	}
	if r.Hop > 0 { // A task that a person asked for is its own root, so RootSeq stays zero.
		t.RootSeq = r.RootSeq
	}
	var err error
	if t.Via, err = task.ParseChain(r.Via); err != nil {
		return t, fmt.Errorf("read the chain of task %s: %w", r.ID, err)
	}
	if t.Budget, err = task.ParseBudget(r.Budget); err != nil {
		return t, fmt.Errorf("read the budget of task %s: %w", r.ID, err)
	}
	if r.Checkpoint != "" {
		t.Checkpoint = json.RawMessage(r.Checkpoint)
	}
	if r.Artifacts != "" {
		if err := json.Unmarshal([]byte(r.Artifacts), &t.Artifacts); err != nil {
			return t, fmt.Errorf("read artifacts of task %s: %w", r.ID, err)
		}
	}
	return t, nil
}

func tasksOf(rows []taskRow) ([]task.Task, error) {
	out := make([]task.Task, 0, len(rows))
	for _, r := range rows {
		t, err := r.task()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// maxShortCheckpoint is the largest checkpoint in bytes that is stored in the short column; longer ones
// have a column of their own.
const maxShortCheckpoint = 65536

// TaskByID implements task.Reads. It checks no permission.
func (d *Tasks) TaskByID(ctx context.Context, id string) (task.Task, error) {
	var r taskRow
	if err := d.db.Get(ctx, &r, `SELECT `+taskColumns+` FROM tasks WHERE id = ?`, id); err != nil {
		return task.Task{}, engine.MapError(err)
	}
	return r.task()
}

// TaskAsked implements chat.Tasks. A task stores only the last message it got; the client ids of the
// agent's questions contain the seqs of the earlier ones.
func (d *Tasks) TaskAsked(ctx context.Context, conversationID string, seq int64) (task.Task, error) {
	var r taskRow
	if err := d.db.Get(ctx, &r, `SELECT `+taskColumns+
		` FROM tasks WHERE conversation_id = ?1 AND (message_seq = ?2 OR EXISTS (
			SELECT 1 FROM client_ids c WHERE c.conversation_id = ?1 AND c.sender_id = tasks.agent_id AND c.client_id = tasks.id || '/' || ?2))
		ORDER BY id LIMIT 1`, conversationID, seq); err != nil {
		return task.Task{}, engine.MapError(err)
	}
	return r.task()
}

// Size implements engine.Sized.
func (r taskRow) Size() int {
	return len(r.Artifacts) + len(r.Checkpoint) + len(r.Reason) + len(r.Via) + len(r.Budget) + taskBytes
}

// taskBytes is the memory of a task besides its long texts.
const taskBytes = 600

// ListTasks implements task.Reads. It returns the newest first, at most 200.
func (d *Tasks) ListTasks(ctx context.Context, f task.Filter) ([]task.Task, bool, error) {
	before := f.Before
	if before == "" {
		before = "~" // after every ULID
	}
	rows, cut, err := engine.ListUpTo[taskRow](ctx, d.db, task.PageBytes, `SELECT `+taskColumns+` FROM tasks
		WHERE caller_id = ? AND id < ? AND (? = '' OR conversation_id = ?) AND (? = '' OR state = ?)
		ORDER BY id DESC LIMIT ?`, f.CallerID, before, f.ConversationID, f.ConversationID, string(f.State),
		string(f.State), min(f.Limit, 200))
	if err != nil {
		return nil, false, engine.MapError(err)
	}
	list, err := tasksOf(rows)
	return list, cut, err
}

// FindTasks implements task.Reads. A page has at most 100 tasks.
func (d *Tasks) FindTasks(ctx context.Context, callerID string, q task.Query) (task.Page, error) {
	const which = ` FROM tasks
		WHERE caller_id = ? AND agent_id = ? AND (? = '' OR conversation_id = ?) AND (? = '' OR state = ?) AND updated_at >= ?`
	after := int64(0)
	if !q.After.IsZero() {
		after = clock.Milli(q.After)
	}
	args := []any{callerID, q.AgentID, q.ConversationID, q.ConversationID, string(q.State), string(q.State), after}
	var p task.Page
	if err := d.db.Get(ctx, &p.Total, `SELECT COUNT(*)`+which, args...); err != nil {
		return p, engine.MapError(err)
	}
	at, id := int64(math.MaxInt64), ""
	if q.From.ID != "" {
		at, id = clock.Milli(q.From.At), q.From.ID
	}
	limit := min(q.Limit, 100)
	rows, cut, err := engine.ListUpTo[taskRow](ctx, d.db, task.PageBytes, `SELECT `+taskColumns+which+` AND (updated_at, id) < (?, ?)
		ORDER BY updated_at DESC, id DESC LIMIT ?`, append(args, at, id, limit)...)
	if err != nil {
		return p, engine.MapError(err)
	}
	p.More = cut || len(rows) == limit
	p.Tasks, err = tasksOf(rows)
	return p, err
}

// ActiveStates is the SQL condition of tasks that have not ended. It must repeat that of the index
// tasks_active word for word, because SQLite uses a partial index only then.
const ActiveStates = ` AND state IN ('submitted', 'working', 'input_required', 'auth_required')`

// ActiveTasks implements task.Reads. A conversation takes precedence over a caller; it returns at most
// 1,000.
func (d *Tasks) ActiveTasks(ctx context.Context, conversationID, callerID string) ([]task.Task, error) {
	var rows []taskRow
	var err error
	const active = ActiveStates + ` ORDER BY id LIMIT 1000`
	if conversationID != "" {
		err = d.db.List(ctx, &rows, `SELECT `+taskColumns+` FROM tasks WHERE conversation_id = ?`+active,
			conversationID)
	} else {
		err = d.db.List(ctx, &rows, `SELECT `+taskColumns+` FROM tasks WHERE caller_id = ?`+active, callerID)
	}
	if err != nil {
		return nil, engine.MapError(err)
	}
	return tasksOf(rows)
}

// NextFence implements task.Queue.
func (d *Tasks) NextFence(ctx context.Context) (int64, error) {
	var fence int64
	err := d.db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`INSERT INTO counters (name, value) VALUES ('fence', 1) ON CONFLICT (name) DO UPDATE SET value = counters.value + 1`); err != nil {
			return err
		}
		return t.Get(&fence, `SELECT value FROM counters WHERE name = 'fence'`)
	})
	return fence, err
}

// queuedQuery also returns work whose task was deleted, so that Begin removes it.
const queuedQuery = `SELECT o.id AS position, o.ref AS id, COALESCE(t.conversation_id, '') AS conversation_id, COALESCE(t.agent_id, '') AS agent_id,
	COALESCE(t.caller_kind, '') AS caller_kind, COALESCE(t.caller_id, '') AS caller_id, COALESCE(t.caller_group, '') AS caller_group,
	COALESCE(t.agent_handle, '') AS agent_handle, COALESCE(t.message_seq, 0) AS message_seq, COALESCE(t.pushed, 0) AS pushed
	FROM outbox o LEFT JOIN tasks t ON t.id = o.ref WHERE o.topic = 'task' AND o.id > ? ORDER BY o.id LIMIT ?`

// Queued implements task.Queue.
func (d *Tasks) Queued(ctx context.Context, after int64, limit int) ([]task.Queued, error) {
	var rows []struct {
		Position       int64  `db:"position"`
		ID             string `db:"id"`
		ConversationID string `db:"conversation_id"`
		AgentID        string `db:"agent_id"`
		CallerKind     string `db:"caller_kind"`
		CallerID       string `db:"caller_id"`
		CallerGroup    string `db:"caller_group"`
		AgentHandle    string `db:"agent_handle"`
		MessageSeq     int64  `db:"message_seq"`
		Pushed         bool   `db:"pushed"`
	}
	if err := d.db.List(ctx, &rows, queuedQuery, after, limit); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]task.Queued, 0, len(rows))
	for _, r := range rows {
		out = append(out, task.Queued(r))
	}
	return out, nil
}

// Begin implements task.Queue. Work for a task that has ended or is gone leaves the queue.
func (d *Tasks) Begin(ctx context.Context, id string, fence int64) (task.Task, error) {
	var r taskRow
	var gone error
	err := d.db.Write(ctx, func(t engine.Tx) error {
		r, gone = taskRow{}, nil
		now := clock.Milli(clock.Now())
		res, err := t.Exec(`UPDATE tasks SET state = 'working', attempt = attempt + 1, updated_at = ? WHERE id = ? AND state IN ('submitted', 'working')`, now, id)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			gone = fault.New(fault.Conflict, "The task has ended already.")
			return DequeueWork(t, TopicTask, id)
		}
		if res, err = t.Exec(`UPDATE outbox SET fence = ?1 WHERE topic = 'task' AND ref = ?2 AND fence <= ?1`, fence, id); err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.Conflict, "The task is no longer in the queue of this process.")
		}
		if err := t.Get(&r, `SELECT `+taskColumns+` FROM tasks WHERE id = ?`, id); err != nil {
			return err
		}
		if r.Pushed && r.Attempt == 1 { // Push hooks get the state working only at the first attempt.
			return d.hooks.NotifyPushes(t, notify.Facts{TaskID: id, State: task.Working}, now)
		}
		return nil
	})
	if err == nil {
		err = gone
	}
	if err != nil {
		return task.Task{}, err
	}
	return r.task()
}

// SaveCheckpoint implements task.Queue. A checkpoint above maxShortCheckpoint is stored in a column of
// its own.
func (d *Tasks) SaveCheckpoint(ctx context.Context, id string, state json.RawMessage) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		short, long := string(state), ""
		if len(short) > maxShortCheckpoint {
			short, long = "", short
		}
		res, err := t.Exec(`UPDATE tasks SET checkpoint = ?, long_checkpoint = ? WHERE id = ? AND state = 'working'`,
			short, long, id)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.Conflict, "The task has ended.")
		}
		return nil
	})
}

// LastCheckpoint implements task.Queue. It does not find checkpoints above
// maxShortCheckpoint.
func (d *Tasks) LastCheckpoint(ctx context.Context, conversationID, agentID, callerID, before string) (json.RawMessage,
	error) {
	var checkpoint []byte
	err := d.db.Get(ctx, &checkpoint, `SELECT checkpoint FROM tasks WHERE conversation_id = ?1 AND agent_id = ?2 AND id < ?3 AND checkpoint <> ''
		AND (?4 = '' OR caller_id = ?4) ORDER BY id DESC LIMIT 1`, conversationID, agentID, before, callerID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, engine.MapError(err)
	}
	return checkpoint, nil
}

// waitingQuery must repeat the condition of the index tasks_waiting word for word, because SQLite uses a
// partial index only then.
const waitingQuery = `SELECT ` + taskColumns +
	` FROM tasks WHERE conversation_id = ?1 AND agent_id = ?2 AND caller_id = ?3
	AND state IN ('input_required', 'auth_required') AND (?4 = '' OR id = ?4) ORDER BY id DESC LIMIT 1`

// relayed is chat.FaceRelay.
const relayed = "relay"

// AskAgent gives an addressed agent its task for the message seq: the agent's task that waits for the
// caller's input continues, or else a new one is submitted. A message of another agent continues only the
// task that resumes names, because it is no answer of the caller. If resumes is set, that task must be
// waiting, and with the question of the message answers unless that is 0; else it returns a Conflict fault.
func AskAgent(t engine.Tx, k task.Task, seq int64, resumes string, answers int64) (task.Task, error) {
	if k.Hop > 0 || resumes == "" && len(k.Via) > 0 {
		return SubmitTask(t, k, seq)
	}
	now := clock.Milli(clock.Now())
	var waiting []taskRow
	if err := t.List(&waiting, waitingQuery, k.ConversationID, k.AgentID, k.CallerID, resumes); err != nil {
		return k, err
	}
	if len(waiting) == 0 && resumes != "" {
		return k, fault.New(fault.Conflict, "The task does not wait for input any more.")
	}
	if len(waiting) == 0 {
		return SubmitTask(t, k, seq)
	}
	if answers != 0 && waiting[0].AnswerSeq != answers {
		return k, fault.New(fault.Conflict, "The task waits for the answer to another question by now.")
	}
	w, err := waiting[0].task()
	if err != nil {
		return k, err
	}
	w.State, w.MessageSeq, w.Attempt, w.Reason, w.Share, w.Via, w.Budget = task.Submitted, seq, 0, "", k.Share, k.Via,
		k.Budget
	if k.Face == relayed || w.Face == relayed { // The other faces say where the task began.
		w.Face = k.Face
	}
	root := waiting[0].RootSeq
	if w.Hop == 0 {
		root = seq
	}
	if _, err := t.Exec(`UPDATE tasks SET state = 'submitted', message_seq = ?, root_seq = ?, face = ?, share = ?, via = ?, budget = ?, attempt = 0, reason = '', updated_at = ?, caller_group = ? WHERE id = ?`,
		seq, root, w.Face, w.Share, w.Via.String(), w.Budget.String(), now, k.CallerGroup, w.ID); err != nil {
		return k, err
	}
	return w, enqueueWork(t, TopicTask, w.ID)
}

// SubmitTask stores a new task for the message seq, counts it for the agent and adds it to the queue.
func SubmitTask(t engine.Tx, k task.Task, seq int64) (task.Task, error) {
	k.MessageSeq, k.State = seq, task.Submitted
	if err := StoreTask(t, k); err != nil {
		return k, err
	}
	if err := agents.CountCall(t, k); err != nil {
		return k, err
	}
	return k, enqueueWork(t, TopicTask, k.ID)
}

// StoreTask stores a new task without adding it to the queue.
func StoreTask(t engine.Tx, k task.Task) error {
	root := k.RootSeq
	if k.Hop == 0 {
		root = k.MessageSeq
	}
	return t.Send(`INSERT INTO tasks (id, conversation_id, agent_id, agent_handle, caller_kind, caller_id, caller_handle, message_seq, answer_seq, state, reason, face, created_at, updated_at,
			root_seq, hop, replaces, share, via, budget, caller_group)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, k.ID, k.ConversationID, k.AgentID,
		k.AgentHandle, k.CallerKind, k.CallerID, k.CallerHandle,
		k.MessageSeq, k.AnswerSeq, string(k.State), k.Reason, k.Face, clock.Milli(k.CreatedAt), clock.Milli(k.UpdatedAt), root, k.Hop,
		k.Replaces, k.Share, k.Via.String(), k.Budget.String(), k.CallerGroup)
}

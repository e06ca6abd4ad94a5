// Package hooks stores webhooks, push hooks and notices, and queues the events
// that other stores cause for them.
package hooks

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/store/engine"
	"agentsite/store/quotas"
)

// Hooks stores webhooks and push hooks with the events that wait for them. It implements notify.Store.
type Hooks struct {
	db        engine.DB
	quotas    *quotas.Quotas
	listeners *engine.Cache[map[string][]listener] // one entry with the key "", see loadWebhooks
	// hooked is raised when an event waits for a hook, pushed when a notice waits for a browser.
	hooked, pushed *engine.Signal
}

var _ notify.Store = (*Hooks)(nil)

func New(db engine.DB, quotas *quotas.Quotas) *Hooks {
	return &Hooks{db: db, quotas: quotas, listeners: engine.NewCache[map[string][]listener](0), hooked: engine.NewSignal(),
		pushed: engine.NewSignal()}
}

type hookRow struct {
	ID           string `db:"id"`
	Kind         string `db:"kind"`
	OwnerKind    string `db:"owner_kind"`
	OwnerID      string `db:"owner_id"`
	TaskID       string `db:"task_id"`
	Name         string `db:"name"`
	Version      string `db:"version"`
	Label        string `db:"label"`
	URL          string `db:"url"`
	Host         string `db:"host"`
	Events       string `db:"events"`
	Scheme       string `db:"scheme"`
	Secret       []byte `db:"secret"`
	State        string `db:"state"`
	Reason       string `db:"reason"`
	Waiting      int    `db:"waiting"`
	Missed       int    `db:"missed"`
	Failures     int    `db:"failures"`
	FailingSince int64  `db:"failing_since"`
	NextAt       int64  `db:"next_at"`
	CreatedAt    int64  `db:"created_at"`
	UpdatedAt    int64  `db:"updated_at"`
}

const hookColumns = `id, kind, owner_kind, owner_id, task_id, name, version, label, url, host, events, scheme, secret, state, reason,
	waiting, missed, failures, failing_since, next_at, created_at, updated_at`

func (r hookRow) hook() notify.Hook {
	return notify.Hook{ID: r.ID, Kind: notify.Kind(r.Kind), OwnerKind: r.OwnerKind, OwnerID: r.OwnerID,
		TaskID: r.TaskID, Name: r.Name, Version: r.Version,
		Label: r.Label, URL: r.URL, Host: r.Host, Events: notify.SplitTypes(r.Events), Scheme: r.Scheme,
		Sealed: r.Secret, State: notify.State(r.State), Reason: r.Reason,
		Waiting: r.Waiting, Missed: r.Missed, Failures: r.Failures, FailingSince: clock.FromMilli(r.FailingSince),
		NextAt:    clock.FromMilli(r.NextAt),
		CreatedAt: clock.FromMilli(r.CreatedAt), UpdatedAt: clock.FromMilli(r.UpdatedAt)}
}

func hooksOf(rows []hookRow) []notify.Hook {
	out := make([]notify.Hook, len(rows))
	for i, r := range rows {
		out[i] = r.hook()
	}
	return out
}

const hookInsert = `INSERT INTO hooks (id, kind, owner_kind, owner_id, task_id, name, version, label, url, host, events, scheme, secret, state, created_at, updated_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func hookValues(h notify.Hook) []any {
	return []any{h.ID, string(h.Kind), h.OwnerKind, h.OwnerID, h.TaskID, h.Name, h.Version, h.Label, h.URL, h.Host,
		notify.JoinTypes(h.Events), h.Scheme, h.Sealed, string(h.State),
		clock.Milli(h.CreatedAt), clock.Milli(h.UpdatedAt)}
}

// AddWebhook implements notify.Hooks. It counts inactive webhooks of the account as well.
func (d *Hooks) AddWebhook(ctx context.Context, h notify.Hook, max int) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		var n int
		if err := t.Get(&n, `SELECT COUNT(*) FROM hooks WHERE kind = 'webhook' AND owner_id = ?`,
			h.OwnerID); err != nil {
			return err
		}
		if n >= max {
			return fault.New(fault.Conflict, "You have %d webhooks, which is as many as there may be. Delete one first.", n)
		}
		if err := d.quotas.CheckRoom(t, h.OwnerKind, h.OwnerID, int64(len(h.URL)+len(h.Sealed))+quotas.TaskBytes); err != nil {
			return err
		}
		d.listeners.Invalidate(t)
		_, err := t.Exec(hookInsert, hookValues(h)...)
		return err
	})
}

// Webhook implements notify.Hooks. A webhook of another account is a NotFound fault.
func (d *Hooks) Webhook(ctx context.Context, accountID, id string) (notify.Hook, error) {
	var r hookRow
	err := d.db.Get(ctx, &r, `SELECT `+hookColumns+` FROM hooks WHERE kind = 'webhook' AND owner_id = ? AND id = ?`,
		accountID, id)
	return r.hook(), engine.MapError(err)
}

// Webhooks implements notify.Hooks. It returns them in the order of creation, at most 100.
func (d *Hooks) Webhooks(ctx context.Context, accountID string) ([]notify.Hook, error) {
	var rows []hookRow
	err := d.db.List(ctx, &rows, `SELECT `+hookColumns+
		` FROM hooks WHERE kind = 'webhook' AND owner_id = ? ORDER BY id LIMIT 100`, accountID)
	return hooksOf(rows), engine.MapError(err)
}

// SetWebhook implements notify.Hooks. Events that wait are sent to a changed URL at once.
func (d *Hooks) SetWebhook(ctx context.Context, h notify.Hook) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		var was struct {
			State string `db:"state"`
			URL   string `db:"url"`
		}
		if err := t.Get(&was, `SELECT state, url FROM hooks WHERE kind = 'webhook' AND owner_id = ? AND id = ?`,
			h.OwnerID, h.ID); err != nil {
			return err
		}
		d.listeners.Invalidate(t)
		if _, err := t.Exec(`UPDATE hooks SET label = ?, url = ?, host = ?, events = ?, state = ?, reason = ?, updated_at = ? WHERE id = ?`,
			h.Label, h.URL, h.Host, notify.JoinTypes(h.Events), string(h.State), h.Reason, clock.Milli(h.UpdatedAt),
			h.ID); err != nil {
			return err
		}
		switch {
		case h.State != notify.Active:
			return deleteEvents(t, h.ID)
		case was.State != string(notify.Active):
			_, err := t.Exec(`UPDATE hooks SET failures = 0, failing_since = 0, next_at = 0, missed = 0 WHERE id = ?`,
				h.ID)
			return err
		case was.URL != h.URL: // Waiting events are sent to the new URL at once.
			if _, err := t.Exec(`UPDATE hooks SET failures = 0, failing_since = 0, next_at = ?, reason = '' WHERE id = ?`, clock.Milli(h.UpdatedAt), h.ID); err != nil {
				return err
			}
			d.hooked.Raise(t)
		}
		return nil
	})
}

// deleteEvents deletes the waiting events of a hook and their count.
func deleteEvents(t engine.Tx, hookID string) error {
	if _, err := t.Exec(`DELETE FROM hook_events WHERE hook_id = ?`, hookID); err != nil {
		return err
	}
	_, err := t.Exec(`UPDATE hooks SET waiting = 0 WHERE id = ?`, hookID)
	return err
}

// InvalidateListeners drops the cached webhooks, for a transaction that deletes some.
func (d *Hooks) InvalidateListeners(t engine.Tx) { d.listeners.Invalidate(t) }

// DropWebhook implements notify.Hooks. It also deletes the waiting events and attempts.
func (d *Hooks) DropWebhook(ctx context.Context, accountID, id string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		var have string
		if err := t.Get(&have, `SELECT id FROM hooks WHERE kind = 'webhook' AND owner_id = ? AND id = ?`, accountID,
			id); err != nil {
			return err
		}
		d.listeners.Invalidate(t)
		for _, q := range []string{`DELETE FROM hook_events WHERE hook_id = ?`,
			`DELETE FROM hook_attempts WHERE hook_id = ?`, `DELETE FROM hooks WHERE id = ?`} {
			if _, err := t.Exec(q, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutPush implements notify.Hooks. A missing task is a NotFound fault.
func (d *Hooks) PutPush(ctx context.Context, h notify.Hook, max int) (notify.Hook, error) {
	var out notify.Hook
	err := d.db.Write(ctx, func(t engine.Tx) error {
		out = h
		var k struct {
			State     string `db:"state"`
			Reason    string `db:"reason"`
			AnswerSeq int64  `db:"answer_seq"`
			UpdatedAt int64  `db:"updated_at"`
		}
		if err := t.Get(&k, `SELECT state, reason, answer_seq, updated_at FROM tasks WHERE id = ?`,
			h.TaskID); err != nil {
			return err
		}
		// Queue the current state, because the task may have reached it before the hook existed.
		stands := func(hookID string) error {
			s := task.State(k.State)
			if s == task.Submitted {
				return nil
			}
			return d.queueEvent(t, hookID, notify.TaskState,
				notify.Facts{TaskID: h.TaskID, State: s, Reason: k.Reason, Seq: k.AnswerSeq}, k.UpdatedAt)
		}
		var have []struct {
			ID    string `db:"id"`
			Name  string `db:"name"`
			State string `db:"state"`
		}
		if err := t.List(&have, `SELECT id, name, state FROM hooks WHERE kind = 'push' AND task_id = ?`,
			h.TaskID); err != nil {
			return err
		}
		for _, o := range have {
			if o.Name != h.Name {
				continue
			}
			// Waiting events are sent to the new address at once.
			d.hooked.Raise(t)
			out.ID = o.ID
			if _, err := t.Exec(pushUpdate, h.Version, h.URL, h.Host, h.Scheme, h.Sealed, clock.Milli(h.UpdatedAt),
				o.ID); err != nil {
				return err
			}
			if o.State == string(notify.Active) {
				return nil
			}
			return stands(o.ID) // A hook that failed lost its waiting events.
		}
		if len(have) >= max {
			return fault.New(fault.Conflict, "The task has %d push notification configs, which is as many as "+
				"there may be. Delete one first.", len(have))
		}
		if err := d.quotas.CheckRoom(t, h.OwnerKind, h.OwnerID, int64(len(h.URL)+len(h.Sealed))+quotas.TaskBytes); err != nil {
			return err
		}
		if _, err := t.Exec(hookInsert, hookValues(h)...); err != nil {
			return err
		}
		if _, err := t.Exec(`UPDATE tasks SET pushed = 1 WHERE id = ? AND pushed = 0`, h.TaskID); err != nil {
			return err
		}
		return stands(h.ID)
	})
	return out, err
}

const pushUpdate = `UPDATE hooks SET version = ?, url = ?, host = ?, scheme = ?, secret = ?, updated_at = ?, state = 'active', reason = '', failures = 0, failing_since = 0, next_at = 0
	WHERE id = ?`

// Pushes implements notify.Hooks. It returns at most 100.
func (d *Hooks) Pushes(ctx context.Context, taskID string) ([]notify.Hook, error) {
	var rows []hookRow
	err := d.db.List(ctx, &rows, `SELECT `+hookColumns+
		` FROM hooks WHERE kind = 'push' AND task_id = ? ORDER BY name LIMIT 100`, taskID)
	return hooksOf(rows), engine.MapError(err)
}

const pushDelete = `DELETE FROM hooks WHERE kind = 'push' AND task_id = ? AND name = ?`

// DropPush implements notify.Hooks. It also deletes the waiting events.
func (d *Hooks) DropPush(ctx context.Context, taskID, name string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`DELETE FROM hook_events WHERE hook_id IN (SELECT id FROM hooks WHERE kind = 'push' AND task_id = ? AND name = ?)`, taskID, name); err != nil {
			return err
		}
		_, err := t.Exec(pushDelete, taskID, name)
		return err
	})
}

// Statements that delete the push hooks of a conversation's tasks, and first their events. The argument
// is the conversation's id.
const (
	RoomEventsDelete = `DELETE FROM hook_events WHERE hook_id IN (SELECT h.id FROM tasks k JOIN hooks h ON h.kind = 'push' AND h.task_id = k.id WHERE k.conversation_id = ?)`
	RoomPushesDelete = `DELETE FROM hooks WHERE kind = 'push' AND task_id IN (SELECT id FROM tasks WHERE conversation_id = ?)`
)

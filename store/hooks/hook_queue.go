package hooks

import (
	"context"
	"encoding/json"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/store/engine"
)

// dueHooksQuery repeats the condition of the index hooks_due word for word, because SQLite uses a
// partial index only then. It also requires an event: a wrong count of waiting events would make the
// worker loop.
const dueHooksQuery = `SELECT ` + hookColumns + ` FROM hooks WHERE waiting > 0 AND state = 'active' AND next_at <= ?
	AND EXISTS (SELECT 1 FROM hook_events e WHERE e.hook_id = hooks.id) AND id NOT IN (SELECT value FROM json_each(?)) AND host NOT IN (SELECT value FROM json_each(?)) AND owner_id NOT IN (SELECT value FROM json_each(?)) AND (failures = 0 OR ? = 0) ORDER BY next_at LIMIT ?`

// DueHooks implements notify.Queue. A hook that is due again later counts for later even if there is no
// room for it.
func (d *Hooks) DueHooks(ctx context.Context, now time.Time, busy notify.Busy, limit int) (due []notify.Hook,
	later time.Time, err error) {
	at := clock.Milli(now)
	args := []any{at}
	for _, list := range [][]string{busy.IDs, busy.Hosts, busy.Owners} {
		// A nil list would encode as null, and NOT IN a list with a NULL is never true.
		b, err := json.Marshal(append([]string{}, list...))
		if err != nil {
			return nil, later, err
		}
		args = append(args, string(b))
	}
	var rows []hookRow
	if err := d.db.List(ctx, &rows, dueHooksQuery, append(args, busy.Trying, limit)...); err != nil {
		return nil, later, engine.MapError(err)
	}
	var next int64
	if err := d.db.Get(ctx, &next, `SELECT COALESCE(MIN(next_at), 0) FROM hooks WHERE waiting > 0 AND state = 'active' AND next_at > ?`, at); err != nil {
		return nil, later, engine.MapError(err)
	}
	return hooksOf(rows), clock.FromMilli(next), nil
}

// NextEvent implements notify.Queue. It does not remove the event; Settle does.
func (d *Hooks) NextEvent(ctx context.Context, hookID string) (notify.Hook, notify.Event, error) {
	var r struct {
		hookRow
		Seq     int64  `db:"seq"`
		EventID string `db:"event_id"`
		Type    string `db:"type"`
		Facts   string `db:"facts"`
		At      int64  `db:"at"`
	}
	if err := d.db.Get(ctx, &r, `SELECT h.*, e.id AS seq, e.event_id, e.type, e.facts, e.created_at AS at
		FROM (SELECT `+hookColumns+` FROM hooks WHERE id = ? AND state = 'active') h JOIN hook_events e ON e.hook_id = h.id ORDER BY e.id LIMIT 1`, hookID); err != nil {
		return notify.Hook{}, notify.Event{}, engine.MapError(err)
	}
	e := notify.Event{Seq: r.Seq, ID: r.EventID, Type: notify.Type(r.Type), At: clock.FromMilli(r.At)}
	if err := json.Unmarshal([]byte(r.Facts), &e.Facts); err != nil {
		// An event without facts cannot be delivered, so it leaves the queue.
		d.db.Log().Error("skip a damaged event", "hook", hookID, "event", r.EventID, "error", err)
		e.Facts = notify.Facts{}
	}
	return r.hook(), e, nil
}

// Settle implements notify.Queue. It does nothing for a hook that was deleted, and leaves the state of
// one that its owner has changed since o.Of.
func (d *Hooks) Settle(ctx context.Context, o notify.Outcome) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		var updated int64
		if err := t.Get(&updated, `SELECT COALESCE(MAX(updated_at), -1) FROM hooks WHERE id = ?`,
			o.HookID); err != nil || updated < 0 {
			return err
		}
		same := o.Of.IsZero() || updated == clock.Milli(o.Of)
		gone := int64(0)
		if o.Gone {
			res, err := t.Exec(`DELETE FROM hook_events WHERE hook_id = ? AND id = ?`, o.HookID, o.Seq)
			if err != nil {
				return err
			}
			if gone, err = res.RowsAffected(); err != nil {
				return err
			}
		}
		if _, err := t.Exec(`UPDATE hooks SET waiting = waiting - ? WHERE id = ?`, gone, o.HookID); err != nil {
			return err
		}
		if same {
			if _, err := t.Exec(`UPDATE hooks SET failures = ?, failing_since = ?, next_at = ?, reason = ? WHERE id = ?`,
				o.Failures, clock.Milli(o.FailingSince), clock.Milli(o.NextAt), o.Reason, o.HookID); err != nil {
				return err
			}
		}
		if o.Attempt != nil {
			if err := insertAttempt(t, o.HookID, *o.Attempt); err != nil {
				return err
			}
		}
		if !o.Failed || !same {
			return nil
		}
		d.listeners.Invalidate(t)
		if _, err := t.Exec(`UPDATE hooks SET state = 'failed' WHERE id = ? AND state = 'active'`,
			o.HookID); err != nil {
			return err
		}
		if err := deleteEvents(t, o.HookID); err != nil {
			return err
		}
		if o.Notice.Kind == "" {
			return nil
		}
		n := o.Notice
		n.ID = ident.NewID()
		if err := t.Get(&n.AccountID, `SELECT owner_id FROM hooks WHERE id = ?`, o.HookID); err != nil {
			return err
		}
		return d.insertNotice(t, n)
	})
}

const attemptInsert = `INSERT INTO hook_attempts (hook_id, event_id, type, at, status, took, error) SELECT id, ?, ?, ?, ?, ?, ? FROM hooks WHERE id = ? AND kind = 'webhook'`

// insertAttempt stores an attempt of a webhook and deletes the oldest beyond notify.MaxAttempts.
// Attempts of push hooks are not stored, because no page shows them.
func insertAttempt(t engine.Tx, hookID string, a notify.Attempt) error {
	res, err := t.Exec(attemptInsert, a.EventID, string(a.Type), clock.Milli(a.At), a.Status, a.Took.Milliseconds(),
		a.Error, hookID)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n == 0 {
		return err
	}
	_, err = t.Exec(`DELETE FROM hook_attempts WHERE hook_id = ?1 AND id <= (SELECT id FROM hook_attempts WHERE hook_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`, hookID, notify.MaxAttempts)
	return err
}

// AddAttempt implements notify.Queue, for a test delivery that the owner asked for.
func (d *Hooks) AddAttempt(ctx context.Context, hookID string, a notify.Attempt) error {
	return d.db.Write(ctx, func(t engine.Tx) error { return insertAttempt(t, hookID, a) })
}

// Attempts implements notify.Queue. It returns the newest first, at most notify.MaxAttempts.
func (d *Hooks) Attempts(ctx context.Context, hookID string, limit int) ([]notify.Attempt, error) {
	var rows []struct {
		EventID string `db:"event_id"`
		Type    string `db:"type"`
		At      int64  `db:"at"`
		Status  int    `db:"status"`
		Took    int64  `db:"took"`
		Error   string `db:"error"`
	}
	if err := d.db.List(ctx, &rows, `SELECT event_id, type, at, status, took, error FROM hook_attempts WHERE hook_id = ? ORDER BY id DESC LIMIT ?`, hookID, min(limit, notify.MaxAttempts)); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]notify.Attempt, len(rows))
	for i, r := range rows {
		out[i] = notify.Attempt{EventID: r.EventID, Type: notify.Type(r.Type), At: clock.FromMilli(r.At),
			Status: r.Status, Took: time.Duration(r.Took) * time.Millisecond, Error: r.Error}
	}
	return out, nil
}

// Hooked signals that hooks may have events. One signal may stand for many events, and for events that
// were removed since. It is for one reader.
func (d *Hooks) Hooked() <-chan struct{} { return d.hooked.Wake() }

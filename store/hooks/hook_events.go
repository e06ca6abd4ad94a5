package hooks

import (
	"encoding/json"
	"fmt"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/store/engine"
)

// listener is an active webhook with the fields that decide whether an event goes to it.
type listener struct {
	ID      string `db:"id"`
	OwnerID string `db:"owner_id"`
	Events  string `db:"events"` // names of the event types, each with a space before and after it
}

func (l listener) wants(t notify.Type) bool { return strings.Contains(l.Events, " "+string(t)+" ") }

// listenersQuery reads webhooks only, because there may be very many push hooks.
const listenersQuery = `SELECT id, owner_id, events FROM hooks WHERE kind = 'webhook' AND state = 'active'`

// loadWebhooks returns all active webhooks by account. They are cached as a whole, so that without
// webhooks a change costs no query. The caller must not change the map.
func (d *Hooks) loadWebhooks(t engine.Tx) (map[string][]listener, error) {
	changed := d.listeners.Invalidated() // true if this transaction changed webhooks, so that the cache is outdated
	all, generation, ok := d.listeners.Get("")
	if ok && !changed {
		return all, nil
	}
	var rows []listener
	if err := t.List(&rows, listenersQuery); err != nil {
		return nil, err
	}
	all = make(map[string][]listener)
	for _, l := range rows {
		all[l.OwnerID] = append(all[l.OwnerID], l)
	}
	if !changed {
		d.listeners.Put("", all, generation)
	}
	return all, nil
}

// queueEvent queues an event for an active hook. If notify.MaxWaiting events wait already, the event is
// dropped and counted as missed.
func (d *Hooks) queueEvent(t engine.Tx, hookID string, typ notify.Type, f notify.Facts, at int64) error {
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	// A hook without waiting events is due now, behind those that are due earlier.
	res, err := t.Exec(`UPDATE hooks SET waiting = waiting + 1, next_at = CASE WHEN waiting = 0 AND failures = 0 THEN ? ELSE next_at END WHERE id = ? AND state = 'active' AND waiting < ?`,
		clock.Milli(clock.Now()), hookID, notify.MaxWaiting)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		if err == nil {
			_, err = t.Exec(`UPDATE hooks SET missed = missed + 1 WHERE id = ? AND state = 'active'`, hookID)
		}
		return err
	}
	d.hooked.Raise(t)
	_, err = t.Exec(`INSERT INTO hook_events (hook_id, event_id, type, facts, created_at) VALUES (?, ?, ?, ?, ?)`,
		hookID, "evt_"+ident.NewID(), string(typ), string(b), at)
	return err
}

// notifyAccount queues an event for each webhook of an account that subscribes to its type. all is the
// result of loadWebhooks.
func (d *Hooks) notifyAccount(t engine.Tx, all map[string][]listener, accountID string, typ notify.Type,
	f notify.Facts, at int64) error {
	for _, l := range all[accountID] {
		if l.wants(typ) {
			if err := d.queueEvent(t, l.ID, typ, f, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// NotifyPushes queues the current state of a task, given in f, for the push hooks of the task.
func (d *Hooks) NotifyPushes(t engine.Tx, f notify.Facts, at int64) error {
	var ids []string
	if err := t.List(&ids, `SELECT id FROM hooks WHERE kind = 'push' AND task_id = ? ORDER BY id`,
		f.TaskID); err != nil {
		return err
	}
	for _, id := range ids {
		if err := d.queueEvent(t, id, notify.TaskState, f, at); err != nil {
			return err
		}
	}
	return nil
}

// NotifyMessage queues an event for the webhooks of the people in a conversation, except the sender, if
// m is a text, and except those who blocked the sender.
func (d *Hooks) NotifyMessage(t engine.Tx, m chat.Message) error {
	if m.Kind != chat.Text {
		return nil
	}
	all, err := d.loadWebhooks(t)
	if err != nil || len(all) == 0 {
		return err
	}
	var people []string
	if err := t.List(&people, `SELECT member_id FROM members WHERE conversation_id = ? AND kind = 'person' AND left_at = 0
		AND member_id NOT IN (SELECT person_id FROM blocks WHERE blocked_id = ?)`, m.ConversationID, m.Sender.ID); err != nil {
		return err
	}
	for _, id := range people {
		if id == m.Sender.ID {
			continue
		}
		if err := d.notifyAccount(t, all, id, notify.MessageSaid,
			notify.Facts{ConversationID: m.ConversationID, Seq: m.Seq}, clock.Milli(m.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

// NotifyTask queues events for the end or the question of a task: for the caller's webhooks, and with
// pushed also for push hooks. Guests and other portals have no webhooks.
func (d *Hooks) NotifyTask(t engine.Tx, k task.Task, m chat.Message, pushed bool) error {
	at := clock.Milli(k.UpdatedAt)
	f := notify.Facts{TaskID: k.ID, State: k.State, Reason: k.Reason, Seq: m.Seq}
	if pushed {
		if err := d.NotifyPushes(t, f, at); err != nil {
			return err
		}
	}
	all, err := d.loadWebhooks(t)
	if err != nil || len(all) == 0 || k.CallerKind == string(ident.Guest) || k.CallerKind == string(ident.Portal) {
		return err
	}
	typ := notify.TaskAsks
	if k.State.Terminal() {
		typ = notify.TaskEnded
	}
	return d.notifyAccount(t, all, k.CallerID, typ, f, at)
}

// NotifyRegistration queues an event for the webhooks of a new agent's owner. A new agent has no
// co-owners.
func (d *Hooks) NotifyRegistration(t engine.Tx, a hub.Agent) error {
	all, err := d.loadWebhooks(t)
	if err != nil || len(all) == 0 {
		return err
	}
	return d.notifyAccount(t, all, a.OwnerID, notify.AgentRegistered, notify.Facts{Agent: a.Name, Version: a.Version},
		clock.Milli(a.CreatedAt))
}

// NotifyOwners queues an event for the webhooks of an agent's owner and co-owners.
func (d *Hooks) NotifyOwners(t engine.Tx, agentID, ownerID string, typ notify.Type, f notify.Facts, at int64) error {
	all, err := d.loadWebhooks(t)
	if err != nil || len(all) == 0 {
		return err
	}
	var others []string
	if err := t.List(&others, `SELECT account_id FROM agent_owners WHERE agent_id = ?`, agentID); err != nil {
		return err
	}
	for _, id := range append(others, ownerID) {
		if err := d.notifyAccount(t, all, id, typ, f, at); err != nil {
			return err
		}
	}
	return nil
}

// NotifyLiveness queues an event for the owners' webhooks if the state differs from the stored one. Call
// it before l is stored.
func (d *Hooks) NotifyLiveness(t engine.Tx, agentID string, l hub.Liveness) error {
	all, err := d.loadWebhooks(t)
	if err != nil || len(all) == 0 {
		return err
	}
	var was struct {
		Name    string `db:"name"`
		OwnerID string `db:"owner_id"`
		State   string `db:"live_state"`
	}
	if err := t.Get(&was, `SELECT name, COALESCE(owner_id, '') AS owner_id, live_state FROM agents WHERE id = ? AND deleted_at = 0`, agentID); err != nil {
		return err
	}
	if was.State == string(l.State) {
		return nil
	}
	return d.NotifyOwners(t, agentID, was.OwnerID, notify.AgentLiveness,
		notify.Facts{Agent: was.Name, Live: string(l.State), Was: was.State, Reason: l.Reason},
		clock.Milli(clock.Now()))
}

// NotifyReport queues an event for the webhooks of the operators.
func (d *Hooks) NotifyReport(t engine.Tx, r hub.Report) error {
	all, err := d.loadWebhooks(t)
	if err != nil || len(all) == 0 {
		return err
	}
	var operators []string
	if err := t.List(&operators, `SELECT id FROM accounts WHERE operator = 1 AND disabled_at = 0`); err != nil {
		return err
	}
	for _, id := range operators {
		if err := d.notifyAccount(t, all, id, notify.AgentReported,
			notify.Facts{Agent: r.AgentName, ReportID: r.ID, Reason: r.Reason}, clock.Milli(r.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

package agents

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/store/engine"
	"agentsite/store/hooks"
)

// Health stores the liveness of agents. It implements hub.Health and, with
// Agents and Owners, liveness.Store.
type Health struct {
	db     engine.DB
	agents *Agents
	hooks  *hooks.Hooks
}

func NewHealth(db engine.DB, agents *Agents, hooks *hooks.Hooks) *Health {
	return &Health{db, agents, hooks}
}

// A history consists of contacts, oldest first, of 8 bytes each, big-endian: the time in seconds (5
// bytes), the index in liveCodes (1), and the latency as a float of microseconds with 5 bits of exponent
// before 11 of mantissa (2).
const (
	ContactBytes = 8
	mantissaBits = 11
)

// liveCodes are the states of packed histories by number. New ones are only appended, because numbers
// are on disk.
var liveCodes = []hub.Live{hub.Unknown, hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable}

func packContact(c hub.Contact) []byte {
	code := max(slices.Index(liveCodes, c.State), 0)
	b := binary.BigEndian.AppendUint64(nil, uint64(max(c.At.Unix(),
		0))<<24|uint64(code)<<16|uint64(packLatency(c.Latency)))
	return b
}

func packLatency(d time.Duration) uint16 {
	us, e := uint64(max(d.Microseconds(), 0)), uint16(0)
	for us >= 1<<mantissaBits {
		us, e = us>>1, e+1
	}
	if e > 31 {
		return 1<<16 - 1
	}
	return e<<mantissaBits | uint16(us)
}

func unpackLatency(v uint16) time.Duration {
	return time.Duration(v&(1<<mantissaBits-1)) << (v >> mantissaBits) * time.Microsecond
}

// addContact appends to a packed history, and drops the oldest entries beyond hub.MaxHistory.
func addContact(history []byte, c hub.Contact) []byte {
	history = history[:len(history)-len(history)%ContactBytes]
	if over := len(history)/ContactBytes - hub.MaxHistory + 1; over > 0 {
		history = history[over*ContactBytes:]
	}
	return append(slices.Clip(history), packContact(c)...)
}

func unpackHistory(b []byte) []hub.Contact {
	out := make([]hub.Contact, 0, len(b)/ContactBytes)
	for ; len(b) >= ContactBytes; b = b[ContactBytes:] {
		v := binary.BigEndian.Uint64(b)
		c := hub.Contact{At: time.Unix(int64(v>>24), 0).UTC(), State: hub.Unknown, Latency: unpackLatency(uint16(v))}
		if code := int(v >> 16 & 0xff); code < len(liveCodes) {
			c.State = liveCodes[code]
		}
		out = append(out, c)
	}
	return out
}

// SetLiveness implements liveness.Store. It adds to the history unless l has no time of a contact, and
// notifies the owners' webhooks of a changed state.
func (d *Health) SetLiveness(ctx context.Context, agentID string, l hub.Liveness, next time.Time, failures int) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		d.agents.agents.Invalidate(t)
		if err := d.hooks.NotifyLiveness(t, agentID, l); err != nil {
			return err
		}
		res, err := t.Exec(`UPDATE agents SET live_state = ?, live_reason = ?, live_latency = ?, live_at = ?, check_at = ?, failures = ? WHERE id = ? AND deleted_at = 0`,
			string(l.State), l.Reason, l.Latency.Milliseconds(), clock.Milli(l.CheckedAt), clock.Milli(next), failures,
			agentID)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return fault.New(fault.NotFound, "The agent is gone.")
		}
		if l.CheckedAt.IsZero() {
			return nil
		}
		var history []byte
		if err := t.Get(&history, `SELECT history FROM agent_health WHERE agent_id = ?`, agentID); err != nil &&
			!errors.Is(err, sql.ErrNoRows) {
			return err
		}
		history = addContact(history, hub.Contact{At: l.CheckedAt, State: l.State, Latency: l.Latency})
		_, err = t.Exec(`INSERT INTO agent_health (agent_id, history) VALUES (?, ?) ON CONFLICT (agent_id) DO UPDATE SET history = excluded.history`, agentID, history)
		return err
	})
}

type checkupRow struct {
	agentRow
	Failures int    `db:"failures"`
	History  []byte `db:"history"`
}

const checkupQuery = `SELECT ` + agentColumns + `, a.failures, h.history
	FROM agents a LEFT JOIN accounts o ON o.id = a.owner_id LEFT JOIN agent_health h ON h.agent_id = a.id
	WHERE a.deleted_at = 0 AND COALESCE(o.disabled_at, 0) = 0 `

func (r checkupRow) checkup() (hub.Checkup, error) {
	a, err := r.agent()
	return hub.Checkup{Agent: a, Failures: r.Failures, History: unpackHistory(r.History)}, err
}

// dueQuery repeats the conditions of the index agents_check word for word, because SQLite uses a partial
// index only then.
const dueQuery = checkupQuery + `AND a.kind NOT IN ('builtin', 'link') AND a.status IN ('active', 'deprecated', 'draft')
	AND a.check_at <= ? ORDER BY a.check_at LIMIT ?`

// Due implements liveness.Store. Agents that cannot be read are logged and left out.
func (d *Health) Due(ctx context.Context, now time.Time, limit int) ([]hub.Checkup, error) {
	var rows []checkupRow
	if err := d.db.List(ctx, &rows, dueQuery, clock.Milli(now), limit); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]hub.Checkup, 0, len(rows))
	for _, r := range rows {
		c, err := r.checkup()
		if err != nil {
			d.db.Log().Error("skip a damaged agent", "agent", r.ID, "error", err)
			continue
		}
		out = append(out, c)
	}
	return out, nil
}

// Checkup implements liveness.Store. A deleted agent, or one of a disabled owner, is a NotFound fault.
func (d *Health) Checkup(ctx context.Context, agentID string) (hub.Checkup, error) {
	var r checkupRow
	if err := d.db.Get(ctx, &r, checkupQuery+`AND a.id = ?`, agentID); err != nil {
		return hub.Checkup{}, engine.MapError(err)
	}
	return r.checkup()
}

// DueAt implements liveness.Store. It never postpones a check that is due earlier.
func (d *Health) DueAt(ctx context.Context, agentID string, at time.Time) error {
	return d.agents.aboutAgent(ctx, agentID, func(t engine.Tx, _ string) error {
		_, err := t.Exec(`UPDATE agents SET check_at = MIN(check_at, ?) WHERE id = ?`, clock.Milli(at), agentID)
		return err
	})
}

// History implements hub.Health. An agent that was never contacted has an empty history.
func (d *Health) History(ctx context.Context, agentID string) ([]hub.Contact, error) {
	var history []byte
	err := d.db.Get(ctx, &history, `SELECT history FROM agent_health WHERE agent_id = ?`, agentID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, engine.MapError(err)
	}
	return unpackHistory(history), nil
}

// Package quotas reads the counters of stored bytes and refuses writes beyond the bounds. The counters
// are kept by triggers of the database (migration 0013), in the transaction of the write that they count.
package quotas

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/quota"
	"agentsite/store/engine"
	"agentsite/store/space"
)

// Quotas checks writes against the bounds. It is safe for concurrent use.
type Quotas struct {
	db     engine.DB
	limits quota.Limits
	disk   *space.Space
}

// New returns quotas with the given bounds; nil has none. disk may be nil.
func New(db engine.DB, limits quota.Limits, disk *space.Space) *Quotas {
	return &Quotas{db, limits, disk}
}

// RowBytes is the number of bytes that a message counts besides its text, TaskBytes those of a task, as
// in the triggers.
const (
	RowBytes  = 600
	TaskBytes = 800
)

const dayMilli = 24 * 60 * 60 * 1000

// usageRow is a counter. Exempt is true for an operator, who is never refused.
type usageRow struct {
	Kind   string `db:"kind"`
	ID     string `db:"id"`
	Bytes  int64  `db:"bytes"`
	Day    int64  `db:"day"`
	Today  int64  `db:"today"`
	Exempt bool   `db:"exempt"`
}

const usageColumns = `kind, id, bytes, day, today,
	kind = 'account' AND EXISTS (SELECT 1 FROM accounts a WHERE a.id = storage.id AND a.operator = 1) AS exempt`

func (q *Quotas) usage(r usageRow, now time.Time) quota.Usage {
	u := quota.Usage{Kind: quota.Kind(r.Kind), ID: r.ID, Total: max(r.Bytes, 0), Bound: q.limits[quota.Kind(r.Kind)]}
	if r.Day == clock.Milli(now)/dayMilli {
		u.Today = r.Today
	}
	if r.Exempt {
		u.Bound = quota.Bound{}
	}
	return u
}

// ownerOf returns the owner of the bytes that a member or caller with a raw kind and id stores. ok is
// false if its bytes are not counted. A guest's owner is its network, which needs a look at its row.
func ownerOf(kind, id string) (owner quota.Kind, key string, ok bool) {
	switch portal := ident.PortalOf(id); {
	case id == "":
		return "", "", false
	case kind == string(ident.Person) || kind == string(ident.Operator):
		return quota.Account, id, true
	case kind == string(ident.AgentBot):
		return quota.Agent, id, true
	case kind != string(ident.Guest) && kind != string(ident.Portal):
		return "", "", false
	case portal != id:
		return quota.Portal, portal, true
	default:
		return quota.Address, id, true
	}
}

const (
	usageQuery = `SELECT ` + usageColumns + ` FROM storage WHERE kind = ? AND id = ?`
	guestQuery = `SELECT ` + usageColumns + ` FROM storage WHERE kind = 'address' AND id = (SELECT g.place FROM storage g WHERE g.kind = 'guest' AND g.id = ?)`
	// ownedQuery finds the counters of an agent and of its owner.
	ownedQuery = `SELECT ` + usageColumns + ` FROM storage WHERE kind = 'agent' AND id = ?1
		UNION ALL SELECT ` + usageColumns + ` FROM storage WHERE kind = 'account' AND id = (SELECT owner_id FROM agents WHERE id = ?1)`
)

// CheckRoom returns a RateLimited fault if the member or caller with this kind and id may not store add
// more bytes, and an Unavailable fault if the disk has too little room; the disk is not checked for agents
// and operators. Call it before the first change of a write, so that a refusal rolls nothing back.
func (q *Quotas) CheckRoom(t engine.Tx, kind, id string, add int64) error {
	owner, key, ok := ownerOf(kind, id)
	if !ok {
		return nil
	}
	if owner == quota.Agent {
		return q.CheckAgent(t, key, add)
	}
	query, args := usageQuery, []any{string(owner), key}
	if owner == quota.Address {
		query, args = guestQuery, []any{key}
	}
	var r usageRow
	err := t.Get(&r, query, args...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	r.Kind = string(owner) // without a row, nothing is stored yet
	subject, remedy := "You have", "Delete messages, files or agents that you do not need, then try again; your account page shows how much is stored."
	switch owner {
	case quota.Address:
		subject, remedy = "The guests of your network have", "Sign up to get room of your own."
	case quota.Portal:
		subject, remedy = "The people of your portal have", "Delete conversations here that are not needed, then try again."
	}
	if !r.Exempt {
		if err := q.disk.Check(add, owner == quota.Account); err != nil {
			return err
		}
	}
	now := clock.Now()
	return q.usage(r, now).Check(add, now, subject, remedy)
}

// CheckAgent returns a RateLimited fault if an agent, or the account that owns it, may not store add more
// bytes. The outcome of a task is not checked, so that no answer is lost; the next question is.
func (q *Quotas) CheckAgent(t engine.Tx, agentID string, add int64) error {
	if len(q.limits) == 0 {
		return nil
	}
	var rows []usageRow
	if err := t.List(&rows, ownedQuery, agentID); err != nil {
		return err
	}
	now := clock.Now()
	for _, r := range rows {
		subject := "This agent has"
		if quota.Kind(r.Kind) == quota.Account {
			subject = "The owner of this agent has"
		}
		if err := q.usage(r, now).Check(add, now, subject, "Ask another agent, or its owner to delete data."); err != nil {
			return err
		}
	}
	return nil
}

// CheckGuests returns an Unavailable fault if the disk has too little room for a new guest.
func (q *Quotas) CheckGuests() error { return q.disk.Check(RowBytes, false) }

// PlaceGuest records the network of a new guest, for which the bytes of the guest count.
func PlaceGuest(t engine.Tx, guestID, addr string) error {
	network := quota.Network(addr)
	if network == "" {
		return nil
	}
	_, err := t.Exec(`INSERT INTO storage (kind, id, bytes, place) VALUES ('guest', ?, 0, ?) ON CONFLICT (kind, id) DO NOTHING`, guestID, network)
	return err
}

// Used returns the usage of the actor's account, network or portal.
func (q *Quotas) Used(ctx context.Context, actor ident.Actor) (quota.Usage, error) {
	owner, key, ok := ownerOf(string(actor.Kind), actor.ID)
	if !ok {
		return quota.Usage{}, fault.New(fault.NotFound, "Nothing is counted for you.")
	}
	query, args := usageQuery, []any{string(owner), key}
	if owner == quota.Address {
		query, args = guestQuery, []any{key}
	}
	var r usageRow
	err := q.db.Get(ctx, &r, query, args...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return quota.Usage{}, engine.MapError(err)
	}
	r.Kind = string(owner)
	return q.usage(r, clock.Now()), nil
}

const greatestQuery = `SELECT ` + usageColumns + ` FROM storage WHERE kind = ? AND bytes > 0 ORDER BY bytes DESC LIMIT ?`

// Greatest returns the owners of a kind with the most stored bytes, the greatest first.
func (q *Quotas) Greatest(ctx context.Context, kind quota.Kind, limit int) ([]quota.Owner, error) {
	var rows []usageRow
	if err := q.db.List(ctx, &rows, greatestQuery, string(kind), limit); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]quota.Owner, len(rows))
	for i, r := range rows {
		out[i].Usage = q.usage(r, clock.Now())
		names := map[quota.Kind]string{quota.Account: `SELECT name FROM accounts WHERE id = ?`, quota.Agent: `SELECT name FROM agents WHERE id = ?`}
		if query := names[kind]; query != "" {
			if err := q.db.Get(ctx, &out[i].Name, query, r.ID); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, engine.MapError(err)
			}
		}
	}
	return out, nil
}

// WrongQuery finds counters that differ from the rows that they count: kind, id, counted and stored
// bytes. It reads the sizes of all rows, without their texts.
const WrongQuery = `SELECT kind, id, SUM(counted) AS counted, SUM(stored) AS stored FROM
		(SELECT kind, id, bytes AS counted, 0 AS stored FROM storage UNION ALL SELECT kind, id, 0, bytes FROM storage_sums) AS counters
	GROUP BY kind, id HAVING SUM(counted) <> SUM(stored)`

// WrongRow is a row of WrongQuery.
type WrongRow struct {
	Kind    string `db:"kind"`
	ID      string `db:"id"`
	Counted int64  `db:"counted"`
	Stored  int64  `db:"stored"`
}

// FindWrong returns the counters that differ from the rows that they count.
func (q *Quotas) FindWrong(ctx context.Context) ([]WrongRow, error) {
	var out []WrongRow
	err := q.db.List(ctx, &out, WrongQuery)
	return out, engine.MapError(err)
}

// SweepGuests deletes the counters of guests and networks for which nothing is stored, and that stored
// nothing yesterday or today.
func (q *Quotas) SweepGuests(ctx context.Context) error {
	yesterday := clock.Milli(clock.Now())/dayMilli - 1
	return q.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM storage WHERE kind IN ('guest', 'address') AND bytes <= 0 AND day < ?`, yesterday)
		return err
	})
}

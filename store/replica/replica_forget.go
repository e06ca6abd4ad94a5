package replica

import (
	"context"
	"database/sql"
	"time"

	"agentsite/internal/record"
	"agentsite/store/engine"
)

// voidAgents deletes the records of a portal's agents for which the SQL condition where is true, and
// returns their number. Their versions stay in the slots, so that older records are still refused.
func voidAgents(t engine.Tx, p *portalRow, where string, args ...any) (int64, error) {
	if p.Slots == 0 {
		return 0, nil
	}
	where = ` WHERE portal = ? AND n IS NOT NULL AND ` + where
	args = append([]any{p.ID}, args...)
	var sum struct{ Rows, Agents, Bytes int64 }
	if err := t.Get(&sum, `SELECT COUNT(*) AS rows, COALESCE(SUM(1 - gone), 0) AS agents, COALESCE(SUM(size), 0) AS bytes FROM agents`+where, args...); err != nil || sum.Rows == 0 {
		return 0, err
	}
	if _, err := t.Exec(`DELETE FROM wires WHERE n IN (SELECT n FROM agents`+where+`)`, args...); err != nil {
		return 0, err
	}
	if _, err := t.Exec(`UPDATE agents SET n = NULL, size = 0`+where, args...); err != nil {
		return 0, err
	}
	p.Agents -= sum.Agents
	p.Bytes -= sum.Bytes
	p.notWhole()
	return sum.Rows, nil
}

// deleteAgents deletes the slots, with their versions, of agents without a record for which where is
// true.
func deleteAgents(t engine.Tx, p *portalRow, where string, args ...any) error {
	res, err := t.Exec(`DELETE FROM agents WHERE portal = ? AND n IS NULL AND `+where, append([]any{p.ID}, args...)...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if n > 0 {
		p.Slots -= n
		p.Bytes -= n * slotBytes
		p.changed = true
	}
	return err
}

// voidSaid deletes the records of a portal that are no agents' and for which where is true. Their
// versions stay.
func voidSaid(t engine.Tx, p *portalRow, where string, args ...any) error {
	where = ` WHERE portal = ? AND wire IS NOT NULL AND ` + where
	args = append([]any{p.ID}, args...)
	var sum struct{ Rows, Heads, Bytes int64 }
	if err := t.Get(&sum, `SELECT COUNT(*) AS rows, COUNT(CASE WHEN type = 'head/1' THEN 1 END) AS heads, COALESCE(SUM(length(wire)), 0) AS bytes FROM said`+where, args...); err != nil || sum.Rows == 0 {
		return err
	}
	if _, err := t.Exec(`UPDATE said SET wire = NULL`+where, args...); err != nil {
		return err
	}
	p.Bytes -= sum.Bytes
	p.changed = true
	if sum.Heads > 0 {
		p.HeadIssued, p.HeadExpires, p.HeadCount = 0, 0, 0
	}
	return nil
}

// Drop implements federation.Replica, in one transaction; LetGo is for portals with many records.
func (r *Replica) Drop(ctx context.Context, portal record.PortalID) error {
	return r.changePortals(ctx, func(t engine.Tx) error {
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found {
			return err
		}
		if _, err := deleteReplaced(t, p, `TRUE`); err != nil {
			return err
		}
		if _, err := voidAgents(t, p, `TRUE`); err != nil {
			return err
		}
		p.notWhole()
		return voidSaid(t, p, `type NOT IN ('portal/1', 'head/1')`)
	})
}

// LetGo implements federation.Replica. Call it until done, so that each write is short.
func (r *Replica) LetGo(ctx context.Context, portal record.PortalID, most int) (done bool, err error) {
	err = r.changePortals(ctx, func(t engine.Tx) error {
		done = true
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found {
			return err
		}
		p.notWhole()
		aside, err := deleteReplaced(t, p, `n IN (SELECT n FROM replaced WHERE portal = ? LIMIT ?)`, p.ID, most)
		if err != nil {
			return err
		}
		n, err := voidAgents(t, p, `akey IN (SELECT akey FROM agents WHERE portal = ? AND n IS NOT NULL ORDER BY akey LIMIT ?)`, p.ID, most)
		done = n < int64(most) && aside < int64(most)
		return err
	})
	return done && err == nil, err
}

// Omit implements federation.Replica. The position of the sync stays, because the head does not cover
// these records.
func (r *Replica) Omit(ctx context.Context, portal record.PortalID, keys []record.Hash) error {
	return r.inSteps(ctx, portal, keys, func(t engine.Tx, p *portalRow, key record.Hash) error {
		if _, err := deleteReplaced(t, p, `akey = ?`, key[:]); err != nil {
			return err
		}
		was := *p
		_, err := voidAgents(t, p, `akey = ?`, key[:])
		p.keepPosition(&was) // The deleted record is not before the position, because the head does not cover it.
		return err
	})
}

// keepPosition restores the position and the whole head of was, which voidAgents resets.
func (p *portalRow) keepPosition(was *portalRow) {
	p.AtEpoch, p.AtSeq, p.WholeEpoch, p.WholeSeq, p.WholeHash = was.AtEpoch, was.AtSeq, was.WholeEpoch, was.WholeSeq,
		was.WholeHash
}

// sweepStep bounds the rows that one write of a sweep changes, so that other writes need not wait long.
const sweepStep = 256

// inSteps calls fn for each key, in transactions of at most sweepStep keys. It does nothing for an
// unknown portal.
func (r *Replica) inSteps(ctx context.Context, portal record.PortalID, keys []record.Hash,
	fn func(engine.Tx, *portalRow, record.Hash) error) error {
	for len(keys) > 0 {
		step := keys[:min(sweepStep, len(keys))]
		err := r.changePortals(ctx, func(t engine.Tx) error {
			p, found, err := r.findPortal(t, portal)
			if err != nil || !found {
				return err
			}
			for _, key := range step {
				if err := fn(t, p, key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		keys = keys[len(step):]
	}
	return nil
}

// Release implements federation.Replica. A portal that is not quarantined stays unchanged.
func (r *Replica) Release(ctx context.Context, portal record.PortalID) error {
	return r.changePortals(ctx, func(t engine.Tx) error {
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found || !p.Quarantined {
			return err
		}
		p.Quarantined = false
		p.turn()
		_, err = t.Exec(`UPDATE conflicts SET released = 1 WHERE portal = ? AND released = 0`, p.ID)
		return err
	})
}

// sweepPage is the number of rows that a sweep reads at once.
const sweepPage = 4096

// Sweep implements federation.Replica. It deletes expired records, and versions that need not be
// remembered any longer. It reads all slots but no record: about a second for a million agents, in short
// writes.
func (r *Replica) Sweep(ctx context.Context, now time.Time) error {
	at := now.UnixMilli()
	var portals []struct {
		ID     int64
		Portal record.PortalID
	}
	if err := r.List(ctx, &portals, `SELECT id, portal FROM portals ORDER BY id`); err != nil {
		return r.notedError(err)
	}
	for _, p := range portals {
		if err := r.sweepAgents(ctx, p.ID, p.Portal, at); err != nil {
			return err
		}
		if err := r.sweepReplaced(ctx, p.Portal, at); err != nil {
			return err
		}
		if err := r.sweepSaid(ctx, p.ID, p.Portal, at); err != nil {
			return err
		}
	}
	return nil
}

func (r *Replica) sweepAgents(ctx context.Context, id int64, portal record.PortalID, now int64) error {
	after := []byte{}
	for {
		var due []record.Hash
		n := 0
		err := r.eachRecord(ctx, func(row *sql.Rows) (bool, error) {
			var key []byte
			var ends bool
			if err := row.Scan(&key, &ends); err != nil {
				return false, err
			}
			if n++; ends && len(key) == len(record.Hash{}) {
				due = append(due, record.Hash(key))
			}
			after = key
			return true, nil
		}, `SELECT akey, until <= ?1 OR n IS NOT NULL AND expires <= ?1 FROM agents WHERE portal = ?2 AND akey > ?3 ORDER BY akey LIMIT ?4`, now, id, after, sweepPage)
		if err != nil {
			return err
		}
		err = r.inSteps(ctx, portal, due, func(t engine.Tx, p *portalRow, key record.Hash) error {
			was := *p
			if _, err := voidAgents(t, p, `akey = ? AND expires <= ?`, key[:], now); err != nil {
				return err
			}
			// The record has expired, so no portal sends it again and the sync need not start over.
			p.keepPosition(&was)
			return deleteAgents(t, p, `akey = ? AND until <= ?`, key[:], now)
		})
		if err != nil || n < sweepPage {
			return err
		}
	}
}

// sweepSaid deletes expired records that are no agents'. Cards and heads stay after their expiry,
// because they prove which portals existed until when.
func (r *Replica) sweepSaid(ctx context.Context, id int64, portal record.PortalID, now int64) error {
	const due = `until > 0 AND (until <= ? OR wire IS NOT NULL AND expires <= ?)`
	for {
		var numbers []int64
		if err := r.List(ctx, &numbers, `SELECT number FROM said WHERE portal = ? AND `+due+` LIMIT ?`, id, now, now,
			sweepStep); err != nil || len(numbers) == 0 {
			return r.notedError(err)
		}
		err := r.changePortals(ctx, func(t engine.Tx) error {
			p, found, err := r.findPortal(t, portal)
			if err != nil || !found {
				return err
			}
			for _, n := range numbers {
				if err := voidSaid(t, p, `number = ? AND `+due, n, now, now); err != nil {
					return err
				}
				res, err := t.Exec(`DELETE FROM said WHERE number = ? AND until > 0 AND until <= ?`, n, now)
				if err != nil {
					return err
				}
				gone, err := res.RowsAffected()
				if err != nil {
					return err
				}
				p.Bytes -= gone * slotBytes
				p.changed = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

package replica

import (
	"context"

	"agentsite/internal/record"
	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

// The directory shows a record that a head covers until a head covers the next record of its slot.
// Meanwhile the table replaced holds the covered one, at most one for each slot. It does not count for
// quotas, because a portal that changes all its agents at once would otherwise need twice its quota.

// The number n of a row is new, so that a reader that goes on after a number meets the row.
const (
	replacedDelete = `DELETE FROM replaced WHERE portal = ? AND akey IN (`
	replacedInsert = `INSERT INTO replaced (portal, akey, turn, kept, epoch, seq, hash, expires, signer, wire)
	SELECT a.portal, a.akey, ?, a.turn, a.epoch, a.seq, a.hash, a.expires, a.signer, w.wire FROM agents a JOIN wires w ON w.n = a.n
	WHERE a.portal = ? AND a.akey IN (`
)

// setAside copies the covered records of some agents to the table replaced, before newer ones take their
// slots.
func setAside(t engine.Tx, p *portalRow, keys []record.Hash) error {
	for len(keys) > 0 {
		n := sqlite.RowStep(len(keys))
		args := make([]any, 0, n+2)
		args = append(args, p.Turn, p.ID)
		for i := range keys[:n] {
			args = append(args, keys[i][:])
		}
		if _, err := t.Exec(replacedDelete+marks(n)+`)`, args[1:]...); err != nil {
			return err
		}
		if _, err := t.Exec(replacedInsert+marks(n)+`)`, args...); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// deleteReplaced deletes the records of a portal in the table replaced for which the SQL condition where
// is true, and returns their number.
func deleteReplaced(t engine.Tx, p *portalRow, where string, args ...any) (int64, error) {
	res, err := t.Exec(`DELETE FROM replaced WHERE portal = ? AND `+where, append([]any{p.ID}, args...)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// sweepReplaced deletes records in the table replaced that have expired, or have a successor that a
// head covers now, in writes of at most sweepStep rows.
func (r *Replica) sweepReplaced(ctx context.Context, portal record.PortalID, now int64) error {
	for {
		var n int64
		err := r.changePortals(ctx, func(t engine.Tx) error {
			p, found, err := r.findPortal(t, portal)
			if err != nil || !found {
				n = 0
				return err
			}
			n, err = deleteReplaced(t, p, `n IN (SELECT n FROM replaced WHERE portal = ? AND (turn < ? OR expires <= ?) LIMIT ?)`, p.ID, p.Turn, now, sweepStep)
			return err
		})
		if err != nil || n < sweepStep {
			return err
		}
	}
}

// verifyReplaced deletes records in the table replaced that are damaged or have no valid signature.
func (r *Replica) verifyReplaced(ctx context.Context, id int64, portal record.PortalID, report *Report) error {
	var after int64
	for {
		var rows []struct {
			N, Epoch, Seq    int64
			Akey, Hash, Wire []byte
			Signer           string
		}
		err := r.List(ctx, &rows, `SELECT n, epoch, seq, akey, hash, signer, wire FROM replaced WHERE portal = ? AND n > ? ORDER BY n LIMIT ?`, id, after, pageRecords)
		if err != nil {
			return r.notedError(err)
		}
		for _, a := range rows {
			after = a.N
			if rec, ok := openStored(r.network, a.Wire, portal, a.Epoch, a.Seq, a.Hash, a.Signer); ok &&
				rec.Type == record.TypeAgent && !rec.Tombstone() {
				if key := agentKey(rec.Slot()); string(key[:]) == string(a.Akey) {
					continue
				}
			}
			err := r.changePortals(ctx, func(t engine.Tx) error {
				_, err := t.Exec(`DELETE FROM replaced WHERE n = ? AND portal = ? AND seq = ?`, a.N, id, a.Seq)
				return err
			})
			if err != nil {
				return err
			}
			report.mended("The record %d of an agent of %s, which a newer one replaces, was damaged; it was let go.",
				a.Seq, portal)
		}
		if len(rows) < pageRecords {
			return nil
		}
	}
}

package replica

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/store/engine"
)

// Complete implements federation.Replica. It writes one row for any number of records, which are covered
// because their turn is over. It deletes at most sweepStep of the records that they replaced, and Sweep
// deletes the rest.
func (r *Replica) Complete(ctx context.Context, portal record.PortalID, was, at record.Version,
	head federation.Whole) (turn int64, ok bool, err error) {
	err = r.changePortals(ctx, func(t engine.Tx) error {
		turn, ok = 0, false
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found || p.Quarantined || was != (record.Version{Epoch: p.AtEpoch, Seq: p.AtSeq}) {
			return err
		}
		newest := record.Version{Epoch: p.HeadEpoch, Seq: p.HeadSeq}
		if head.Epoch != newest.Epoch || head.Compare(newest) > 0 {
			return nil
		}
		if head.Version == newest {
			var hash []byte
			err := t.Get(&hash, `SELECT hash FROM said WHERE portal = ? AND type = 'head/1' AND about = '' AND wire IS NOT NULL`, p.ID)
			if errors.Is(err, sql.ErrNoRows) || err == nil && !bytes.Equal(hash, head.Hash[:]) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		turn, ok = p.Turn, true
		p.Turn++
		p.AtEpoch, p.AtSeq = at.Epoch, at.Seq
		p.WholeEpoch, p.WholeSeq, p.WholeHash = head.Epoch, head.Seq, head.Hash[:]
		p.changed = true
		_, err = deleteReplaced(t, p, `n IN (SELECT n FROM replaced WHERE portal = ? AND turn < ? LIMIT ?)`, p.ID,
			p.Turn, sweepStep)
		return err
	})
	return turn, ok, err
}

// Whole implements federation.Replica. It is zero for an unknown portal.
func (r *Replica) Whole(ctx context.Context, portal record.PortalID) (federation.Whole, int64, error) {
	var p portalRow
	err := r.Get(ctx, &p, `SELECT `+portalColumns+` FROM portals WHERE portal = ?`, portal)
	if errors.Is(err, sql.ErrNoRows) {
		return federation.Whole{}, 0, nil
	}
	w := federation.Whole{Version: record.Version{Epoch: p.WholeEpoch, Seq: p.WholeSeq}}
	copy(w.Hash[:], p.WholeHash)
	return w, p.Turn, r.notedError(err)
}

const (
	// covered is the SQL condition of records that a head covers: their turn is over. waitedFor is that
	// of replaced records with a successor that no head covers yet.
	covered   = `a.turn < (SELECT turn FROM portals WHERE id = a.portal)`
	waitedFor = `a.turn = (SELECT turn FROM portals WHERE id = a.portal)`

	coveredAll = `SELECT a.epoch, a.seq, a.n, w.wire FROM agents a JOIN wires w ON w.n = a.n
		WHERE a.portal = ? AND (a.epoch, a.seq, a.n) > (?, ?, ?) AND a.n IS NOT NULL AND a.gone = 0 AND ` + covered +
		` ORDER BY a.epoch, a.seq, a.n LIMIT ?`
	coveredSince = `SELECT a.epoch, a.seq, a.n, w.wire FROM agents a JOIN wires w ON w.n = a.n
		WHERE a.portal = ? AND (a.epoch, a.seq, a.n) > (?, ?, ?) AND a.n IS NOT NULL AND a.turn >= ? AND ` + covered +
		` ORDER BY a.epoch, a.seq, a.n LIMIT ?`
	coveredAside = `SELECT 0, 0, a.n, a.wire FROM replaced a WHERE a.portal = ? AND a.n > ? AND a.kept >= ? AND ` +
		waitedFor + ` ORDER BY a.n LIMIT ?`

	// One statement sees the agent either before or after a Complete, never between.
	coveredAgent = `SELECT w.wire FROM agents a JOIN wires w ON w.n = a.n WHERE a.portal = ?1 AND a.akey = ?2 AND ` +
		covered + `
		UNION ALL SELECT a.wire FROM replaced a WHERE a.portal = ?1 AND a.akey = ?2 AND ` + waitedFor + ` LIMIT 1`
)

// Covered implements federation.Replica. It reads the agents in the order of the log, and then the table
// replaced, so that a record which is replaced meanwhile may come twice but is not missed.
func (r *Replica) Covered(ctx context.Context, portal record.PortalID, turn int64, yield func(wire []byte) bool) error {
	k, ok, err := r.lookUpPortal(ctx, portal)
	if err != nil || !ok {
		return err
	}
	more := true
	each := func(wire []byte) bool {
		more = yield(wire)
		return more
	}
	err = r.readPages(ctx, each, func(epoch, seq, n int64) (string, []any) {
		if turn > 0 {
			return coveredSince, []any{k.id, epoch, seq, n, turn, pageRecords}
		}
		return coveredAll, []any{k.id, epoch, seq, n, pageRecords}
	})
	if err != nil || !more {
		return err
	}
	return r.readPages(ctx, yield, func(_, _, n int64) (string, []any) {
		return coveredAside, []any{k.id, n, turn, pageRecords}
	})
}

// CoveredAgent implements federation.Replica. It may return a tombstone; nil means that no head covers a
// record of the agent.
func (r *Replica) CoveredAgent(ctx context.Context, portal record.PortalID, key record.Hash) ([]byte, error) {
	k, ok, err := r.lookUpPortal(ctx, portal)
	if err != nil || !ok {
		return nil, err
	}
	return r.readWire(ctx, coveredAgent, k.id, key[:])
}

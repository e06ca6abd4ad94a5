package replica

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"agentsite/internal/record"
	"agentsite/store/engine"
)

// Keep implements record.Memory, as KeepAll of one record.
func (r *Replica) Keep(ctx context.Context, rec *record.Record, was record.Seen, until int64) (bool, error) {
	kept, err := r.KeepAll(ctx, []record.Keeping{{Record: rec, Was: was, Until: until}})
	return err == nil && kept[0], err
}

// KeepAll implements record.Bulk. Records of agents of one portal that follow each other are stored
// together, which is several times faster.
func (r *Replica) KeepAll(ctx context.Context, list []record.Keeping) (kept []bool, err error) {
	if len(list) > record.MaxBatch {
		return nil, fmt.Errorf("%d records at once are more than %d", len(list), record.MaxBatch)
	}
	if slices.ContainsFunc(list, func(k record.Keeping) bool { return k.Record.Portal != r.own }) {
		if err := r.disk.Check(1, false); err != nil {
			return nil, err
		}
	}
	err = r.changePortals(ctx, func(t engine.Tx) error {
		kept = make([]bool, len(list))
		for from := 0; from < len(list); {
			to := from
			for to < len(list) && list[to].Record.Type == record.TypeAgent &&
				list[to].Record.Portal == list[from].Record.Portal {
				to++
			}
			var err error
			if to > from {
				err = r.keepAgents(t, list[from:to], kept[from:to])
			} else {
				kept[from], err = r.keepSaid(t, list[from])
				to++
			}
			if err != nil {
				return err
			}
			from = to
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// changePortals is DB.Write for transactions that may change rows of portals: it stores the changed rows
// after fn. If fn fails, its changes to the rows in memory are undone by a rollback.
func (r *Replica) changePortals(ctx context.Context, fn func(engine.Tx) error) error {
	return r.Write(ctx, func(t engine.Tx) error {
		err := fn(t)
		if err == nil {
			err = r.storePortals(t)
		}
		if err != nil {
			t.RequireRollback()
		}
		return err
	})
}

// stillAdmits reports whether the facts that a Gate checked still hold: since then another write may
// have stored a card, a head or a conflict of the portal.
func (p *portalRow) stillAdmits(rec *record.Record) bool {
	switch rec.Type {
	case record.TypeCard:
		return true
	case record.TypeAgent, record.TypeHead, record.TypeSummary:
		if rec.Epoch < p.HeadEpoch {
			return false
		}
	}
	return !p.Quarantined && p.ring != nil && p.ring.Has(rec.Key)
}

// saidRow is the row of the slot of a record that is no agent's.
type saidRow struct {
	Number            int64
	Epoch, Seq, Until int64
	Hash              []byte
	Held              bool
	Size              int64
}

func (s *saidRow) seen() record.Seen { return seenOf(s.Epoch, s.Seq, s.Until, s.Hash, s.Held) }

func seenOf(epoch, seq, until int64, hash []byte, held bool) record.Seen {
	s := record.Seen{Version: record.Version{Epoch: epoch, Seq: seq}, Until: until, Void: !held}
	copy(s.Hash[:], hash)
	return s
}

const saidBySlot = `SELECT number, epoch, seq, until, hash, wire IS NOT NULL AS held, COALESCE(length(wire), 0) AS size FROM said WHERE portal = ? AND type = ? AND about = ?`

// keepSaid stores a record that is no agent's, and reports whether it did. A card may be the first
// record of its portal.
func (r *Replica) keepSaid(t engine.Tx, k record.Keeping) (bool, error) {
	rec, slot := k.Record, k.Record.Slot()
	p, found, err := r.findPortal(t, rec.Portal)
	if err == nil && !found && rec.Type == record.TypeCard { // A card is the first record of a new portal.
		p, err = r.open.insertPortal(t, rec.Portal)
	}
	if err != nil || p == nil || !p.stillAdmits(rec) {
		return false, err
	}
	var row saidRow
	var is record.Seen
	switch err := t.Get(&row, saidBySlot, p.ID, slot.Type, slot.About); {
	case err == nil:
		is = row.seen()
	case !errors.Is(err, sql.ErrNoRows):
		return false, err
	}
	if is != k.Was {
		return false, nil
	}
	if row.Number != 0 {
		if _, err := t.Exec(`DELETE FROM said WHERE number = ?`, row.Number); err != nil {
			return false, err
		}
		p.Bytes -= slotBytes + row.Size
	}
	number, err := takeNumbers(t, "said", 1)
	if err != nil {
		return false, err
	}
	_, err = t.Exec(`INSERT INTO said (number, portal, type, about, epoch, seq, hash, until, expires, signer, wire)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, number, p.ID, slot.Type, slot.About, rec.Epoch, rec.Seq, rec.Hash[:], k.Until, rec.Expires, rec.Key, rec.Wire)
	if err != nil {
		return false, err
	}
	p.Bytes += slotBytes + int64(len(rec.Wire))
	p.changed = true
	switch body := rec.Body.(type) {
	case *record.Card:
		return true, applyCard(t, p, body)
	case *record.Head:
		return true, applyHead(t, p, body)
	}
	return true, nil
}

// applyCard applies a newly stored card: the portal's records signed by keys that the card does not list
// are deleted.
func applyCard(t engine.Tx, p *portalRow, card *record.Card) error {
	p.ring = card.Ring()
	p.turn()
	args := make([]any, record.MaxKeys) // Empty strings fill the list, because no record has an empty signer.
	for i := range args {
		args[i] = ""
		if i < len(card.Keys) {
			args[i] = card.Keys[i].ID
		}
	}
	if _, err := deleteReplaced(t, p, `signer NOT IN (?, ?, ?, ?)`, args...); err != nil {
		return err
	}
	if _, err := voidAgents(t, p, `signer NOT IN (?, ?, ?, ?)`, args...); err != nil {
		return err
	}
	return voidSaid(t, p, `type != 'portal/1' AND signer NOT IN (?, ?, ?, ?)`, args...)
}

// applyHead applies a newly stored head. A new epoch deletes the agents of earlier ones with their
// versions: no head will cover them, and the version of the head keeps them out.
func applyHead(t engine.Tx, p *portalRow, head *record.Head) error {
	over := head.Epoch > p.HeadEpoch
	if head.Version() == (record.Version{Epoch: p.HeadEpoch, Seq: p.HeadSeq}) {
		p.notWhole() // Two heads have the same version, so it is unknown which of them the stored records match.
	}
	p.HeadEpoch, p.HeadSeq = head.Epoch, head.Seq
	p.HeadIssued, p.HeadExpires, p.HeadCount = head.Issued, head.Expires, head.Count
	p.turn()
	if !over || p.Slots == 0 {
		return nil
	}
	p.notWhole()
	if _, err := deleteReplaced(t, p, `epoch < ?`, head.Epoch); err != nil {
		return err
	}
	if _, err := voidAgents(t, p, `epoch < ?`, head.Epoch); err != nil {
		return err
	}
	return deleteAgents(t, p, `epoch < ?`, head.Epoch)
}

// Quarantine implements record.Memory. A portal that is quarantined already keeps its first conflict,
// unless only the new one is proof for other portals.
func (r *Replica) Quarantine(ctx context.Context, c record.Conflict) error {
	return r.changePortals(ctx, func(t engine.Tx) error {
		p, found, err := r.findPortal(t, c.Slot.Portal)
		if err == nil && !found {
			p, err = r.open.insertPortal(t, c.Slot.Portal)
		}
		if err != nil {
			return err
		}
		var released bool
		err = t.Get(&released, `SELECT released FROM conflicts WHERE portal = ? AND type = ? AND about = ? AND epoch = ? AND seq = ?`,
			p.ID, c.Slot.Type, c.Slot.About, c.Epoch, c.Seq)
		if err == nil && released {
			return nil // An operator has released the portal from this conflict.
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if p.Quarantined {
			var proofs int
			if err := t.Get(&proofs, `SELECT COUNT(*) FROM conflicts WHERE portal = ? AND released = 0 AND type = 'head/1' AND lower IS NOT NULL AND higher IS NOT NULL`, p.ID); err != nil {
				return err
			}
			if proofs > 0 || c.Proof() == nil {
				return nil
			}
			if _, err := t.Exec(`DELETE FROM conflicts WHERE portal = ? AND released = 0`, p.ID); err != nil {
				return err
			}
		}
		p.Quarantined = true
		p.turn()
		_, err = t.Exec(`INSERT INTO conflicts (portal, type, about, epoch, seq, lower, higher) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			p.ID, c.Slot.Type, c.Slot.About, c.Epoch, c.Seq, c.Lower, c.Higher)
		return err
	})
}

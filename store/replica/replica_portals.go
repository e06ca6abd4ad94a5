package replica

import (
	"database/sql"
	"errors"

	"agentsite/internal/record"
	"agentsite/store/engine"
)

// portalRow is one row of the table portals, with the keys of its card. A transaction changes the row in
// memory and stores it at the end of each write.
type portalRow struct {
	ID          int64
	Quarantined bool
	HeadEpoch   int64 `db:"head_epoch"`
	HeadSeq     int64 `db:"head_seq"`
	HeadIssued  int64 `db:"head_issued"`
	HeadExpires int64 `db:"head_expires"`
	HeadCount   int64 `db:"head_count"`
	Agents      int64
	Slots       int64
	Bytes       int64
	AtEpoch     int64  `db:"at_epoch"`
	AtSeq       int64  `db:"at_seq"`
	WholeEpoch  int64  `db:"whole_epoch"`
	WholeSeq    int64  `db:"whole_seq"`
	WholeHash   []byte `db:"whole_hash"`
	Turn        int64

	ring    *record.Ring
	changed bool // the row must be stored at the end of the write
	turned  bool // the cached standing must be invalidated at the end of the write
}

// openPortals holds the rows that the open transaction has read or changed. Only the writer goroutine
// uses it.
type openPortals struct {
	rows map[record.PortalID]*portalRow
}

// Ended implements engine.Ender. It drops the rows, because the next transaction reads its own.
func (o *openPortals) Ended(bool) { clear(o.rows) }

const portalColumns = `id, quarantined, head_epoch, head_seq, head_issued, head_expires, head_count, agents, slots, bytes, at_epoch, at_seq, whole_epoch, whole_seq, whole_hash, turn`

// slotBytes is the size in bytes that a slot counts for quotas besides its record.
const slotBytes = 160

func (p *portalRow) standing(ring *record.Ring) record.Standing {
	return record.Standing{Ring: ring, Head: record.Version{Epoch: p.HeadEpoch, Seq: p.HeadSeq},
		Quarantined: p.Quarantined}
}

// turn marks the row as changed, and its standing as outdated in the cache.
func (p *portalRow) turn() { p.changed, p.turned = true, true }

// notWhole records that some records which the head covers are missing now, so that the sync must start
// over.
func (p *portalRow) notWhole() {
	p.AtEpoch, p.AtSeq = 0, 0
	p.WholeEpoch, p.WholeSeq, p.WholeHash = 0, 0, nil
	p.changed = true
}

// findPortal returns the row of a portal for the open transaction; false if the replica does not know
// the portal.
func (r *Replica) findPortal(t engine.Tx, id record.PortalID) (p *portalRow, found bool, err error) {
	if p, ok := r.open.rows[id]; ok {
		return p, true, nil
	}
	p = new(portalRow)
	err = t.Get(p, `SELECT `+portalColumns+` FROM portals WHERE portal = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if p.ring, err = r.loadRing(t, id, p.ID); err != nil {
		return nil, false, err
	}
	r.open.addRow(t, id, p)
	return p, true, nil
}

// insertPortal inserts the row of a portal that has none, and returns it for the open transaction.
func (o *openPortals) insertPortal(t engine.Tx, id record.PortalID) (*portalRow, error) {
	row, err := takeNumbers(t, "portals", 1)
	if err != nil {
		return nil, err
	}
	if _, err := t.Exec(`INSERT INTO portals (id, portal) VALUES (?, ?)`, row, id); err != nil {
		return nil, err
	}
	p := &portalRow{ID: row}
	o.addRow(t, id, p)
	return p, nil
}

// addRow adds a row to the open transaction until it ends.
func (o *openPortals) addRow(t engine.Tx, id record.PortalID, p *portalRow) {
	o.rows[id] = p
	t.AtEnd(o)
}

// loadRing returns the keys in a portal's current card, nil without one. The cached keys are those of
// the last commit, because only the writer goroutine commits and calls this.
func (r *Replica) loadRing(t engine.Tx, id record.PortalID, row int64) (*record.Ring, error) {
	if k, _, ok := r.known.Get(string(id)); ok {
		return k.standing.Ring, nil
	}
	var card []byte
	err := t.Get(&card, `SELECT wire FROM said WHERE portal = ? AND type = 'portal/1' AND about = ''`, row)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	return ringOf(r.network, card), nil
}

// storePortals stores the changed rows, and invalidates the cached state of those with a changed
// standing.
func (r *Replica) storePortals(t engine.Tx) error {
	for id, p := range r.open.rows {
		if !p.changed {
			continue
		}
		if p.turned {
			r.known.InvalidateKey(t, string(id))
		}
		_, err := t.Exec(`UPDATE portals SET quarantined = ?, head_epoch = ?, head_seq = ?, head_issued = ?, head_expires = ?, head_count = ?,
			agents = ?, slots = ?, bytes = ?, at_epoch = ?, at_seq = ?, whole_epoch = ?, whole_seq = ?, whole_hash = ?, turn = ? WHERE id = ?`,
			p.Quarantined, p.HeadEpoch, p.HeadSeq, p.HeadIssued, p.HeadExpires, p.HeadCount, p.Agents, p.Slots, p.Bytes,
			p.AtEpoch, p.AtSeq,
			p.WholeEpoch, p.WholeSeq, p.WholeHash, p.Turn, p.ID)
		if err != nil {
			return err
		}
		p.changed = false
	}
	return nil
}

package replica

import (
	"strings"

	"agentsite/internal/record"
	"agentsite/store/sqlite"
)

// slotRow is the row of a slot in agents.
type slotRow struct {
	Akey              []byte
	Epoch, Seq, Until int64
	Hash              []byte
	Gone              bool
	Size              int64
	N                 *int64
	Turn              int64
}

const slotColumns = `akey, epoch, seq, until, hash, gone, size, n, turn`

func (a *slotRow) seen() record.Seen { return seenOf(a.Epoch, a.Seq, a.Until, a.Hash, a.N != nil) }

// agentKey is the key of a record of an agent, which its slot is found by.
func agentKey(slot record.Slot) record.Hash {
	return record.AgentKey(record.AgentID(slot.Portal, slot.About))
}

// agentsByKey is the query for as many keys of a portal.
func agentsByKey(n int) string {
	return `SELECT ` + slotColumns + ` FROM agents WHERE portal = ? AND akey IN (` + marks(n) + `)`
}

func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

// lookUp calls list for the keys, a step at a time, and returns the rows found.
func lookUp(portal int64, keys []record.Hash,
	list func(dest *[]slotRow, query string, args ...any) error) (map[record.Hash]slotRow, error) {
	found := make(map[record.Hash]slotRow)
	for len(keys) > 0 {
		n := sqlite.RowStep(len(keys))
		args := make([]any, 0, n+1)
		args = append(args, portal)
		for _, k := range keys[:n] {
			args = append(args, k[:])
		}
		var rows []slotRow
		if err := list(&rows, agentsByKey(n), args...); err != nil {
			return nil, err
		}
		for _, row := range rows {
			found[record.Hash(row.Akey)] = row
		}
		keys = keys[n:]
	}
	return found, nil
}

// loadAgents returns the rows of some agents of a portal.
func loadAgents(t *sqlite.Tx, p *portalRow, keys []record.Hash) (map[record.Hash]slotRow, error) {
	if p.Slots == 0 {
		return map[record.Hash]slotRow{}, nil // most calls of a first sync end here
	}
	return lookUp(p.ID, keys, func(dest *[]slotRow, query string,
		args ...any) error {
		return t.List(dest, query, args...)
	})
}

// keepAgents keeps agents of one portal, in order.
func (r *Replica) keepAgents(t *sqlite.Tx, list []record.Keeping, kept []bool) error {
	p, found, err := r.findPortal(t, list[0].Record.Portal)
	if err != nil || !found {
		return err
	}
	keys := make([]record.Hash, len(list))
	for i, k := range list {
		keys[i] = agentKey(k.Record.Slot())
	}
	is, err := loadAgents(t, p, keys)
	if err != nil {
		return err
	}
	if p.Slots == 0 {
		p.turn()
	}
	p.changed = true
	var wait []placed
	var aside []record.Hash
	waits := make(map[record.Hash]bool, len(list))
	for i, k := range list {
		if waits[keys[i]] {
			continue // another record of the slot stands before it; the Gate looks anew
		}
		row, there := is[keys[i]]
		var seen record.Seen
		if there {
			seen = row.seen()
		}
		if seen != k.Was || !p.stillAdmits(k.Record) {
			continue
		}
		kept[i], waits[keys[i]] = true, true
		n := row.N
		if n == nil {
			r.next++ // never used again, also when this is taken back
			next := r.next
			n = &next
		}
		wait = append(wait, placed{k, keys[i], *n})
		p.countReplaced(row, there, k.Record)
		if row.N != nil && !row.Gone && row.Turn < p.Turn {
			aside = append(aside, keys[i])
		}
	}
	if err := setAside(t, p, aside); err != nil {
		return err
	}
	return placeAgents(t, p, wait)
}

// countReplaced counts a record in the place of a row.
func (p *portalRow) countReplaced(row slotRow, there bool, rec *record.Record) {
	if there {
		p.Bytes -= row.Size
		if row.N != nil && !row.Gone {
			p.Agents--
		}
	} else {
		p.Slots++
		p.Bytes += slotBytes
	}
	p.Bytes += int64(len(rec.Wire))
	if !rec.Tombstone() {
		p.Agents++
	}
}

// placed is a record with its place in wires.
type placed struct {
	record.Keeping
	key record.Hash
	n   int64
}

const (
	wireInsert   = `INSERT OR REPLACE INTO wires (n, gone, wire) VALUES`
	agentReplace = `INSERT OR REPLACE INTO agents (portal, akey, epoch, seq, hash, until, expires, signer, gone, size, n, turn) VALUES`
)

// placeAgents stores records.
func placeAgents(t *sqlite.Tx, p *portalRow, list []placed) error {
	wires, rows := make([][]any, len(list)), make([][]any, len(list))
	for i := range list {
		rec := list[i].Record
		gone := rec.Tombstone()
		wires[i] = []any{list[i].n, gone, rec.Wire}
		rows[i] = []any{p.ID, list[i].key[:], rec.Epoch, rec.Seq, rec.Hash[:], list[i].Until, rec.Expires,
			string(rec.Key), gone, len(rec.Wire), list[i].n, p.Turn}
	}
	if err := t.InsertRows(wireInsert, wires); err != nil {
		return err
	}
	return t.InsertRows(agentReplace, rows)
}

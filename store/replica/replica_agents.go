package replica

import (
	"strings"

	"agentsite/internal/record"
	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

// slotRow is the row of an agent's slot. N is the key of its record in wires, nil when only the version
// is remembered.
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

// agentKey returns the key by which the slot of an agent's record is found.
func agentKey(slot record.Slot) record.Hash {
	return record.AgentKey(record.AgentID(slot.Portal, slot.About))
}

// agentsByKey returns the query for the slots of n keys of a portal.
func agentsByKey(n int) string {
	return `SELECT ` + slotColumns + ` FROM agents WHERE portal = ? AND akey IN (` + marks(n) + `)`
}

func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

// lookUp calls list for the keys of a portal, in steps of prepared statements, and returns the rows that
// exist.
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

// loadAgents returns the rows of some agents of a portal by key; missing ones are left out.
func loadAgents(t engine.Tx, p *portalRow, keys []record.Hash) (map[record.Hash]slotRow, error) {
	if p.Slots == 0 {
		// Without rows no query is needed, which is the usual case in a first sync.
		return map[record.Hash]slotRow{}, nil
	}
	return lookUp(p.ID, keys, func(dest *[]slotRow, query string,
		args ...any) error {
		return t.List(dest, query, args...)
	})
}

// keepAgents stores records of agents of one portal, in order, and sets kept for those that it stored.
func (r *Replica) keepAgents(t engine.Tx, list []record.Keeping, kept []bool) error {
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
	added := 0
	var aside []record.Hash
	waits := make(map[record.Hash]bool, len(list))
	for i, k := range list {
		if waits[keys[i]] {
			continue // An earlier record of this call took the slot, so the Gate must check this one again.
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
		next := placed{k, keys[i], 0}
		if row.N != nil {
			next.n = *row.N
		} else {
			added++
		}
		wait = append(wait, next)
		p.countReplaced(row, there, k.Record)
		if row.N != nil && !row.Gone && row.Turn < p.Turn {
			aside = append(aside, keys[i])
		}
	}
	if err := setAside(t, p, aside); err != nil {
		return err
	}
	if err := numberWires(t, wait, added); err != nil {
		return err
	}
	return placeAgents(t, p, wait)
}

// countReplaced updates the portal's counts for a record that takes the place of row; there is false if
// the slot is new.
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

// placed is a record to store, with its key in agents and its number in wires, 0 until it has one.
type placed struct {
	record.Keeping
	key record.Hash
	n   int64
}

// numberWires gives new numbers to the records in list without one, which are as many as added.
func numberWires(t engine.Tx, list []placed, added int) error {
	if added == 0 {
		return nil
	}
	next, err := takeNumbers(t, "wires", added)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].n == 0 {
			list[i].n = next
			next++
		}
	}
	return nil
}

const (
	wireInsert = `INSERT INTO wires (n, gone, wire) VALUES
		ON CONFLICT (n) DO UPDATE SET gone = excluded.gone, wire = excluded.wire`
	agentInsert = `INSERT INTO agents (portal, akey, epoch, seq, hash, until, expires, signer, gone, size, n, turn) VALUES
		ON CONFLICT (portal, akey) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq, hash = excluded.hash,
			until = excluded.until, expires = excluded.expires, signer = excluded.signer, gone = excluded.gone,
			size = excluded.size, n = excluded.n, turn = excluded.turn`
)

// placeAgents stores the records and their slots, many by one statement.
func placeAgents(t engine.Tx, p *portalRow, list []placed) error {
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
	return t.InsertRows(agentInsert, rows)
}

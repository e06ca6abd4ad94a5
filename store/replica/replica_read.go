package replica

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

// Seen implements record.Memory, as SeenAll of one slot.
func (r *Replica) Seen(ctx context.Context, slot record.Slot) (record.Seen, error) {
	all, err := r.SeenAll(ctx, []record.Slot{slot})
	if err != nil {
		return record.Seen{}, err
	}
	return all[0], nil
}

// SeenAll implements record.Bulk. Slots of agents of one portal that follow each other are read
// together.
func (r *Replica) SeenAll(ctx context.Context, slots []record.Slot) ([]record.Seen, error) {
	if len(slots) > record.MaxBatch {
		return nil, fmt.Errorf("%d slots at once are more than %d", len(slots), record.MaxBatch)
	}
	all := make([]record.Seen, len(slots))
	for from := 0; from < len(slots); {
		to := from
		for to < len(slots) && slots[to].Type == record.TypeAgent && slots[to].Portal == slots[from].Portal {
			to++
		}
		var err error
		if to > from {
			err = r.seenAgents(ctx, slots[from:to], all[from:to])
		} else {
			all[from], err = r.seenSaid(ctx, slots[from])
			to++
		}
		if err != nil {
			return nil, err
		}
		from = to
	}
	return all, nil
}

func (r *Replica) seenSaid(ctx context.Context, slot record.Slot) (record.Seen, error) {
	k, ok, err := r.lookUpPortal(ctx, slot.Portal)
	if err != nil || !ok {
		return record.Seen{}, err
	}
	var row saidRow
	err = r.Get(ctx, &row, saidBySlot, k.id, slot.Type, slot.About)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Seen{}, nil
	}
	return row.seen(), r.notedError(err)
}

// seenAgents fills all, which has the length of slots, for slots of agents of one portal.
func (r *Replica) seenAgents(ctx context.Context, slots []record.Slot, all []record.Seen) error {
	k, ok, err := r.lookUpPortal(ctx, slots[0].Portal)
	if err != nil || !ok || k.fresh {
		return err
	}
	keys := make([]record.Hash, len(slots))
	for i, s := range slots {
		keys[i] = agentKey(s)
	}
	found, err := lookUp(k.id, keys, func(dest *[]slotRow, query string,
		args ...any) error {
		return r.List(ctx, dest, query, args...)
	})
	if err != nil {
		return r.notedError(err)
	}
	for i, key := range keys {
		if row, ok := found[key]; ok {
			all[i] = row.seen()
		}
	}
	return nil
}

// readWire returns the one record that a query selects, nil if there is none.
func (r *Replica) readWire(ctx context.Context, query string, args ...any) ([]byte, error) {
	var wire []byte
	err := r.Get(ctx, &wire, query, args...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, r.notedError(err)
	}
	return wire, nil
}

// Held implements record.Memory. It returns nil for an unknown portal.
func (r *Replica) Held(ctx context.Context, slot record.Slot) ([]byte, error) {
	if slot.Type == record.TypeAgent {
		return r.Agent(ctx, slot.Portal, agentKey(slot))
	}
	k, ok, err := r.lookUpPortal(ctx, slot.Portal)
	if err != nil || !ok {
		return nil, err
	}
	return r.readWire(ctx, `SELECT wire FROM said WHERE portal = ? AND type = ? AND about = ?`, k.id, slot.Type,
		slot.About)
}

// Card implements federation.Replica. An expired card is returned as well.
func (r *Replica) Card(ctx context.Context, portal record.PortalID) ([]byte, error) {
	return r.Held(ctx, record.Slot{Type: record.TypeCard, Portal: portal})
}

// Head implements federation.Replica. An expired head is returned as well.
func (r *Replica) Head(ctx context.Context, portal record.PortalID) ([]byte, error) {
	return r.Held(ctx, record.Slot{Type: record.TypeHead, Portal: portal})
}

// Agent implements federation.Replica. It returns records that no head covers yet as well.
func (r *Replica) Agent(ctx context.Context, portal record.PortalID, key record.Hash) ([]byte, error) {
	k, ok, err := r.lookUpPortal(ctx, portal)
	if err != nil || !ok {
		return nil, err
	}
	return r.readWire(ctx, `SELECT wire FROM wires WHERE n = (SELECT n FROM agents WHERE portal = ? AND akey = ?)`,
		k.id, key[:])
}

// Heads implements federation.Replica, without reading the records.
func (r *Replica) Heads(ctx context.Context) ([]federation.HeadRow, error) {
	var rows []struct {
		Portal record.PortalID
		portalRow
	}
	err := r.List(ctx, &rows, `SELECT portal, `+portalColumns+` FROM portals WHERE head_expires > 0 ORDER BY portal`)
	if err != nil {
		return nil, r.notedError(err)
	}
	heads := make([]federation.HeadRow, len(rows))
	for i, p := range rows {
		heads[i] = federation.HeadRow{Portal: p.Portal, Version: record.Version{Epoch: p.HeadEpoch, Seq: p.HeadSeq},
			Issued: p.HeadIssued, Expires: p.HeadExpires, Count: p.HeadCount}
	}
	return heads, nil
}

// maxLog bounds the records that one call of Log returns.
const maxLog = 10_000

// Log implements federation.Replica. It returns nil for an unknown portal.
func (r *Replica) Log(ctx context.Context, portal record.PortalID, after int64, limit, maxBytes int) ([][]byte, error) {
	k, ok, err := r.lookUpPortal(ctx, portal)
	if err != nil || !ok {
		return nil, err
	}
	var log [][]byte
	size := 0
	err = r.eachRecord(ctx, func(row *sql.Rows) (bool, error) {
		var wire []byte
		if err := row.Scan(&wire); err != nil {
			return false, err
		}
		if size += len(wire); size > maxBytes && len(log) > 0 {
			return false, nil
		}
		log = append(log, wire)
		return true, nil
	}, `SELECT w.wire FROM agents a JOIN wires w ON w.n = a.n WHERE a.portal = ? AND a.epoch = ? AND a.seq > ? AND a.n IS NOT NULL ORDER BY a.seq, a.n LIMIT ?`,
		k.id, k.standing.Head.Epoch, after, min(limit, maxLog))
	return log, err
}

// Leaves implements federation.Replica. It holds a read transaction, which keeps the WAL from being
// emptied until it ends.
func (r *Replica) Leaves(ctx context.Context, portal record.PortalID, yield func(key, hash record.Hash) bool) error {
	k, ok, err := r.lookUpPortal(ctx, portal)
	if err != nil || !ok {
		return err
	}
	return r.eachRecord(ctx, func(row *sql.Rows) (bool, error) {
		var key, hash sql.RawBytes
		if err := row.Scan(&key, &hash); err != nil {
			return false, err
		}
		if len(key) != len(record.Hash{}) || len(hash) != len(record.Hash{}) {
			return false, sqlite.ErrBadValue
		}
		return yield(record.Hash(key), record.Hash(hash)), nil
	}, `SELECT akey, hash FROM agents WHERE portal = ? AND n IS NOT NULL AND gone = 0 ORDER BY akey`, k.id)
}

// eachRecord calls fn with every row of a query until fn returns false or an error. Damage makes the
// next start create a new replica.
func (r *Replica) eachRecord(ctx context.Context, fn func(*sql.Rows) (bool, error), query string, args ...any) error {
	rows, err := r.Rows(ctx, query, args...)
	if err != nil {
		return r.notedError(err)
	}
	defer rows.Close()
	for rows.Next() {
		if more, err := fn(rows.Rows); err != nil || !more {
			return r.notedError(err)
		}
	}
	return r.notedError(r.Classify(rows.Err()))
}

// pageRecords is the number of records that reads in pages hold in memory.
const pageRecords = 256

// Agents implements federation.Replica. All portals are read in the order of arrival, one portal in the
// order of its log. A slow yield holds no read transaction.
func (r *Replica) Agents(ctx context.Context, portal record.PortalID, yield func(wire []byte) bool) error {
	if portal == "" {
		return r.readPages(ctx, yield, func(_, _, n int64) (string, []any) {
			return `SELECT 0, 0, n, wire FROM wires WHERE gone = 0 AND n > ? ORDER BY n LIMIT ?`, []any{n, pageRecords}
		})
	}
	k, ok, err := r.lookUpPortal(ctx, portal)
	if err != nil || !ok {
		return err
	}
	return r.readPages(ctx, yield, func(epoch, seq, n int64) (string, []any) {
		return `SELECT a.epoch, a.seq, a.n, w.wire FROM agents a JOIN wires w ON w.n = a.n
			WHERE a.portal = ? AND (a.epoch, a.seq, a.n) > (?, ?, ?) AND a.n IS NOT NULL AND a.gone = 0 ORDER BY a.epoch, a.seq, a.n LIMIT ?`,
			[]any{k.id, epoch, seq, n, pageRecords}
	})
}

// readPages calls yield with records, a page at a time, until yield returns false. query returns the
// statement for the page after an epoch, seq and number.
func (r *Replica) readPages(ctx context.Context, yield func(wire []byte) bool,
	query func(epoch, seq, n int64) (string, []any)) error {
	var epoch, seq, n int64
	for {
		var page [][]byte
		text, args := query(epoch, seq, n)
		err := r.eachRecord(ctx, func(row *sql.Rows) (bool, error) {
			var wire []byte
			err := row.Scan(&epoch, &seq, &n, &wire)
			page = append(page, wire)
			return true, err
		}, text, args...)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, wire := range page {
			if !yield(wire) {
				return nil
			}
		}
	}
}

// Holding implements federation.Replica. The counts are stored with the portals, so that no records are
// read.
func (r *Replica) Holding(ctx context.Context, portal record.PortalID) (agents int, bytes int64, err error) {
	var row struct {
		Agents int
		Bytes  int64
	}
	if portal == "" {
		err = r.Get(ctx, &row, `SELECT COALESCE(SUM(agents), 0) AS agents, COALESCE(SUM(bytes), 0) AS bytes FROM portals`)
	} else {
		err = r.Get(ctx, &row, `SELECT agents, bytes FROM portals WHERE portal = ?`, portal)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	return row.Agents, row.Bytes, r.notedError(err)
}

// Position implements federation.Replica. It is zero for an unknown portal.
func (r *Replica) Position(ctx context.Context, portal record.PortalID) (record.Version, error) {
	var row struct{ Epoch, Seq int64 }
	err := r.Get(ctx, &row, `SELECT at_epoch AS epoch, at_seq AS seq FROM portals WHERE portal = ?`, portal)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Version{}, nil
	}
	return record.Version{Epoch: row.Epoch, Seq: row.Seq}, r.notedError(err)
}

// SetPosition implements federation.Replica. It does nothing for an unknown portal.
func (r *Replica) SetPosition(ctx context.Context, portal record.PortalID, at record.Version) error {
	return r.changePortals(ctx, func(t engine.Tx) error {
		p, found, err := r.findPortal(t, portal)
		if err != nil || !found {
			return err
		}
		p.AtEpoch, p.AtSeq, p.changed = at.Epoch, at.Seq, true
		return nil
	})
}

// maxOthers bounds the results of one call of Others.
const maxOthers = 1000

// Others implements federation.Replica. limit is at most maxOthers.
func (r *Replica) Others(ctx context.Context, types []record.Type, after int64, limit int) ([]federation.Numbered,
	error) {
	limit = min(limit, maxOthers)
	var all []federation.Numbered
	for _, typ := range types {
		if typ == record.TypeCard || typ == record.TypeHead || typ == record.TypeAgent {
			continue
		}
		var rows []federation.Numbered
		if err := r.List(ctx, &rows, `SELECT number, wire FROM said WHERE type = ? AND number > ? AND wire IS NOT NULL ORDER BY number LIMIT ?`, typ, after, limit); err != nil {
			return nil, r.notedError(err)
		}
		all = append(all, rows...)
	}
	slices.SortStableFunc(all, func(a, b federation.Numbered) int { return int(a.Number - b.Number) })
	return all[:min(limit, len(all))], nil
}

// Convicted implements federation.Replica. It reads only the table of conflicts, which is small.
func (r *Replica) Convicted(ctx context.Context) ([]record.PortalID, error) {
	var all []record.PortalID
	err := r.List(ctx, &all, `SELECT DISTINCT p.portal FROM conflicts c JOIN portals p ON p.id = c.portal WHERE p.quarantined = 1 AND c.released = 0`)
	return all, r.notedError(err)
}

// Quarantined implements federation.Replica. A conflict that an operator released does not count.
func (r *Replica) Quarantined(ctx context.Context, portal record.PortalID) (*record.Conflict, error) {
	var row struct {
		Type, About   string
		Epoch, Seq    int64
		Lower, Higher []byte
	}
	err := r.Get(ctx, &row, `SELECT c.type, c.about, c.epoch, c.seq, c.lower, c.higher FROM conflicts c JOIN portals p ON p.id = c.portal
		WHERE p.portal = ? AND p.quarantined = 1 AND c.released = 0`, portal)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, r.notedError(err)
	}
	return &record.Conflict{Slot: record.Slot{Type: record.Type(row.Type), Portal: portal, About: row.About},
		Version: record.Version{Epoch: row.Epoch, Seq: row.Seq}, Lower: bytes.Clone(row.Lower),
		Higher: bytes.Clone(row.Higher)}, nil
}

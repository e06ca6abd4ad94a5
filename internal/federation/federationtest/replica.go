// Package federationtest gives tests a federation.Replica and a
// federation.Registry in memory. What the Replica does is what the database
// must do.
package federationtest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// Replica is a federation.Replica. The zero value is ready. It is safe for
// concurrent use.
type Replica struct {
	mu        sync.Mutex // guards the rest
	portals   map[record.PortalID]record.Standing
	slots     map[record.Slot]held
	conflicts map[record.PortalID]record.Conflict
	settled   []record.Conflict // those that were released
	positions map[record.PortalID]record.Version
	number    int64 // of the newest arrival
}

type held struct {
	record.Seen
	*record.Record // nil when only the hash was kept
	number         int64
}

// Standing implements record.Memory.
func (m *Replica) Standing(_ context.Context, id record.PortalID) (record.Standing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.portals[id], nil
}

// Seen implements record.Memory.
func (m *Replica) Seen(_ context.Context, slot record.Slot) (record.Seen, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[slot].Seen, nil
}

// Held implements record.Memory.
func (m *Replica) Held(_ context.Context, slot record.Slot) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[slot].wire(), nil
}

func (h held) wire() []byte {
	if h.Record == nil {
		return nil
	}
	return h.Wire
}

// Keep implements record.Memory.
func (m *Replica) Keep(_ context.Context, r *record.Record, was record.Seen, until int64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keep(r, was, until), nil
}

// SeenAll implements record.Bulk.
func (m *Replica) SeenAll(_ context.Context, slots []record.Slot) ([]record.Seen, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]record.Seen, len(slots))
	for i, slot := range slots {
		all[i] = m.slots[slot].Seen
	}
	return all, nil
}

// KeepAll implements record.Bulk.
func (m *Replica) KeepAll(_ context.Context, list []federation.Keeping) ([]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := make([]bool, len(list))
	for i, k := range list {
		kept[i] = m.keep(k.Record, k.Was, k.Until)
	}
	return kept, nil
}

// keep is Keep; the caller holds mu.
func (m *Replica) keep(r *record.Record, was record.Seen, until int64) bool {
	slot := r.Slot()
	if m.slots[slot].Seen != was || !admits(m.portals[r.Portal], r) {
		return false
	}
	if m.slots == nil {
		m.slots = make(map[record.Slot]held)
	}
	m.number++
	m.slots[slot] = held{record.Seen{Version: r.Version(), Hash: r.Hash, Until: until}, r, m.number}
	s := m.portals[r.Portal]
	switch body := r.Body.(type) {
	case *record.Card:
		s.Ring = body.Ring()
		for slot, h := range m.slots {
			if slot.Portal == r.Portal && slot.Type != record.TypeCard && h.Record != nil && !s.Ring.Has(h.Key) {
				h.Record, h.Void = nil, true // its version is remembered
				m.slots[slot] = h
			}
		}
	case *record.Head:
		if s.Head.Epoch < r.Epoch {
			m.end(r.Portal, r.Epoch)
		}
		s.Head = r.Version()
	}
	m.stand(r.Portal, s)
	return true
}

// admits reports whether what a gate looked at still holds.
func admits(s record.Standing, r *record.Record) bool {
	switch r.Type {
	case record.TypeCard:
		return true
	case record.TypeAgent, record.TypeHead, record.TypeSummary:
		if r.Epoch < s.Head.Epoch {
			return false
		}
	}
	return !s.Quarantined && s.Ring != nil && s.Ring.Has(r.Key)
}

// end forgets the agents of epochs before one; the caller holds mu.
func (m *Replica) end(portal record.PortalID, epoch int64) {
	for slot, h := range m.slots {
		if slot.Portal == portal && slot.Type == record.TypeAgent && h.Seen.Epoch < epoch {
			delete(m.slots, slot)
		}
	}
}

// stand sets a standing; the caller holds mu.
func (m *Replica) stand(id record.PortalID, s record.Standing) {
	if m.portals == nil {
		m.portals = make(map[record.PortalID]record.Standing)
	}
	m.portals[id] = s
}

// Quarantine implements record.Memory.
func (m *Replica) Quarantine(_ context.Context, c record.Conflict) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, old := range m.settled {
		if old.Slot == c.Slot && old.Version == c.Version {
			return nil
		}
	}
	s := m.portals[c.Slot.Portal]
	s.Quarantined = true
	m.stand(c.Slot.Portal, s)
	if m.conflicts == nil {
		m.conflicts = make(map[record.PortalID]record.Conflict)
	}
	if _, ok := m.conflicts[c.Slot.Portal]; !ok {
		m.conflicts[c.Slot.Portal] = c
	}
	return nil
}

// Quarantined implements federation.Replica.
func (m *Replica) Quarantined(_ context.Context, portal record.PortalID) (*record.Conflict, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.conflicts[portal]; ok && m.portals[portal].Quarantined {
		return &c, nil
	}
	return nil, nil
}

// Release implements federation.Replica.
func (m *Replica) Release(_ context.Context, portal record.PortalID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.portals[portal]
	s.Quarantined = false
	m.stand(portal, s)
	if c, ok := m.conflicts[portal]; ok {
		m.settled = append(m.settled, c)
	}
	delete(m.conflicts, portal)
	return nil
}

// Card implements federation.Replica.
func (m *Replica) Card(ctx context.Context, portal record.PortalID) ([]byte, error) {
	return m.Held(ctx, record.Slot{Type: record.TypeCard, Portal: portal})
}

// Head implements federation.Replica.
func (m *Replica) Head(ctx context.Context, portal record.PortalID) ([]byte, error) {
	return m.Held(ctx, record.Slot{Type: record.TypeHead, Portal: portal})
}

// Heads implements federation.Replica.
func (m *Replica) Heads(context.Context) ([]federation.HeadRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []federation.HeadRow
	for slot, h := range m.slots {
		if slot.Type == record.TypeHead && h.Record != nil {
			head := h.Body.(*record.Head)
			out = append(out, federation.HeadRow{Portal: slot.Portal, Version: h.Seen.Version, Issued: head.Issued, Expires: head.Expires, Count: head.Count})
		}
	}
	slices.SortFunc(out, func(a, b federation.HeadRow) int { return cmp.Compare(a.Portal, b.Portal) })
	return out, nil
}

// entries returns the agents' records of a portal, of all for "", that less
// sorts; the caller does not hold mu.
func (m *Replica) entries(portal record.PortalID, less func(a, b *record.Record) int) []*record.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*record.Record
	for slot, h := range m.slots {
		if slot.Type == record.TypeAgent && h.Record != nil && (portal == "" || slot.Portal == portal) {
			out = append(out, h.Record)
		}
	}
	slices.SortFunc(out, less)
	return out
}

func bySeq(a, b *record.Record) int { return a.Version().Compare(b.Version()) }

func byKey(a, b *record.Record) int {
	x, y := keyOf(a), keyOf(b)
	if c := bytes.Compare(x[:], y[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.Portal, b.Portal)
}

func keyOf(r *record.Record) record.Hash { return record.AgentKey(r.Body.(*record.Agent).AgentID()) }

// Log implements federation.Replica.
func (m *Replica) Log(_ context.Context, portal record.PortalID, after int64, limit, maxBytes int) ([][]byte, error) {
	m.mu.Lock()
	epoch := m.portals[portal].Head.Epoch
	m.mu.Unlock()
	var out [][]byte
	size := 0
	for _, r := range m.entries(portal, bySeq) {
		if r.Epoch != epoch || r.Seq <= after {
			continue
		}
		if size += len(r.Wire); len(out) == limit || len(out) > 0 && size > maxBytes {
			break
		}
		out = append(out, r.Wire)
	}
	return out, nil
}

// Leaves implements federation.Replica.
func (m *Replica) Leaves(_ context.Context, portal record.PortalID, yield func(key, hash record.Hash) bool) error {
	for _, r := range m.entries(portal, byKey) {
		if !r.Tombstone() && !yield(keyOf(r), r.Hash) {
			break
		}
	}
	return nil
}

// Agent implements federation.Replica.
func (m *Replica) Agent(_ context.Context, portal record.PortalID, key record.Hash) ([]byte, error) {
	for _, r := range m.entries(portal, bySeq) {
		if keyOf(r) == key {
			return r.Wire, nil
		}
	}
	return nil, nil
}

// Agents implements federation.Replica.
func (m *Replica) Agents(_ context.Context, portal record.PortalID, yield func(wire []byte) bool) error {
	for _, r := range m.entries(portal, byKey) {
		if !r.Tombstone() && !yield(r.Wire) {
			break
		}
	}
	return nil
}

// Holding implements federation.Replica.
func (m *Replica) Holding(_ context.Context, portal record.PortalID) (agents int, size int64, err error) {
	for _, r := range m.entries(portal, bySeq) {
		if !r.Tombstone() {
			agents++
			size += int64(len(r.Wire))
		}
	}
	return agents, size, nil
}

// Drop implements federation.Replica.
func (m *Replica) Drop(_ context.Context, portal record.PortalID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, h := range m.slots {
		if slot.Portal == portal && slot.Type != record.TypeCard && slot.Type != record.TypeHead {
			h.Record, h.Void = nil, true
			m.slots[slot] = h
		}
	}
	delete(m.positions, portal)
	return nil
}

// Omit implements federation.Replica.
func (m *Replica) Omit(_ context.Context, portal record.PortalID, keys []record.Hash) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, h := range m.slots {
		if slot.Portal == portal && slot.Type == record.TypeAgent && h.Record != nil && slices.Contains(keys, keyOf(h.Record)) {
			h.Record, h.Void = nil, true
			m.slots[slot] = h
		}
	}
	return nil
}

// Position implements federation.Replica.
func (m *Replica) Position(_ context.Context, portal record.PortalID) (record.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.positions[portal], nil
}

// SetPosition implements federation.Replica.
func (m *Replica) SetPosition(_ context.Context, portal record.PortalID, at record.Version) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.positions == nil {
		m.positions = make(map[record.PortalID]record.Version)
	}
	m.positions[portal] = at
	return nil
}

// Others implements federation.Replica.
func (m *Replica) Others(_ context.Context, types []record.Type, after int64, limit int) ([]federation.Numbered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []federation.Numbered
	for slot, h := range m.slots {
		if h.Record != nil && h.number > after && slices.Contains(types, slot.Type) {
			out = append(out, federation.Numbered{Number: h.number, Wire: h.Wire})
		}
	}
	slices.SortFunc(out, func(a, b federation.Numbered) int { return cmp.Compare(a.Number, b.Number) })
	return out[:min(limit, len(out))], nil
}

// Sweep implements federation.Replica: it forgets what has expired, and the
// versions that need not be remembered.
func (m *Replica) Sweep(_ context.Context, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, h := range m.slots {
		if h.Until != 0 && h.Until <= now.UnixMilli() {
			delete(m.slots, slot)
			continue
		}
		if h.Record != nil && slot.Type != record.TypeCard && slot.Type != record.TypeHead && h.Expires <= now.UnixMilli() {
			h.Record, h.Void = nil, true
			m.slots[slot] = h
		}
	}
	return nil
}

// Clone returns a copy of the replica as a backup makes it.
func (m *Replica) Clone() *Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Replica{portals: maps.Clone(m.portals), slots: maps.Clone(m.slots), conflicts: maps.Clone(m.conflicts), positions: maps.Clone(m.positions), number: m.number}
}

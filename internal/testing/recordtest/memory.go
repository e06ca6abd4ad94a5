// Package recordtest gives tests a record.Memory in memory and portals whose
// keys are the same in every run. What the Memory does is what a database must
// do, and its tests are for both.
package recordtest

import (
	"context"
	"sync"

	"agentsite/internal/record"
)

// Memory is a record.Memory. The zero value is ready.
type Memory struct {
	mu        sync.Mutex // guards the rest
	portals   map[record.PortalID]record.Standing
	slots     map[record.Slot]held
	conflicts []record.Conflict
}

type held struct {
	record.Seen
	wire []byte
	key  record.KeyID
}

// Standing implements record.Memory.
func (m *Memory) Standing(_ context.Context, id record.PortalID) (record.Standing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.portals[id], nil
}

// Seen implements record.Memory.
func (m *Memory) Seen(_ context.Context, slot record.Slot) (record.Seen, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[slot].Seen, nil
}

// Held implements record.Memory.
func (m *Memory) Held(_ context.Context, slot record.Slot) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[slot].wire, nil
}

// Keep implements record.Memory.
func (m *Memory) Keep(_ context.Context, r *record.Record, was record.Seen, until int64) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slot := r.Slot()
	if m.slots[slot].Seen != was {
		return false, nil
	}
	if m.slots == nil {
		m.slots = make(map[record.Slot]held)
	}
	m.slots[slot] = held{record.Seen{Version: r.Version(), Hash: r.Hash, Until: until}, r.Wire, r.Key}
	s := m.portals[r.Portal]
	switch body := r.Body.(type) {
	case *record.Card:
		s.Ring = body.Ring()
		for slot, h := range m.slots {
			if slot.Portal == r.Portal && slot.Type != record.TypeCard && !s.Ring.Has(h.key) {
				h.wire, h.Void = nil, true // its version is remembered
				m.slots[slot] = h
			}
		}
	case *record.Head:
		s.Head = r.Version()
	}
	m.put(r.Portal, s)
	return true, nil
}

// Quarantine implements record.Memory.
func (m *Memory) Quarantine(_ context.Context, c record.Conflict) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.portals[c.Slot.Portal]
	s.Quarantined = true
	m.put(c.Slot.Portal, s)
	m.conflicts = append(m.conflicts, c)
	return nil
}

// put sets a standing; the caller holds mu.
func (m *Memory) put(id record.PortalID, s record.Standing) {
	if m.portals == nil {
		m.portals = make(map[record.PortalID]record.Standing)
	}
	m.portals[id] = s
}

// Pardon ends a portal's quarantine, as an operator may.
func (m *Memory) Pardon(id record.PortalID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.portals[id]
	s.Quarantined = false
	m.put(id, s)
}

// Forget drops what may be forgotten at now, in milliseconds.
func (m *Memory) Forget(now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, h := range m.slots {
		if h.Until != 0 && h.Until <= now {
			delete(m.slots, slot)
		}
	}
}

// Conflicts returns the conflicts that were kept.
func (m *Memory) Conflicts() []record.Conflict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]record.Conflict(nil), m.conflicts...)
}

// Bulk is a Memory that is a record.Bulk too.
type Bulk struct{ *Memory }

// SeenAll implements record.Bulk.
func (b Bulk) SeenAll(ctx context.Context, slots []record.Slot) ([]record.Seen, error) {
	all := make([]record.Seen, len(slots))
	for i, slot := range slots {
		all[i], _ = b.Seen(ctx, slot)
	}
	return all, nil
}

// KeepAll implements record.Bulk.
func (b Bulk) KeepAll(ctx context.Context, list []record.Keeping) ([]bool, error) {
	kept := make([]bool, len(list))
	for i, k := range list {
		kept[i], _ = b.Keep(ctx, k.Record, k.Was, k.Until)
	}
	return kept, nil
}

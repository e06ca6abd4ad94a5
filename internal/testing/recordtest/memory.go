// Package recordtest provides an implementation of record.Memory in memory, and portals whose keys are
// the same in every run. Memory defines the behaviour that a database must have: the same tests run for
// both.
package recordtest

import (
	"context"
	"sync"

	"agentsite/internal/record"
)

// Memory is a record.Memory that is kept in memory. The zero value is ready. It is safe for concurrent
// use.
type Memory struct {
	mu        sync.Mutex // guards the fields below
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
				h.wire, h.Void = nil, true // drop the record, but remember its version
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

// put sets the standing of a portal. The caller must hold mu.
func (m *Memory) put(id record.PortalID, s record.Standing) {
	if m.portals == nil {
		m.portals = make(map[record.PortalID]record.Standing)
	}
	m.portals[id] = s
}

// Pardon ends the quarantine of a portal, as an operator may. Its conflicts stay recorded.
func (m *Memory) Pardon(id record.PortalID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.portals[id]
	s.Quarantined = false
	m.put(id, s)
}

// Forget removes the versions that need not be remembered after now, in Unix milliseconds.
func (m *Memory) Forget(now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, h := range m.slots {
		if h.Until != 0 && h.Until <= now {
			delete(m.slots, slot)
		}
	}
}

// Conflicts returns a copy of the conflicts that Quarantine recorded.
func (m *Memory) Conflicts() []record.Conflict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]record.Conflict(nil), m.conflicts...)
}

// Bulk is a Memory that also implements record.Bulk.
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

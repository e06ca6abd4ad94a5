// Package federationtest provides implementations of federation.Replica, Registry and other ports in
// memory. Replica defines the behaviour that the database must have: Check tests both.
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

// Replica is a federation.Replica that is kept in memory. The zero value is ready. It is safe for
// concurrent use.
type Replica struct {
	mu        sync.Mutex // guards the fields below
	portals   map[record.PortalID]record.Standing
	slots     map[record.PortalID]map[record.Slot]held
	conflicts map[record.PortalID]record.Conflict
	settled   []record.Conflict // conflicts that an operator released, which do not count again
	progress  map[record.PortalID]progress
	number    int64 // number of the newest stored record
}

type held struct {
	record.Seen
	*record.Record // nil if only the version and hash are remembered
	number         int64
	turn           int64
	before         *held // the covered record that stays until a head covers this one, nil if none
}

// progress is the state of the pull of a portal's log. turn counts the completed pulls.
type progress struct {
	at    record.Version
	whole federation.Whole
	turn  int64
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
	return m.slots[slot.Portal][slot].Seen, nil
}

// Held implements record.Memory.
func (m *Replica) Held(_ context.Context, slot record.Slot) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[slot.Portal][slot].wire(), nil
}

func (h held) wire() []byte {
	if h.Record == nil {
		return nil
	}
	return h.Wire
}

// covered returns the record of an agent that a head covers in a turn: h itself or the record before
// it; nil if there is none. It leaves out tombstones that a newer record will replace.
func (h held) covered(turn int64) *held {
	switch {
	case h.turn >= turn:
		return h.before
	case h.Record == nil || h.Type != record.TypeAgent || h.Tombstone():
		return nil
	}
	h.before = nil
	return &h
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
		all[i] = m.slots[slot.Portal][slot].Seen
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

// keep is Keep for callers that hold mu.
func (m *Replica) keep(r *record.Record, was record.Seen, until int64) bool {
	slot := r.Slot()
	slots := m.slots[r.Portal]
	if slots[slot].Seen != was || !admits(m.portals[r.Portal], r) {
		return false
	}
	if m.slots == nil {
		m.slots = make(map[record.PortalID]map[record.Slot]held)
	}
	if slots == nil {
		slots = make(map[record.Slot]held)
		m.slots[r.Portal] = slots
	}
	m.number++
	turn := m.progress[r.Portal].turn
	slots[slot] = held{record.Seen{Version: r.Version(), Hash: r.Hash, Until: until}, r, m.number, turn, slots[slot].covered(turn)}
	s := m.portals[r.Portal]
	switch body := r.Body.(type) {
	case *record.Card:
		s.Ring = body.Ring()
		for slot, h := range slots {
			if h.before != nil && !s.Ring.Has(h.before.Key) {
				h.before = nil
				slots[slot] = h
			}
			if slot.Type != record.TypeCard && h.Record != nil && !s.Ring.Has(h.Key) {
				h.Record, h.Void = nil, true // drop the record, but remember its version
				slots[slot] = h
				m.anew(r.Portal)
			}
		}
	case *record.Head:
		if s.Head.Epoch < r.Epoch {
			m.end(r.Portal, r.Epoch)
		}
		if s.Head.Epoch < r.Epoch || s.Head == r.Version() {
			m.anew(r.Portal)
		}
		s.Head = r.Version()
	}
	m.stand(r.Portal, s)
	return true
}

// admits reports whether the gate's decision about r still holds. The standing may have changed since
// the gate verified the record.
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

// end removes the agents of epochs before the given one. The caller must hold mu.
func (m *Replica) end(portal record.PortalID, epoch int64) {
	for slot, h := range m.slots[portal] {
		if slot.Type == record.TypeAgent && h.Seen.Epoch < epoch {
			delete(m.slots[portal], slot)
		} else if h.before != nil && h.before.Seen.Epoch < epoch {
			h.before = nil
			m.slots[portal][slot] = h
		}
	}
}

// anew makes the next pull of a portal start from the beginning. The caller must hold mu.
func (m *Replica) anew(portal record.PortalID) {
	m.set(portal, progress{turn: m.progress[portal].turn})
}

func (m *Replica) set(portal record.PortalID, p progress) {
	if m.progress == nil {
		m.progress = make(map[record.PortalID]progress)
	}
	m.progress[portal] = p
}

// stand sets the standing of a portal. The caller must hold mu.
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

// Convicted implements federation.Replica.
func (m *Replica) Convicted(context.Context) (out []record.PortalID, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.conflicts {
		if m.portals[id].Quarantined {
			out = append(out, id)
		}
	}
	return out, nil
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
	for portal, slots := range m.slots {
		if h := slots[record.Slot{Type: record.TypeHead, Portal: portal}]; h.Record != nil {
			head := h.Body.(*record.Head)
			out = append(out, federation.HeadRow{Portal: portal, Version: h.Seen.Version, Issued: head.Issued, Expires: head.Expires, Count: head.Count})
		}
	}
	slices.SortFunc(out, func(a, b federation.HeadRow) int { return cmp.Compare(a.Portal, b.Portal) })
	return out, nil
}

// entries returns the agent records of a portal, or of all portals for "", in the order of less. The
// caller must not hold mu.
func (m *Replica) entries(portal record.PortalID, less func(a, b *record.Record) int) []*record.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*record.Record
	for of, slots := range m.slots {
		if portal != "" && portal != of {
			continue
		}
		for slot, h := range slots {
			if slot.Type == record.TypeAgent && h.Record != nil {
				out = append(out, h.Record)
			}
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
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, h := range m.slots[portal] {
		if slot.Type == record.TypeAgent && h.Record != nil && keyOf(h.Record) == key {
			return h.Wire, nil
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
	for slot, h := range m.slots[portal] {
		if slot.Type != record.TypeCard && slot.Type != record.TypeHead {
			h.Record, h.Void, h.before = nil, true, nil
			m.slots[portal][slot] = h
		}
	}
	m.anew(portal)
	return nil
}

// LetGo implements federation.Replica.
func (m *Replica) LetGo(_ context.Context, portal record.PortalID, most int) (done bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for slot, h := range m.slots[portal] {
		if slot.Type == record.TypeAgent && h.Record != nil && n < most {
			h.Record, h.Void, h.before = nil, true, nil
			m.slots[portal][slot] = h
			n++
		}
	}
	m.anew(portal)
	return n < most, nil
}

// Omit implements federation.Replica.
func (m *Replica) Omit(_ context.Context, portal record.PortalID, keys []record.Hash) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slot, h := range m.slots[portal] {
		if slot.Type == record.TypeAgent && h.Record != nil && slices.Contains(keys, keyOf(h.Record)) {
			h.Record, h.Void, h.before = nil, true, nil
			m.slots[portal][slot] = h
		}
	}
	return nil
}

// Position implements federation.Replica.
func (m *Replica) Position(_ context.Context, portal record.PortalID) (record.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress[portal].at, nil
}

// SetPosition implements federation.Replica.
func (m *Replica) SetPosition(_ context.Context, portal record.PortalID, at record.Version) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.progress[portal]
	p.at = at
	m.set(portal, p)
	return nil
}

// Complete implements federation.Replica.
func (m *Replica) Complete(_ context.Context, portal record.PortalID, was, at record.Version, head federation.Whole) (turn int64, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, s := m.progress[portal], m.portals[portal]
	newest := m.slots[portal][record.Slot{Type: record.TypeHead, Portal: portal}]
	switch {
	case s.Quarantined, p.at != was, head.Epoch != s.Head.Epoch, head.Compare(s.Head) > 0:
		return 0, false, nil
	case head.Version == s.Head && (newest.Record == nil || newest.Record.Hash != head.Hash):
		return 0, false, nil
	}
	m.set(portal, progress{at, head, p.turn + 1})
	return p.turn, true, nil
}

// Whole implements federation.Replica.
func (m *Replica) Whole(_ context.Context, portal record.PortalID) (federation.Whole, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.progress[portal]
	return p.whole, p.turn, nil
}

// Covered implements federation.Replica.
func (m *Replica) Covered(_ context.Context, portal record.PortalID, turn int64, yield func(wire []byte) bool) error {
	m.mu.Lock()
	now := m.progress[portal].turn
	var list []*record.Record
	for slot, h := range m.slots[portal] {
		if c := h.covered(now); c != nil && c.turn >= turn {
			list = append(list, c.Record)
		} else if turn > 0 && slot.Type == record.TypeAgent && h.Record != nil && h.Tombstone() && h.turn >= turn && h.turn < now {
			list = append(list, h.Record)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, bySeq)
	for _, r := range list {
		if !yield(r.Wire) {
			break
		}
	}
	return nil
}

// CoveredAgent implements federation.Replica.
func (m *Replica) CoveredAgent(_ context.Context, portal record.PortalID, key record.Hash) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.progress[portal].turn
	for slot, h := range m.slots[portal] {
		if c := h.covered(now); c != nil && keyOf(c.Record) == key {
			return c.Wire, nil
		}
		if slot.Type == record.TypeAgent && h.Record != nil && h.turn < now && keyOf(h.Record) == key {
			return h.Wire, nil // the record is a tombstone that a head covers
		}
	}
	return nil, nil
}

// Others implements federation.Replica.
func (m *Replica) Others(_ context.Context, types []record.Type, after int64, limit int) ([]federation.Numbered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []federation.Numbered
	for _, slots := range m.slots {
		for slot, h := range slots {
			if h.Record != nil && h.number > after && slices.Contains(types, slot.Type) {
				out = append(out, federation.Numbered{Number: h.number, Wire: h.Wire})
			}
		}
	}
	slices.SortFunc(out, func(a, b federation.Numbered) int { return cmp.Compare(a.Number, b.Number) })
	return out[:min(limit, len(out))], nil
}

// Sweep implements federation.Replica. It removes expired records, and the versions that need not be
// remembered any longer.
func (m *Replica) Sweep(_ context.Context, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, slots := range m.slots {
		for slot, h := range slots {
			if h.Until != 0 && h.Until <= now.UnixMilli() {
				delete(slots, slot)
				continue
			}
			if h.before != nil && h.before.Expires <= now.UnixMilli() {
				h.before = nil
				slots[slot] = h
			}
			if h.Record != nil && slot.Type != record.TypeCard && slot.Type != record.TypeHead && h.Expires <= now.UnixMilli() {
				h.Record, h.Void = nil, true
				slots[slot] = h
			}
		}
	}
	return nil
}

// Clone returns a copy of the replica, for tests of a restored backup.
func (m *Replica) Clone() *Replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	slots := make(map[record.PortalID]map[record.Slot]held, len(m.slots))
	for portal, list := range m.slots {
		slots[portal] = maps.Clone(list)
	}
	return &Replica{portals: maps.Clone(m.portals), slots: slots, conflicts: maps.Clone(m.conflicts), progress: maps.Clone(m.progress), number: m.number}
}

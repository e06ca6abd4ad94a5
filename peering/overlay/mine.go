package overlay

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
	"agentsite/peering/kademlia"
)

// mine are the keys that this portal publishes: its own id, its host, each agent
// that it lists, each capability of these. They are signed when they are stored.
type mine struct {
	o *Overlay

	// The following are used by load alone. The own log is read up to seq.
	epoch, seq int64
	agents     map[kademlia.ID][]uint32 // the numbers of the agent's capabilities in caps
	caps       []entry
	capNumber  map[kademlia.ID]uint32
	changed    map[kademlia.ID]entry // keys that differ from keys; a count of 0 removes one

	mu   sync.Mutex // guards the rest
	keys []entry    // in order of key
	head *record.Record
}

// entry is one key.
type entry struct {
	key   kademlia.ID
	kind  string // of record.Provider; empty for the portal's own id and host
	count int64
}

// settle is how long nothing has to change before it is looked at what did.
const settle = 2 * time.Second

// publish keeps the keys as what the portal publishes is, and has stored at
// once what is new.
func (o *Overlay) publish(ctx context.Context) {
	first := true
	for {
		fresh, err := o.mine.load(ctx)
		switch {
		case err != nil:
			o.cfg.Log.Warn("what this portal publishes could not be read for the DHT", "error", err)
		case first && len(fresh) > 0:
			o.run.Publish()
			first = false
		default:
			o.store(ctx, fresh)
		}
		select {
		case <-ctx.Done():
			return
		case <-o.changed:
		}
		wait := time.NewTimer(settle)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// maxFresh is how many new keys are stored one by one; more are left to a round
// through all.
const maxFresh = 64

func (o *Overlay) store(ctx context.Context, fresh []entry) {
	if len(fresh) > maxFresh {
		o.run.Publish()
		return
	}
	for _, e := range fresh {
		if rec, ok := o.mine.sign(e); ok {
			if _, err := o.run.Put(ctx, rec); err != nil {
				return
			}
		}
	}
}

// load reads the entries of the own log that are new, and returns the keys that
// were not among keys before. After the first call it reads only new entries.
func (m *mine) load(ctx context.Context) (fresh []entry, err error) {
	wire, err := m.o.cfg.Head(ctx)
	if err != nil || wire == nil {
		return nil, err
	}
	network := m.o.cfg.Self.Network()
	head, err := record.Open(network, wire)
	if err != nil {
		return nil, err
	}
	body, ok := head.Body.(*record.Head)
	if !ok {
		return nil, fmt.Errorf("a %s is in the place of the head", head.Type)
	}
	// A tombstone older than LogStart may be missing from the log.
	if head.Epoch != m.epoch || body.LogStart > m.seq+1 {
		m.reset(head.Epoch)
	}
	for {
		page, err := m.o.cfg.Entries(ctx, m.seq)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, wire := range page {
			r, err := record.Open(network, wire)
			if err != nil {
				return nil, err
			}
			a, ok := r.Body.(*record.Agent)
			if !ok || r.Epoch != m.epoch || r.Seq < m.seq {
				return nil, fmt.Errorf("entry %d.%d of the own log is out of order", r.Epoch, r.Seq)
			}
			m.apply(a)
			m.seq = r.Seq
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys, fresh = merge(m.keys, m.changed)
	m.changed, m.head = make(map[kademlia.ID]entry), head
	return fresh, nil
}

// reset begins with the empty log of an epoch.
func (m *mine) reset(epoch int64) {
	m.epoch, m.seq = epoch, 0
	m.agents, m.caps, m.capNumber = make(map[kademlia.ID][]uint32), nil, make(map[kademlia.ID]uint32)
	m.changed = make(map[kademlia.ID]entry)
	m.set(entry{key: m.o.id, count: 1})
	m.set(entry{key: hostKey(m.o.cfg.Self.Origin()), count: 1})
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.keys {
		if _, stays := m.changed[e.key]; !stays {
			e.count = 0
			m.set(e)
		}
	}
}

func (m *mine) set(e entry) { m.changed[e.key] = e }

// apply changes the keys as an entry of the log says.
func (m *mine) apply(a *record.Agent) {
	key := kademlia.ID(record.AgentKey(record.AgentID(a.Portal, a.ID)))
	for _, n := range m.agents[key] {
		m.caps[n].count--
		m.set(m.caps[n])
	}
	if a.Deleted {
		delete(m.agents, key)
		m.set(entry{key, record.ProvidesAgent, 0})
		return
	}
	var caps []uint32
	for _, c := range a.Caps {
		for _, k := range record.CapKeys(c) {
			n, known := m.capNumber[kademlia.ID(k)]
			if !known {
				n = uint32(len(m.caps))
				m.capNumber[kademlia.ID(k)] = n
				m.caps = append(m.caps, entry{kademlia.ID(k), record.ProvidesCap, 0})
			}
			if !slices.Contains(caps, n) {
				caps = append(caps, n)
				m.caps[n].count++
				m.set(m.caps[n])
			}
		}
	}
	m.agents[key] = slices.Clip(caps)
	m.set(entry{key, record.ProvidesAgent, 1})
}

// merge applies changes to keys, which are in order. It returns the result and
// the keys that are new.
func merge(keys []entry, changed map[kademlia.ID]entry) (all, fresh []entry) {
	order := func(a, b entry) int { return bytes.Compare(a.key[:], b.key[:]) }
	news := slices.SortedFunc(maps.Values(changed), order)
	all = make([]entry, 0, len(keys)+len(news))
	for _, e := range news {
		i, had := slices.BinarySearchFunc(keys, e.key, byKey)
		all = append(all, keys[:i]...)
		keys = keys[i:]
		if had {
			keys = keys[1:]
		}
		if e.count > 0 {
			all = append(all, e)
			if !had {
				fresh = append(fresh, e)
			}
		}
	}
	return append(all, keys...), fresh
}

// has reports whether this portal sees to a key.
func (m *mine) has(key kademlia.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := slices.BinarySearchFunc(m.keys, key, byKey)
	return ok
}

func byKey(e entry, key kademlia.ID) int { return bytes.Compare(e.key[:], key[:]) }

// Next implements kademlia.Source.
func (m *mine) Next(from kademlia.ID, n int) []kademlia.Record {
	m.mu.Lock()
	i, _ := slices.BinarySearchFunc(m.keys, from, byKey)
	list := m.keys[i:min(len(m.keys), i+n)] // keys are replaced, not changed
	m.mu.Unlock()
	out := make([]kademlia.Record, 0, len(list))
	for _, e := range list {
		if r, ok := m.sign(e); ok {
			out = append(out, r)
		}
	}
	return out
}

// sign makes the record of a key. ok is false while the portal can sign nothing.
func (m *mine) sign(e entry) (kademlia.Record, bool) {
	m.mu.Lock()
	head := m.head
	m.mu.Unlock()
	card := m.o.cfg.Self.Card()
	if head == nil || card == nil {
		return kademlia.Record{}, false
	}
	if e.kind == "" {
		return kademlia.Record{Key: e.key, Value: join(card, head.Wire)}, true
	}
	now := clock.Now()
	_, key, until, err := m.o.cfg.Self.Key(now)
	if err != nil {
		return kademlia.Record{}, false
	}
	ms := now.UnixMilli()
	r, err := record.Sign(m.o.cfg.Self.Network(), &record.Provider{Kind: e.kind, Key: record.Hash(e.key), HeadSeq: head.Seq, Count: e.count,
		Header: record.Header{Portal: m.o.cfg.Self.ID(), Epoch: head.Epoch, Seq: ms, Issued: ms, Expires: min(now.Add(valueLife).UnixMilli(), until.UnixMilli())}}, key)
	if err != nil {
		m.o.cfg.Log.Warn("a record for the DHT was not signed", "error", err)
		return kademlia.Record{}, false
	}
	return kademlia.Record{Key: e.key, Value: join(card, r.Wire)}, true
}

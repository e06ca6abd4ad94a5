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

// mine holds the keys that this portal publishes in the DHT: its own id, its host, and those of its agents
// and their capabilities. Records are signed when they are sent. It implements kademlia.Source.
type mine struct {
	o *Overlay

	// Only loadLog uses the following fields. epoch and seq are the version up to which the own log was
	// read.
	epoch, seq int64
	agents     map[kademlia.ID][]uint32 // for each agent the indexes of its capabilities in caps
	caps       []entry
	capNumber  map[kademlia.ID]uint32
	changed    map[kademlia.ID]entry // changes to apply to keys; a count of 0 removes the key

	mu   sync.Mutex // guards the fields below
	keys []entry    // sorted by key; replaced as a whole, never changed
	head *record.Record
}

// entry is one published key and the number of agents under it.
type entry struct {
	key   kademlia.ID
	kind  string // Kind of the record.Provider; "" for the portal's own id and host
	count int64
}

// settle is the pause after a change before the log is read, so that a burst of changes is read at once.
const settle = 2 * time.Second

// publishKeys updates the published keys after each change of the log and stores new keys in the DHT, until
// ctx ends. The first call stores all keys.
func (o *Overlay) publishKeys(ctx context.Context) {
	first := true
	for {
		fresh, err := o.mine.loadLog(ctx)
		switch {
		case err != nil:
			o.cfg.Log.Warn("read the published agents for the DHT", "error", err)
		case first && len(fresh) > 0:
			o.run.Publish()
			first = false
		default:
			o.storeKeys(ctx, fresh)
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

// maxFresh bounds the new keys that are stored one by one. For more, all keys are stored region by region,
// which needs fewer requests for each.
const maxFresh = 64

func (o *Overlay) storeKeys(ctx context.Context, fresh []entry) {
	if len(fresh) > maxFresh {
		o.run.Publish()
		return
	}
	for _, e := range fresh {
		if rec, ok := o.mine.signRecord(e); ok {
			if _, err := o.run.Put(ctx, rec); err != nil {
				return
			}
		}
	}
}

// loadLog reads the entries of the own log that are new since the last call (at first all), updates keys,
// and returns those that were added.
func (m *mine) loadLog(ctx context.Context) (fresh []entry, err error) {
	wire, err := m.o.cfg.Records.Head(ctx, m.o.cfg.Self.ID())
	if err != nil || wire == nil {
		return nil, err
	}
	head, err := record.Open(m.o.cfg.Self.Network(), wire)
	if err != nil {
		return nil, err
	}
	body, ok := head.Body.(*record.Head)
	if !ok {
		return nil, fmt.Errorf("the head is a record of the type %s", head.Type)
	}
	// In another epoch, or if tombstones after m.seq may be gone from the log, it has to be read from the
	// start.
	if head.Epoch != m.epoch || body.LogStart > m.seq+1 {
		m.resetKeys(head.Epoch)
	}
	for {
		page, err := m.o.cfg.Records.Log(ctx, m.o.cfg.Self.ID(), m.seq, ownLogPage, ownLogBytes)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, wire := range page {
			body, err := record.DecodeAdmitted(wire)
			if err != nil {
				return nil, err
			}
			a, ok := body.(*record.Agent)
			if !ok || a.Epoch != m.epoch || a.Seq < m.seq {
				return nil, fmt.Errorf("an entry of the own log after %d.%d is out of order", m.epoch, m.seq)
			}
			m.applyEntry(a)
			m.seq = a.Seq
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys, fresh = mergeKeys(m.keys, m.changed)
	m.changed, m.head = make(map[kademlia.ID]entry), head
	return fresh, nil
}

// resetKeys prepares reading a log from its start: only the portal's id and host remain, and all other keys
// are removed unless the log lists them.
func (m *mine) resetKeys(epoch int64) {
	m.epoch, m.seq = epoch, 0
	m.agents, m.caps, m.capNumber = make(map[kademlia.ID][]uint32), nil, make(map[kademlia.ID]uint32)
	m.changed = make(map[kademlia.ID]entry)
	m.setEntry(entry{key: m.o.id, count: 1})
	m.setEntry(entry{key: hostKey(m.o.cfg.Self.Origin()), count: 1})
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.keys {
		if _, stays := m.changed[e.key]; !stays {
			e.count = 0
			m.setEntry(e)
		}
	}
}

func (m *mine) setEntry(e entry) { m.changed[e.key] = e }

// applyEntry updates the changed keys by one entry of the log: an agent that was added, changed or deleted.
func (m *mine) applyEntry(a *record.Agent) {
	key := kademlia.ID(record.AgentKey(record.AgentID(a.Portal, a.ID)))
	for _, n := range m.agents[key] {
		m.caps[n].count--
		m.setEntry(m.caps[n])
	}
	if a.Deleted {
		delete(m.agents, key)
		m.setEntry(entry{key, record.ProvidesAgent, 0})
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
				m.setEntry(m.caps[n])
			}
		}
	}
	m.agents[key] = slices.Clip(caps)
	m.setEntry(entry{key, record.ProvidesAgent, 1})
}

// mergeKeys applies the changes to keys, which are sorted by key. It returns the new list, and the entries
// with keys that were not in the old one.
func mergeKeys(keys []entry, changed map[kademlia.ID]entry) (all, fresh []entry) {
	order := func(a, b entry) int { return bytes.Compare(a.key[:], b.key[:]) }
	news := slices.AppendSeq(make([]entry, 0, len(changed)), maps.Values(changed))
	slices.SortFunc(news, order)
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

// hasKey reports whether this portal itself publishes a record under a key.
func (m *mine) hasKey(key kademlia.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := slices.BinarySearchFunc(m.keys, key, byKey)
	return ok
}

func byKey(e entry, key kademlia.ID) int { return bytes.Compare(e.key[:], key[:]) }

// Next implements kademlia.Source. It signs the records that it returns.
func (m *mine) Next(from kademlia.ID, n int) []kademlia.Record {
	m.mu.Lock()
	i, _ := slices.BinarySearchFunc(m.keys, from, byKey)
	list := m.keys[i:min(len(m.keys), i+n)] // keys is never changed in place, so the slice may be read without mu
	m.mu.Unlock()
	out := make([]kademlia.Record, 0, len(list))
	for _, e := range list {
		if r, ok := m.signRecord(e); ok {
			out = append(out, r)
		}
	}
	return out
}

// signRecord signs the record of a key with the current head and card. ok is false if the portal cannot
// sign now.
func (m *mine) signRecord(e entry) (kademlia.Record, bool) {
	m.mu.Lock()
	head := m.head
	m.mu.Unlock()
	card := m.o.cfg.Self.Card()
	if head == nil || card == nil {
		return kademlia.Record{}, false
	}
	if e.kind == "" {
		return kademlia.Record{Key: e.key, Value: joinLines(card, head.Wire)}, true
	}
	now := clock.Now()
	_, key, until, err := m.o.cfg.Self.Key(now)
	if err != nil {
		return kademlia.Record{}, false
	}
	ms := now.UnixMilli()
	r, err := record.Sign(m.o.cfg.Self.Network(),
		&record.Provider{Kind: e.kind, Key: record.Hash(e.key), HeadSeq: head.Seq, Count: e.count,
			Header: record.Header{Portal: m.o.cfg.Self.ID(), Epoch: head.Epoch, Seq: ms, Issued: ms,
				Expires: min(now.Add(valueLife).UnixMilli(), until.UnixMilli())}}, key)
	if err != nil {
		m.o.cfg.Log.Warn("sign a record for the DHT", "error", err)
		return kademlia.Record{}, false
	}
	return kademlia.Record{Key: e.key, Value: joinLines(card, r.Wire)}, true
}

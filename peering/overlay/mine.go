package overlay

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
	"agentsite/peering/kademlia"
)

// mine are the keys that this portal sees to: its own id, its host, each agent
// that it publishes, each capability of these. They are signed when they are stored.
type mine struct {
	o *Overlay

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

// load reads what is published, and returns the keys that were not among it
// before.
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
	agents, caps := make(map[kademlia.ID]bool), make(map[kademlia.ID]int64)
	err = m.o.cfg.Listed(ctx, func(wire []byte) bool {
		r, err := record.Open(network, wire)
		if err != nil {
			return true
		}
		a, ok := r.Body.(*record.Agent)
		if !ok || a.Deleted {
			return true
		}
		agents[kademlia.ID(record.AgentKey(record.AgentID(a.Portal, a.ID)))] = true
		mine := make(map[record.Hash]bool)
		for _, c := range a.Caps {
			for _, k := range record.CapKeys(c) {
				mine[k] = true
			}
		}
		for k := range mine {
			caps[kademlia.ID(k)]++
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return nil, err
	}
	keys := make([]entry, 0, 2+len(agents)+len(caps))
	keys = append(keys, entry{key: m.o.id}, entry{key: hostKey(m.o.cfg.Self.Origin())})
	for k := range agents {
		keys = append(keys, entry{k, record.ProvidesAgent, 1})
	}
	for k, n := range caps {
		keys = append(keys, entry{k, record.ProvidesCap, n})
	}
	sort.Slice(keys, func(i, j int) bool { return bytes.Compare(keys[i].key[:], keys[j].key[:]) < 0 })

	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range keys {
		if _, had := slices.BinarySearchFunc(m.keys, e.key, byKey); !had {
			fresh = append(fresh, e)
		}
	}
	m.keys, m.head = keys, head
	return fresh, nil
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
	list := m.keys[i:min(len(m.keys), i+n)]
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

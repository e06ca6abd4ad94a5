// Package answer answers questions about agents: other portals' searches among
// this portal's agents, and the hub's questions about agents of other portals.
package answer

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"agentsite/internal/agentkind"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
	"agentsite/peering/translate"
)

// Answerer finds this portal's own agents for other portals, with the proof of each listing. On an
// index portal it finds agents of other portals too. It is safe for concurrent use.
type Answerer struct {
	// Self and Host are this portal's id and host, Network the name in everything
	// signed.
	Self    record.PortalID
	Host    string
	Network string
	Replica federation.Replica
	// Directory finds public agents.
	Directory Directory
	Publisher Publisher
	// Tiers returns the tier of this portal. An index portal proves the records it holds of others by
	// Archive. Nil for a portal that is no index.
	Tiers   catalog.Tiers
	Archive Prover

	ready  ready
	proved provenHits
}

// Directory finds agents for an actor: hub.Service.
type Directory interface {
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
}

// Publisher proves that a head of this portal covers an agent: publish.Publisher.
type Publisher interface {
	Prove(ctx context.Context, portal record.PortalID, key record.Hash) *record.Proof
}

// errBetween: a record has changed and the head that covers it is not there
// yet.
var errBetween = errors.New("between two heads")

// Answer looks for agents. Those that are not published are left out.
func (s *Answerer) Answer(ctx context.Context, asker record.PortalID,
	q federation.SearchQuestion) (*federation.SearchAnswer, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = federation.MaxFound
	}
	if q.Of == federation.OfAll && s.Tiers != nil && s.Tiers.Tier() == record.TierIndex {
		return s.searchAll(ctx, asker, q)
	}
	page, err := s.searchKinds(ctx, hub.Query{Text: q.Text, Kinds: q.Kinds, Tags: q.Tags, Skills: q.Skills, Live: q.Live,
		Languages: q.Languages,
		Limit:     q.Limit, Scope: hub.ScopePortal, Bare: true})
	if err != nil {
		return nil, err
	}
	a, err := s.proveHits(ctx, page)
	for try := 1; try < maxTries && errors.Is(err, errBetween); try++ {
		select {
		case <-time.After(tryPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		a, err = s.proveHits(ctx, page)
	}
	if errors.Is(err, errBetween) {
		return nil, federation.Refuse(federation.ReasonBusy,
			"The agents here are just changing. Ask again in a moment.")
	}
	return a, err
}

// publishedKinds are the kinds of agents that portals publish: not the built-in ones.
var publishedKinds = func() []string {
	var list []string
	for _, k := range agentkind.Registered() {
		list = append(list, string(k))
	}
	return list
}()

// searchKinds finds agents of the kinds of a query that portals publish.
func (s *Answerer) searchKinds(ctx context.Context, q hub.Query) (hub.Page, error) {
	if len(q.Kinds) == 0 {
		q.Kinds = publishedKinds
	} else {
		q.Kinds = slices.DeleteFunc(slices.Clone(q.Kinds), func(k string) bool { return k == string(hub.Builtin) })
	}
	if len(q.Kinds) == 0 {
		return hub.Page{}, nil
	}
	return s.Directory.Search(ctx, ident.Actor{Kind: ident.Guest}, q)
}

// An answer is built again while agents change during it, at most so often and after this pause. A portal with many
// edits has new heads faster than a slow machine proves a page, and half a second is less than searchers wait.
const (
	maxTries = 10
	tryPause = 50 * time.Millisecond
)

// maxHits bounds the cached agents with record and proof, of some 3 KiB each.
const maxHits = 4096

// ready caches agents found under one head, with their proofs, because the same agents are found
// again.
type ready struct {
	mu   sync.Mutex // guards the rest
	wire []byte     // of the head
	head *record.Head
	hits map[record.Hash]federation.Hit // by key
}

// cachedHead returns the head in wire, and empties the cache when the head has changed.
func (r *ready) cachedHead(network string, wire []byte) (*record.Head, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head != nil && bytes.Equal(r.wire, wire) {
		return r.head, nil
	}
	h, err := record.Open(network, wire)
	if err != nil {
		return nil, err
	}
	head, ok := h.Body.(*record.Head)
	if !ok {
		return nil, errBetween
	}
	r.wire, r.head, r.hits = wire, head, make(map[record.Hash]federation.Hit)
	return head, nil
}

func (r *ready) get(head *record.Head, key record.Hash) (federation.Hit, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.hits[key]
	return h, ok && r.head == head
}

func (r *ready) put(head *record.Head, key record.Hash, h federation.Hit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head == head && len(r.hits) < maxHits {
		r.hits[key] = h
	}
}

// newestHead returns the cached head; ok is false if it does not have the version of the newest.
func (r *ready) newestHead(v record.Version) (head *record.Head, wire []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head, r.wire, r.head != nil && r.head.Version() == v
}

// ownHead returns this portal's newest head, which is read when it is another.
func (s *Answerer) ownHead(ctx context.Context) (*record.Head, []byte, error) {
	standing, err := s.Replica.Standing(ctx, s.Self)
	if err != nil {
		return nil, nil, err
	}
	if head, wire, ok := s.ready.newestHead(standing.Head); ok {
		return head, wire, nil
	}
	wire, err := s.Replica.Head(ctx, s.Self)
	if err != nil {
		return nil, nil, err
	}
	if wire == nil {
		return nil, nil, errBetween
	}
	head, err := s.ready.cachedHead(s.Network, wire)
	return head, wire, err
}

// proveHits builds the answer from the agents found, with all proofs under one head.
func (s *Answerer) proveHits(ctx context.Context, page hub.Page) (*federation.SearchAnswer, error) {
	head, wire, err := s.ownHead(ctx)
	if err != nil {
		return nil, err
	}
	out := &federation.SearchAnswer{Head: wire, Total: page.Total, Results: []federation.Hit{}}
	for i := range page.Results {
		key := record.AgentKey(record.AgentID(s.Self, translate.LocalID(page.Results[i].Agent.ID)))
		hit, ok, err := s.cachedHit(ctx, head, key)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		hit.Score = page.Results[i].Score
		out.Results = append(out.Results, hit)
	}
	return out, nil
}

// cachedHit is hit, unless it is ready.
func (s *Answerer) cachedHit(ctx context.Context, head *record.Head, key record.Hash) (h federation.Hit, ok bool,
	err error) {
	if h, ok := s.ready.get(head, key); ok {
		return h, true, nil
	}
	if h, ok, err = s.buildHit(ctx, head, key); ok && err == nil {
		s.ready.put(head, key, h)
	}
	return h, ok, err
}

// buildHit is the record of an agent with the proof that the head covers it; false
// when it is not published.
func (s *Answerer) buildHit(ctx context.Context, head *record.Head, key record.Hash) (h federation.Hit, ok bool,
	err error) {
	wire, err := s.Replica.Agent(ctx, s.Self, key)
	if err != nil || wire == nil {
		return h, false, err
	}
	r, err := record.Open(s.Network, wire)
	if err != nil || r.Tombstone() {
		return h, false, err
	}
	p := s.Publisher.Prove(ctx, s.Self, key)
	if p == nil || !head.Covers(r, p) {
		return h, false, errBetween
	}
	proof, err := p.Encode()
	return federation.Hit{Record: wire, Proof: proof}, err == nil, err
}

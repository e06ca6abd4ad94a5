// Package answer answers queries for agents: those of other portals for this portal's agents, and those of
// the hub for agents of other portals.
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

// Answerer answers searches of other portals for this portal's agents, with the proof of each result. On an
// index portal it finds agents of other portals too. All fields are required except Tiers. It is safe for
// concurrent use.
type Answerer struct {
	// Self is this portal's id, Host the host of its URL, Network the network name in all records.
	Self    record.PortalID
	Host    string
	Network string
	Replica federation.Replica
	// Directory finds the agents that guests may see.
	Directory Directory
	Publisher Publisher
	// Tiers returns the tier of this portal; nil if it never is an index. With the tier index, Archive
	// proves the records of other portals that are held here.
	Tiers   catalog.Tiers
	Archive Prover

	ready  ready
	proved provenHits
}

// Directory searches agents as an actor may see them. hub.Service implements it.
type Directory interface {
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
}

// Publisher proves that the head of this portal covers an agent. publish.Publisher implements it.
type Publisher interface {
	Prove(ctx context.Context, portal record.PortalID, key record.Hash) *record.Proof
}

// errBetween is returned while a stored record is newer than the head, so that no proof exists yet.
var errBetween = errors.New("between two heads")

// Answer answers a search of the portal asker. Agents that are not published are left out. It returns a
// Refusal with ReasonBusy if the agents keep changing meanwhile, and an Invalid error for an invalid query.
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

// publishedKinds are the kinds of agents that portals publish: all but the built-in ones.
var publishedKinds = func() []string {
	var list []string
	for _, k := range agentkind.Registered() {
		list = append(list, string(k))
	}
	return list
}()

// searchKinds searches the agents visible to guests, without built-in ones, which are never published.
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

// An answer is built again if agents changed meanwhile, at most maxTries times with pauses of tryPause.
// Many edits may produce heads faster than a slow machine proves a page; half a second in all is less than
// the asking portal waits.
const (
	maxTries = 10
	tryPause = 50 * time.Millisecond
)

// maxHits bounds the cached agents with record and proof; each takes about 3 KiB.
const maxHits = 4096

// ready caches this portal's agents with their proofs under one head, because the same agents are found
// often. The zero value is ready; it is safe for concurrent use.
type ready struct {
	mu   sync.Mutex // guards the fields below
	wire []byte     // encoded form of the head
	head *record.Head
	hits map[record.Hash]federation.Hit // cached agents by their key in the hash tree
}

// cachedHead returns the decoded head, and empties the cache if it is another one than before.
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

// newestHead returns the cached head; ok is false if it does not have version v.
func (r *ready) newestHead(v record.Version) (head *record.Head, wire []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head, r.wire, r.head != nil && r.head.Version() == v
}

// ownHead returns this portal's newest head, decoded and encoded. It is read from the Replica only if it
// changed. Before the first head it returns errBetween.
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

// proveHits builds the answer from search results, with all proofs under one head. It returns errBetween if
// a record is newer than that head.
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

// cachedHit is buildHit with a cache, which holds the results under one head.
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

// buildHit returns the record of an agent with the proof that the head covers it. ok is false if the agent
// is not published; errBetween means that its record is newer than the head.
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

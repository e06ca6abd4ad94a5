package answer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

const (
	// indexedShare limits the results of one portal to 1/indexedShare of an answer, as long as other
	// portals have results too.
	indexedShare = 5
	// indexedWider is how many times more results are searched for than are returned, because some are left
	// out.
	indexedWider = 3
)

// Prover proves that a portal lists an agent. archive.Archive implements it. Its errors are NotFound for an
// agent that may not be displayed, and Unavailable while a log is being replaced.
type Prover interface {
	Head(ctx context.Context, portal record.PortalID) (federation.Told, *record.Head, error)
	Prove(ctx context.Context, portal record.PortalID, agentID string) (*archive.Proven, error)
}

// hitOf is a cache key: an agent of a portal, by its key in the hash tree.
type hitOf struct {
	portal record.PortalID
	key    record.Hash
}

// provenHits caches agents of other portals with their proofs, because a proof may need all leaves of the
// portal's tree. An entry is valid for one version of the portal's head. The zero value is ready; it is
// safe for concurrent use.
type provenHits struct {
	mu   sync.Mutex // guards list
	list map[hitOf]provenHit
}

type provenHit struct {
	federation.Hit
	under record.Version
}

func (p *provenHits) get(of hitOf, under record.Version) (federation.Hit, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, ok := p.list[of]
	return h.Hit, ok && h.under == under
}

func (p *provenHits) put(of hitOf, h provenHit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == nil || len(p.list) >= maxHits {
		p.list = make(map[hitOf]provenHit)
	}
	p.list[of] = h
}

// indexed is an answer to a query for the agents of all portals (federation.OfAll) under construction.
type indexed struct {
	*federation.SearchAnswer
	own    *record.Head
	size   int // approximate size of the answer in bytes
	places []int
	per    map[record.PortalID]int
}

// searchAll searches the agents of all portals that may be displayed, except those of the asking portal.
// Agents that cannot be proved at this time are left out, because the asking portal can find them
// elsewhere.
func (s *Answerer) searchAll(ctx context.Context, asker record.PortalID,
	q federation.SearchQuestion) (*federation.SearchAnswer, error) {
	of := hub.Query{Text: q.Text, Kinds: q.Kinds, Tags: q.Tags, Skills: q.Skills, Live: q.Live, Languages: q.Languages,
		Portals: slices.Clone(q.Portals),
		Limit:   min(indexedWider*q.Limit, 100), Bare: true}
	for i, host := range of.Portals {
		if host == s.Host {
			of.Portals[i] = "local"
		}
	}
	page, err := s.searchKinds(ctx, of)
	if err != nil {
		return nil, err
	}
	own, wire, err := s.ownHead(ctx)
	if err != nil {
		return nil, err
	}
	a := indexed{&federation.SearchAnswer{Head: wire, Total: page.Total, Results: []federation.Hit{}}, own, len(wire),
		nil, make(map[record.PortalID]int)}
	share := max(q.Limit/indexedShare, 1)
	var behind []int // results beyond the share of their portal
	for i := range page.Results {
		portal := s.listerOf(&page.Results[i].Agent)
		switch {
		case portal == asker || portal == "":
		case len(a.Results) == q.Limit:
		case a.per[portal] >= share:
			behind = append(behind, i)
		default:
			if err := s.addResult(ctx, &a, portal, i, page.Results[i]); err != nil {
				return nil, err
			}
		}
	}
	for _, i := range behind {
		if len(a.Results) == q.Limit {
			break
		}
		if err := s.addResult(ctx, &a, s.listerOf(&page.Results[i].Agent), i, page.Results[i]); err != nil {
			return nil, err
		}
	}
	a.rankHits()
	return a.SearchAnswer, nil
}

// listerOf returns the portal that lists an agent of the directory.
func (s *Answerer) listerOf(a *hub.Agent) record.PortalID {
	if !a.Elsewhere() {
		return s.Self
	}
	if a.PortalID != "" {
		return record.PortalID(a.PortalID)
	}
	portal, _ := translate.Local(a.ID)
	return portal
}

// addResult adds a result if it can be proved and fits into the answer; otherwise it is left out without an
// error. place is its rank in the search.
func (s *Answerer) addResult(ctx context.Context, a *indexed, portal record.PortalID, place int, r hub.Result) error {
	var told federation.Told
	var hit federation.Hit
	var ok bool
	var err error
	if portal == s.Self {
		key := record.AgentKey(record.AgentID(s.Self, translate.LocalID(r.Agent.ID)))
		if hit, ok, err = s.cachedHit(ctx, a.own, key); errors.Is(err, errBetween) {
			return nil
		}
	} else {
		told, hit, ok, err = s.proveHit(ctx, portal, r.Agent.ID)
	}
	if err != nil || !ok {
		return err
	}
	size := len(hit.Record) + len(hit.Proof)
	fresh := portal != s.Self && a.per[portal] == 0
	if fresh {
		size += len(told.Card) + len(told.Head)
	}
	if a.size+size > federation.MaxIndexed {
		return nil
	}
	if fresh {
		a.Heads = append(a.Heads, told)
	}
	hit.Score = r.Score
	a.Results, a.places = append(a.Results, hit), append(a.places, place)
	a.per[portal]++
	a.size += size
	return nil
}

// proveHit returns an agent of another portal with its proof under the newest head, together with that head
// and the card. ok is false if the agent may not be displayed or cannot be proved at this time.
func (s *Answerer) proveHit(ctx context.Context, portal record.PortalID, agentID string) (told federation.Told,
	h federation.Hit, ok bool, err error) {
	told, head, err := s.Archive.Head(ctx, portal)
	if err != nil {
		return told, h, false, unlessAbsent(err)
	}
	of := hitOf{portal, record.AgentKey(agentID)}
	if h, ok := s.proved.get(of, head.Version()); ok {
		return told, h, true, nil
	}
	// If the log held is older than the head, there is no proof under that head.
	if at, err := s.Replica.Position(ctx, portal); err != nil || at != head.Version() {
		return told, h, false, err
	}
	p, err := s.Archive.Prove(ctx, portal, agentID)
	if err != nil {
		return told, h, false, unlessAbsent(err)
	}
	if p.Record == nil || string(p.Head) != string(told.Head) {
		return told, h, false, nil
	}
	h = federation.Hit{Record: p.Record, Proof: p.Proof}
	s.proved.put(of, provenHit{h, head.Version()})
	return told, h, true, nil
}

// unlessAbsent returns nil for NotFound and Unavailable errors, and others unchanged.
func unlessAbsent(err error) error {
	if k := fault.As(err).Kind; k == fault.NotFound || k == fault.Unavailable {
		return nil
	}
	return err
}

// rankHits sorts the results by their rank in the search, because those beyond the share of their portal
// were added last.
func (a *indexed) rankHits() {
	at := make([]int, len(a.places))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int { return a.places[i] - a.places[j] })
	list := make([]federation.Hit, len(at))
	for to, from := range at {
		list[to] = a.Results[from]
	}
	a.Results = list
}

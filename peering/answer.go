package peering

import (
	"context"
	"errors"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

// Answerer finds this portal's own agents for other portals, with what shows
// each to be listed. It is safe for concurrent use.
type Answerer struct {
	// Self is this portal's id, Network the name in everything signed.
	Self    record.PortalID
	Network string
	Replica federation.Replica
	// Search finds what everybody may find.
	Search func(ctx context.Context, q hub.Query) (hub.Page, error)
	// Prove is Publisher.Prove.
	Prove func(ctx context.Context, portal record.PortalID, key record.Hash) *record.Proof
}

// errBetween: a record has changed and the head that covers it is not there
// yet.
var errBetween = errors.New("between two heads")

// Answer looks for agents. Those that are not published are left out.
func (s *Answerer) Answer(ctx context.Context, q federation.SearchQuestion) (*federation.SearchAnswer, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = federation.MaxFound
	}
	page, err := s.Search(ctx, hub.Query{Text: q.Text, Kinds: q.Kinds, Tags: q.Tags, Skills: q.Skills, Live: q.Live, Languages: q.Languages,
		Limit: q.Limit, Scope: hub.ScopePortal})
	if err != nil {
		return nil, err
	}
	a, err := s.prove(ctx, page)
	if errors.Is(err, errBetween) {
		a, err = s.prove(ctx, page)
	}
	if errors.Is(err, errBetween) {
		return nil, federation.Refuse(federation.ReasonBusy, "The agents here are just changing. Ask again in a moment.")
	}
	return a, err
}

// prove makes the answer of what was found, all of it under one head.
func (s *Answerer) prove(ctx context.Context, page hub.Page) (*federation.SearchAnswer, error) {
	wire, err := s.Replica.Head(ctx, s.Self)
	if err != nil {
		return nil, err
	}
	if wire == nil {
		return nil, errBetween
	}
	h, err := record.Open(s.Network, wire)
	if err != nil {
		return nil, err
	}
	head, ok := h.Body.(*record.Head)
	if !ok {
		return nil, errBetween
	}
	out := &federation.SearchAnswer{Head: wire, Total: page.Total, Results: []federation.Hit{}}
	for i := range page.Results {
		key := record.AgentKey(record.AgentID(s.Self, translate.LocalID(page.Results[i].Agent.ID)))
		wire, err := s.Replica.Agent(ctx, s.Self, key)
		if err != nil {
			return nil, err
		}
		if wire == nil {
			continue
		}
		r, err := record.Open(s.Network, wire)
		if err != nil {
			return nil, err
		}
		if r.Tombstone() {
			continue
		}
		p := s.Prove(ctx, s.Self, key)
		if p == nil || !head.Covers(r, p) {
			return nil, errBetween
		}
		proof, err := p.Encode()
		if err != nil {
			return nil, err
		}
		out.Results = append(out.Results, federation.Hit{Record: wire, Proof: proof, Score: page.Results[i].Score})
	}
	return out, nil
}

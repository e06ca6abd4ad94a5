package search

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// maxIndexes is how many index portals are asked for one search. One may leave
// out what it likes; two of different operators would have to agree on it.
const maxIndexes = 2

// inquiry is a portal that is asked, and what. Of index portals with all, for
// agents of others too; alone are those of which nothing else counts, as their own
// agents are held here, or not asked for.
type inquiry struct {
	federation.Peer
	body       []byte
	all, alone bool
}

// wants says whom to ask what for a query, and whether some are left out. With
// only summaries of others here, index portals are asked for all besides. Own is
// what others are asked, of whom there may be so many more.
func (s *Searcher) wants(ctx context.Context, q hub.Query, more int) (out []inquiry, own []byte, limited bool) {
	list, limited := s.choose(ctx, q)
	if len(list)+more == 0 {
		return nil, nil, false
	}
	var indexes []federation.Peer
	if len(list) > 0 {
		indexes = s.indexes(ctx, q)
	}
	list = slices.DeleteFunc(list, func(p federation.Peer) bool {
		return slices.ContainsFunc(indexes, func(x federation.Peer) bool { return x.ID == p.ID })
	})
	if room := maxAsked - len(indexes); len(list) > room {
		list, limited = list[:room], true
	}
	question := federation.SearchQuestion{Text: strings.Join(strings.Fields(q.Text), " "), Kinds: q.Kinds, Tags: q.Tags, Skills: q.Skills, Live: q.Live, Languages: q.Languages, Limit: each(min(len(list)+more, maxAsked))}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, nil, true
	}
	partly := s.Catalog.Partial()
	question.Limit, question.Of = federation.MaxFound, federation.OfAll
	for _, host := range q.Portals {
		if slices.ContainsFunc(partly, func(p federation.Peer) bool { return p.Host() == host }) && len(question.Portals) < federation.MaxWanted {
			question.Portals = append(question.Portals, host)
		}
	}
	ofAll, err := json.Marshal(question)
	if err != nil {
		return nil, nil, true
	}
	for _, p := range indexes {
		alone := !slices.ContainsFunc(partly, func(o federation.Peer) bool { return o.ID == p.ID }) || len(q.Portals) > 0 && !slices.Contains(q.Portals, p.Host())
		out = append(out, inquiry{p, ofAll, true, alone})
	}
	for _, p := range list {
		out = append(out, inquiry{p, body, false, false})
	}
	return out, body, limited
}

// indexes are the index portals that are asked for a query: of different sites,
// that an operator allowed or that were seen at their address, and that answer.
func (s *Searcher) indexes(ctx context.Context, q hub.Query) []federation.Peer {
	if !s.Catalog.SummaryOnly() {
		return nil
	}
	now := clock.Now()
	var list []federation.Peer
	for _, p := range s.Catalog.Indexes() {
		if p.State == federation.Active && trustIn(p, now) > 0 && s.Registry.Decide(ctx, p.ID, p.URL).Show {
			list = append(list, p)
		}
	}
	seed := soughtOf(q).seed
	slices.SortStableFunc(list, func(a, b federation.Peer) int {
		return cmp.Or(cmp.Compare(trustIn(b, now), trustIn(a, now)), cmp.Compare(pace(a.RTT), pace(b.RTT)), cmp.Compare(turnOf(seed, a.ID), turnOf(seed, b.ID)))
	})
	sites := make(map[string]bool)
	var out []federation.Peer
	for _, p := range list {
		if site := federation.SiteOf(p.Host()); !sites[site] && len(out) < maxIndexes {
			sites[site] = true
			out = append(out, p)
		}
	}
	return out
}

// lister is a portal whose agents may be in an answer, and the head that covers
// them. Without a head they are passed over: they are held here, may not be
// shown, or the head is not the newest. keys are those of the card that came with
// the head, as who answered says; nil where none needs to.
type lister struct {
	federation.Peer
	head *record.Record
	keys *record.Ring
}

// fits is an error when who answered contradicts itself: what it has is signed by
// a key that is not in the card that it brings. That this portal knows no such key
// would not be its fault.
func (l lister) fits(r *record.Record) error {
	if l.keys == nil || l.keys.Has(r.Key) {
		return nil
	}
	return &record.Refused{Reason: record.NotConsistent, Text: "it is signed by a key that the card beside it does not list"}
}

// listers are the portals whose agents an index portal may answer with: those
// whose heads it brings, which are taken in like any that somebody tells of, and
// itself.
func (s *Searcher) listers(ctx context.Context, by federation.Peer, in *federation.SearchAnswer) map[record.PortalID]lister {
	out := make(map[record.PortalID]lister)
	take := func(portal record.PortalID, told federation.Told, keys *record.Ring) {
		out[portal] = lister{keys: keys}
		head, err := s.head(ctx, by.ID, portal, told)
		if err != nil {
			s.Log.Debug("a head that an index portal has is passed over", "portal", portal, "index", by.ID, "error", err)
			return
		}
		if p, ok := s.shows(ctx, portal); ok {
			out[portal] = lister{p, head, keys}
		}
	}
	take(by.ID, federation.Told{Head: in.Head}, nil)
	for _, t := range in.Heads {
		portal, keys, err := s.claimed(t)
		_, twice := out[portal]
		switch {
		case err != nil:
			if s.blame(by.ID, err); portal != "" && !twice {
				out[portal] = lister{} // blamed already
			}
		case !twice:
			take(portal, t, keys)
		}
	}
	return out
}

// claimed reads what an index portal says to be the head of a portal, and its
// card: of whom, also when it is wrong, and with what keys. Nothing of it is
// verified here.
func (s *Searcher) claimed(t federation.Told) (record.PortalID, *record.Ring, error) {
	head, err := record.Open(s.Network, t.Head)
	if err != nil {
		return "", nil, err
	}
	r, err := record.Open(s.Network, t.Card)
	if err != nil {
		return head.Portal, nil, err
	}
	card, ok := r.Body.(*record.Card)
	if !ok || head.Type != record.TypeHead || card.Portal != head.Portal {
		return head.Portal, nil, &record.Refused{Reason: record.NotConsistent, Text: "it is not a head with its card"}
	}
	keys := card.Ring()
	return head.Portal, keys, lister{keys: keys}.fits(head)
}

// shows returns a portal that is not wholly held and may be shown.
func (s *Searcher) shows(ctx context.Context, portal record.PortalID) (federation.Peer, bool) {
	p, ok := s.Catalog.PartialPortal(portal)
	return p, ok && s.Registry.Decide(ctx, p.ID, p.URL).Show
}

// stillShown are those of an answer that may be shown now: it may be some seconds
// old, and be about others than who gave it, of whom choose knows. Who gave it need
// not be one of those: the DHT may have named it.
func (s *Searcher) stillShown(ctx context.Context, by federation.Peer, list []found) []found {
	var out []found
	for _, f := range list {
		_, ok := s.shows(ctx, f.Record.Portal)
		if f.Record.Portal == by.ID {
			ok = s.Registry.Decide(ctx, by.ID, by.URL).Show
		}
		if ok && s.Registry.DecideKey(f.Record.Key) == "" {
			out = append(out, f)
		}
	}
	return out
}

// oldest is the age of the oldest head that covers some of what was found, in
// seconds.
func oldest(list []found, now time.Time) (age int64) {
	for _, f := range list {
		age = max(age, int64(now.Sub(clock.FromMilli(f.Head.Issued))/time.Second))
	}
	return age
}

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

// maxIndexes is how many index portals one search asks. One of them may omit results; two of different
// operators would have to conspire.
const maxIndexes = 2

// inquiry is a portal to ask and the JSON query for it. all is true for an index portal, which also answers
// for agents of other portals. alone is true for an index portal if its own agents are not searched,
// because they are held here or excluded by the query; that portal then does not count as a portal asked.
type inquiry struct {
	federation.Peer
	body       []byte
	all, alone bool
}

// planInquiries returns the portals to ask with the query for each, and whether the limit leaves some out.
// If only summaries of other portals are held here, index portals are asked in addition. own is the query
// for a portal that is not an index, also for the up to more portals that the DHT may name later.
func (s *Searcher) planInquiries(ctx context.Context, q hub.Query, more int) (out []inquiry, own []byte, limited bool) {
	list, limited := s.choosePortals(ctx, q)
	if len(list)+more == 0 {
		return nil, nil, false
	}
	var indexes []federation.Peer
	if len(list) > 0 {
		indexes = s.listIndexes(ctx, q)
	}
	list = slices.DeleteFunc(list, func(p federation.Peer) bool {
		return slices.ContainsFunc(indexes, func(x federation.Peer) bool { return x.ID == p.ID })
	})
	if room := maxAsked - len(indexes); len(list) > room {
		list, limited = list[:room], true
	}
	question := federation.SearchQuestion{Text: strings.Join(strings.Fields(q.Text), " "), Kinds: q.Kinds, Tags: q.Tags,
		Skills: q.Skills, Live: q.Live, Languages: q.Languages, Limit: each(min(len(list)+more, maxAsked))}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, nil, true
	}
	partly := s.Catalog.Partial()
	question.Limit, question.Of = federation.MaxFound, federation.OfAll
	for _, host := range q.Portals {
		if slices.ContainsFunc(partly, func(p federation.Peer) bool { return p.Host() == host }) &&
			len(question.Portals) < federation.MaxWanted {
			question.Portals = append(question.Portals, host)
		}
	}
	ofAll, err := json.Marshal(question)
	if err != nil {
		return nil, nil, true
	}
	for _, p := range indexes {
		alone := !slices.ContainsFunc(partly, func(o federation.Peer) bool { return o.ID == p.ID }) ||
			len(q.Portals) > 0 && !slices.Contains(q.Portals, p.Host())
		out = append(out, inquiry{p, ofAll, true, alone})
	}
	for _, p := range list {
		out = append(out, inquiry{p, body, false, false})
	}
	return out, body, limited
}

// listIndexes returns the at most maxIndexes index portals to ask for a query. They are reachable, on
// different sites, and an operator allowed them or their address was verified. It is empty if this portal
// keeps all records itself.
func (s *Searcher) listIndexes(ctx context.Context, q hub.Query) []federation.Peer {
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
		return cmp.Or(cmp.Compare(trustIn(b, now), trustIn(a, now)), cmp.Compare(pace(a.RTT), pace(b.RTT)),
			cmp.Compare(turnOf(seed, a.ID), turnOf(seed, b.ID)))
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

// lister is a portal with agents that may be in an answer, and the head that must cover them. With a nil
// head its agents are skipped without blame: they are held here, may not be displayed, or the head is not
// the newest. keys are the keys in the card that the answering portal sent, unverified; nil for the
// portal's own agents.
type lister struct {
	federation.Peer
	head *record.Record
	keys *record.Ring
}

// checkKeys returns an error when a record is signed by a key that is not in the card which the same answer
// contains: the answering portal contradicts itself. A key that merely this portal does not know is no
// fault of the answering one.
func (l lister) checkKeys(r *record.Record) error {
	if l.keys == nil || l.keys.Has(r.Key) {
		return nil
	}
	return &record.Refused{Reason: record.NotConsistent,
		Text: "it is signed by a key that the card beside it does not list"}
}

// listListers returns the portals that an index portal may answer for: itself and those with a head in its
// answer. The heads are admitted like those in a hint.
func (s *Searcher) listListers(ctx context.Context, by federation.Peer,
	in *federation.SearchAnswer) map[record.PortalID]lister {
	out := make(map[record.PortalID]lister)
	take := func(portal record.PortalID, told federation.Told, keys *record.Ring) {
		out[portal] = lister{keys: keys}
		head, err := s.admitHead(ctx, by.ID, portal, told)
		if err != nil {
			s.Log.Debug("a head that an index portal has is passed over", "portal", portal, "index", by.ID, "error",
				err)
			return
		}
		if p, ok := s.shows(ctx, portal); ok {
			out[portal] = lister{p, head, keys}
		}
	}
	take(by.ID, federation.Told{Head: in.Head}, nil)
	for _, t := range in.Heads {
		portal, keys, err := s.readClaim(t)
		_, twice := out[portal]
		switch {
		case err != nil:
			if s.blamePortal(by.ID, err); portal != "" && !twice {
				out[portal] = lister{} // results of this portal are skipped without counting another fault
			}
		case !twice:
			take(portal, t, keys)
		}
	}
	return out
}

// readClaim decodes the head and the card of another portal that an index portal sent, and checks that they
// belong together. It returns the portal whenever the head can be decoded, also with an error. No signature
// is verified here.
func (s *Searcher) readClaim(t federation.Told) (record.PortalID, *record.Ring, error) {
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
	return head.Portal, keys, lister{keys: keys}.checkKeys(head)
}

// shows returns a portal from the registry. ok is false if all its agents are held here, so that no answer
// about them is needed, or if the policy does not allow to display them.
func (s *Searcher) shows(ctx context.Context, portal record.PortalID) (federation.Peer, bool) {
	p, ok := s.Catalog.PartialPortal(portal)
	return p, ok && s.Registry.Decide(ctx, p.ID, p.URL).Show
}

// stillShown returns those agents in an answer that the policy allows now, by their portals and keys. A
// cached answer may be some seconds old, and an index portal answers for others. The sender is checked
// again too, because the DHT may have named it instead of choosePortals.
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

// oldest returns the age in seconds of the oldest head that covers one of the agents found.
func oldest(list []found, now time.Time) (age int64) {
	for _, f := range list {
		age = max(age, int64(now.Sub(clock.FromMilli(f.Head.Issued))/time.Second))
	}
	return age
}

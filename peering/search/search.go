// Package search asks other portals for agents that are not held here: it
// chooses portals by their summaries, verifies answers, and resolves handles of
// unknown portals through the DHT.
package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/catalog"
)

const (
	// maxAsked is how many portals are asked for one search.
	maxAsked = federation.MaxFound
	// searchFor is how long a search waits for the slowest.
	searchFor = 800 * time.Millisecond
	// A portal with known response times is waited for softRTTs times as long, and at least softLeast.
	softLeast = 400 * time.Millisecond
	softRTTs  = 8
	// maxAnswer bounds an answer, in bytes: 20 records with their proofs.
	maxAnswer = 512 << 10
	// maxAsks bounds the requests of all searches that are under way.
	maxAsks = 128
)

// Config is the configuration of a Searcher.
type Config struct {
	Network  string
	Caller   federation.Caller
	Gate     *record.Gate
	Replica  federation.Replica
	Registry federation.Registry
	// Catalog says which portals are not wholly held, and how agents are shown.
	Catalog *catalog.Catalog
	// Summaries are the known summaries of portals.
	Summaries *catalog.Summaries
	// Syncer takes in the heads that portals answer with.
	Syncer Syncer
	// DHT and Bootstrapper, both or neither, add portals that the DHT names for the sought terms.
	DHT          DHT
	Bootstrapper *Bootstrapper
	Log          *slog.Logger
}

// Syncer keeps records of other portals: replication.Syncer.
type Syncer interface {
	// Take takes in heads that a portal sent.
	Take(ctx context.Context, from record.PortalID, told []federation.Told) ([]federation.Unfit, error)
	// Report updates the Registry with the state of a portal's log here.
	Report(ctx context.Context, portal record.PortalID)
}

// Searcher asks portals that are not fully replicated here for agents that match a search. It trusts
// no answer: a shown agent is signed, and covered by a head of its portal that a Gate admitted.
// Answers are cached for some seconds, and opened agents for a minute; nothing else is kept. It
// implements hub.Wider. Create it with New; it is safe for concurrent use.
type Searcher struct {
	Config
	places chan struct{} // of requests under way
	under  sync.WaitGroup
	opened opened
	memo   memo
	looked lookedUp
	names  named
	// checker caches verified signatures, because the same agents are found again.
	checker *record.Checker
	// alive ends with Run; end ends it.
	alive   context.Context
	end     context.CancelFunc
	metrics metrics
}

var _ hub.Wider = (*Searcher)(nil)

// New returns the Searcher of a Catalog.
func New(cfg Config) *Searcher {
	s := &Searcher{Config: cfg, places: make(chan struct{}, maxAsks), checker: record.NewChecker(cfg.Gate),
		metrics: newMetrics()}
	s.alive, s.end = context.WithCancel(context.Background())
	return s
}

// Run waits until ctx ends and all requests have ended.
func (s *Searcher) Run(ctx context.Context) error {
	<-ctx.Done()
	s.end()
	s.under.Wait()
	return nil
}

// answered is the result of asking one portal.
type answered struct {
	from  inquiry
	found []found
	err   error
}

// found is an agent that a portal was shown to list.
type found struct {
	hub.Agent
	Record *record.Record
	Head   *record.Record
	Proof  []byte
}

// Asks implements hub.Wider.
func (s *Searcher) Asks(q hub.Query) int {
	n := 0
	for _, p := range s.Catalog.Partial() {
		if len(q.Portals) == 0 || slices.Contains(q.Portals, p.Host()) {
			n++
		}
	}
	if n == 0 && len(s.caps(q)) > 0 {
		return 1 // perhaps
	}
	if n > 0 {
		for _, p := range s.listIndexes(context.Background(), q) {
			if len(q.Portals) > 0 && !slices.Contains(q.Portals, p.Host()) || !p.Partly() {
				n++
			}
		}
	}
	return min(n, maxAsked)
}

// Ask implements hub.Wider.
func (s *Searcher) Ask(ctx context.Context, q hub.Query) ([]hub.Agent, federation.Coverage) {
	var all []found
	c := s.collectAnswers(ctx, q, func(list []found, _ federation.Coverage) { all = append(all, list...) })
	return s.dedupeAgents(all), c
}

// AskEach implements hub.Wider.
func (s *Searcher) AskEach(ctx context.Context, q hub.Query, heard func([]hub.Agent, federation.Coverage)) federation.Coverage {
	return s.collectAnswers(ctx, q, func(list []found, c federation.Coverage) { heard(s.dedupeAgents(slices.Clone(list)), c) })
}

// collectAnswers asks the portals and calls heard, in this goroutine, with the results of each.
func (s *Searcher) collectAnswers(ctx context.Context, q hub.Query, heard func([]found, federation.Coverage)) federation.Coverage {
	caps, kept := s.caps(q), 0
	if len(caps) > 0 {
		kept = keptForNamed
	}
	list, own, limited := s.planInquiries(ctx, q, kept)
	c := federation.Coverage{Silent: []string{}, Limited: limited}
	if len(list)+len(caps) == 0 {
		return c
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Ended by cancel and not by a deadline, so that a portal slower than a search may wait is not counted
	// as down.
	timer := time.AfterFunc(searchFor, cancel)
	defer timer.Stop()
	var more <-chan federation.Peer // that the DHT names
	var later []inquiry             // portals to ask if the DHT names too few
	unnamed := false
	if len(caps) > 0 {
		more = s.namedBy(ctx, caps, &unnamed)
		if first := maxAsked - kept; len(list) > first {
			list, later = list[:first], list[first:]
		}
	}
	answers := make(chan answered, maxAsked+maxIndexes)
	waiting := make(map[string]bool) // true for those that count
	asked := make(map[record.PortalID]bool)
	start := func(p inquiry) {
		asking, ok := s.memo.joinRequest(s, p)
		if !ok {
			c.Limited = true
			return
		}
		asked[p.ID] = true
		if waiting[p.Host()] = !p.alone; !p.alone {
			c.Asked++
		}
		s.under.Go(func() {
			a := answered{from: p}
			a.found, a.err = asking.wait(ctx, p.RTT)
			answers <- a
		})
	}
	for _, p := range list {
		start(p)
	}
	instead := func() { // portals of which the DHT might have named some
		for len(later) > 0 && c.Asked < maxAsked && ctx.Err() == nil {
			if p := later[0]; !asked[p.ID] {
				start(p)
			}
			later = later[1:]
		}
	}
	patience := time.NewTimer(namedSoon)
	defer patience.Stop()
	late := false
	now := clock.Now()
	for len(waiting) > 0 || more != nil {
		select {
		case p, ok := <-more:
			switch {
			case !ok:
				more = nil
				c.Limited = c.Limited || unnamed
				instead()
			case asked[p.ID]:
				c.Named++
			case c.Asked < maxAsked:
				if start(inquiry{Peer: p, body: own}); asked[p.ID] {
					c.Named++
				}
			default:
				c.Limited = true
			}
		case <-patience.C:
			instead()
		case a := <-answers:
			delete(waiting, a.from.Host())
			if a.err != nil {
				s.Log.Debug("a portal did not answer a search", "portal", a.from.ID, "error", a.err)
				if !a.from.alone {
					c.Silent = append(c.Silent, a.from.Host())
				}
				continue
			}
			if !a.from.alone {
				c.Answered++
				c.OldestHead = max(c.OldestHead, int64(now.Sub(a.from.HeadIssued)/time.Second))
			}
			if a.from.all {
				c.Indexes++
				c.OldestHead = max(c.OldestHead, oldest(a.found, now))
			}
			a.found = s.stillShown(ctx, a.from.Peer, a.found)
			so := c
			so.Silent = slices.Clone(c.Silent)
			heard(a.found, so)
		case <-ctx.Done():
			late = true
			for host, counts := range waiting {
				if counts {
					c.Silent = append(c.Silent, host)
				}
			}
			clear(waiting)
			more = nil
		}
	}
	c.Limited = c.Limited || len(later) > 0
	s.metrics.countSearch(c, late)
	slices.Sort(c.Silent)
	return c
}

// dedupeAgents returns the agents found, each once, as the first of the portals that list it does.
func (s *Searcher) dedupeAgents(list []found) []hub.Agent {
	slices.SortFunc(list, func(a, b found) int {
		if a.Verified != b.Verified {
			if a.Verified {
				return -1
			}
			return 1
		}
		// Of several versions the newest comes first.
		return cmp.Or(cmp.Compare(a.Record.Portal, b.Record.Portal), cmp.Compare(a.ID, b.ID), b.Record.Version().Compare(a.Record.Version()))
	})
	var out []hub.Agent
	seen := make(map[string]bool)
	for _, f := range list {
		if !seen[f.ID] {
			seen[f.ID] = true
			out = append(out, f.Agent)
		}
	}
	for _, f := range slices.Backward(list) { // the first agent of a handle is kept
		s.opened.note(f)
	}
	return out
}

// choosePortals returns the portals to ask, see choose, and whether some are left out.
func (s *Searcher) choosePortals(ctx context.Context, q hub.Query) (list []federation.Peer, limited bool) {
	now := clock.Now()
	var peers []federation.Peer
	var all []askable
	for _, p := range s.Catalog.Partial() {
		if len(q.Portals) > 0 && !slices.Contains(q.Portals, p.Host()) {
			continue
		}
		peers = append(peers, p)
		all = append(all, askable{id: p.ID, summary: s.Summaries.Get(p.ID, now), silent: p.State != federation.Active, trust: trustIn(p, now), rtt: p.RTT})
	}
	if len(all) == 0 {
		return nil, false
	}
	for _, at := range choose(all, soughtOf(q), len(all)) {
		p := peers[at]
		if !s.Registry.Decide(ctx, p.ID, p.URL).Show {
			continue
		}
		if len(list) == maxAsked {
			return list, true
		}
		list = append(list, p)
	}
	return list, false
}

// each is how many results one of so many portals is asked for. A page has twenty,
// of which one portal of many gets a part; of few, all may be theirs.
func each(portals int) int {
	return min(max(3*federation.MaxFound/max(portals, 1), 5), federation.MaxFound)
}

// trustIn is how much more than others a portal is asked: operators' words come
// first, then whoever was seen at its address.
func trustIn(p federation.Peer, now time.Time) int {
	switch {
	case p.Rule.Stand == federation.Pin:
		return 3
	case p.Rule.Stand == federation.Allow:
		return 2
	case p.Proven(now):
		return 1
	}
	return 0
}

// askPortal asks one portal. It returns soon after ctx has ended.
func (s *Searcher) askPortal(ctx context.Context, p inquiry) ([]found, error) {
	a, err := s.Caller.Do(ctx, p.URL, p.ID, http.MethodPost, "/peering/v1/search", p.body, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSilent, err)
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("it answers with status %d", a.Status)
	}
	in, err := federation.ParseSearchAnswer(a.Body)
	if err != nil {
		s.Registry.Fault(p.ID, "malformed")
		return nil, errors.New("its answer cannot be read")
	}
	if p.all {
		return s.verifyHits(ctx, p.Peer, s.listListers(ctx, p.Peer, in), in.Results)
	}
	head, err := s.admitHead(ctx, p.ID, p.ID, federation.Told{Head: in.Head})
	if err != nil {
		return nil, err
	}
	return s.verifyHits(ctx, p.Peer, map[record.PortalID]lister{p.ID: {Peer: p.Peer, head: head}}, in.Results)
}

// blamePortal counts a fault of a portal that sent an invalid record, unless it need not know better.
func (s *Searcher) blamePortal(portal record.PortalID, err error) {
	s.Log.Debug("left out of a search", "portal", portal, "error", err)
	switch why := record.ReasonOf(err); why {
	case "", record.NoPortal, record.NoKey, record.Quarantined, record.Unknown:
	default:
		s.Registry.Fault(portal, string(why))
	}
}

// admitHead returns a portal's head from an answer if it is the newest known here and a Gate admits it.
func (s *Searcher) admitHead(ctx context.Context, from, portal record.PortalID, told federation.Told) (*record.Record, error) {
	wire := []byte(told.Head)
	if r := s.sameHead(ctx, portal, wire); r != nil {
		return r, nil
	}
	held, err := s.Replica.Head(ctx, portal)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(held, wire) {
		if _, err := s.Syncer.Take(ctx, from, []federation.Told{told}); err != nil {
			return nil, err
		}
		if held, err = s.Replica.Head(ctx, portal); err != nil {
			return nil, err
		}
	}
	if held == nil || !bytes.Equal(held, wire) {
		return nil, errors.New("the head it answers with is not its newest")
	}
	r, err := record.Open(s.Network, held)
	if err != nil {
		return nil, err
	}
	if _, ok := r.Body.(*record.Head); !ok || r.Portal != portal || r.Expires <= clock.Now().UnixMilli() {
		return nil, errors.New("its head does not hold")
	}
	k := s.looked.get(portal)
	k.head = r
	s.looked.put(portal, k)
	return r, nil
}

// verifyHits turns the results of one portal, which are agents of several, into agents to show. An invalid
// result is a fault of the answering portal; agents that may not be shown here are left out too.
func (s *Searcher) verifyHits(ctx context.Context, by federation.Peer, listers map[record.PortalID]lister, hits []federation.Hit) ([]found, error) {
	wires, proofs := make([][]byte, 0, len(hits)), make([]*record.Proof, 0, len(hits))
	raw := make([][]byte, 0, len(hits))
	for _, h := range hits {
		branch, err := branchOf(h)
		if err != nil {
			s.blamePortal(by.ID, err)
			continue
		}
		wires, proofs, raw = append(wires, h.Record), append(proofs, branch), append(raw, h.Proof)
	}
	results, err := s.checker.Check(ctx, wires, clock.Now())
	if err != nil {
		return nil, err
	}
	out := make([]found, 0, len(results))
	for i, res := range results {
		r, err := res.Record, res.Err
		var of lister
		if err == nil {
			var ok bool
			of, ok = listers[r.Portal]
			switch {
			case !ok:
				err = &record.Refused{Reason: record.NotConsistent, Text: "a result is of another portal"}
			case of.head == nil:
				continue
			case !of.head.Body.(*record.Head).Covers(r, proofs[i]):
				err = &record.Refused{Reason: record.NotConsistent, Text: "a result is not covered by the head"}
			}
		} else if record.ReasonOf(err) == record.NoKey {
			if claim, wrong := record.Open(s.Network, wires[i]); wrong == nil {
				err = cmp.Or(listers[claim.Portal].checkKeys(claim), err)
			}
		}
		if err != nil {
			s.blamePortal(by.ID, err)
			continue
		}
		if s.Registry.DecideKey(r.Key) != "" {
			continue
		}
		card, err := s.readCard(ctx, r.Portal)
		if err != nil {
			return nil, err
		}
		if a, err := s.Catalog.Present(card, of.Peer, r); err == nil {
			out = append(out, found{Agent: a, Record: r, Head: of.head, Proof: bytes.Clone(raw[i])})
		}
	}
	return out, nil
}

// branchOf reads the proof of a result.
func branchOf(h federation.Hit) (*record.Proof, error) {
	if len(h.Record) > record.MaxWire || len(h.Proof) > record.MaxProof {
		return nil, &record.Refused{Reason: record.TooLarge, Text: "a result is too long"}
	}
	return record.ParseProof(h.Proof)
}

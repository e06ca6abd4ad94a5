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
	// maxAsked bounds the portals asked for one search, index portals included.
	maxAsked = federation.MaxFound
	// searchFor is how long a search waits for answers. Later ones are cached for the next equal search.
	searchFor = 800 * time.Millisecond
	// A search waits softRTTs times the usual response time of a portal, and at least softLeast.
	softLeast = 400 * time.Millisecond
	softRTTs  = 8
	// maxAnswer bounds an answer, in bytes; it has at most 20 records with their proofs.
	maxAnswer = 512 << 10
	// maxAsks bounds the requests of all searches that run at the same time. A search that exceeds it asks
	// fewer portals and says so in its coverage.
	maxAsks = 128
)

// Config is the configuration of a Searcher. Every field is required except DHT and Bootstrapper.
type Config struct {
	Network  string
	Caller   federation.Caller
	Gate     *record.Gate
	Replica  federation.Replica
	Registry federation.Registry
	// Catalog lists the portals with agents that are not all held here, and turns records into agents for
	// display.
	Catalog *catalog.Catalog
	// Summaries are the Bloom filters of other portals, by which the portals to ask are chosen.
	Summaries *catalog.Summaries
	// Syncer accepts the heads in answers.
	Syncer Syncer
	// DHT and Bootstrapper find further portals for the capabilities in a query. Both are set or both nil.
	DHT          DHT
	Bootstrapper *Bootstrapper
	Log          *slog.Logger
}

// Syncer keeps the records of other portals. replication.Syncer implements it.
type Syncer interface {
	// Take accepts heads that a portal sent, see replication.Syncer.
	Take(ctx context.Context, from record.PortalID, told []federation.Told) ([]federation.Unfit, error)
	// Report writes the state of a portal's log to the registry.
	Report(ctx context.Context, portal record.PortalID)
}

// Searcher asks portals that are not fully replicated here for agents that match a query. It trusts no
// answer: an agent is displayed only if its record is signed and covered by a head that a record.Gate
// admitted. Answers are cached for some seconds, and opened agents for a minute; nothing else is stored. It
// implements hub.Wider. Create it with New; it is safe for concurrent use.
type Searcher struct {
	Config
	places chan struct{} // one element for each running request
	under  sync.WaitGroup
	opened opened
	memo   memo
	looked lookedUp
	names  named
	// checker caches verified signatures, because the same agents are found again.
	checker *record.Checker
	// alive is the context of all requests; end cancels it when Run ends.
	alive   context.Context
	end     context.CancelFunc
	metrics metrics
}

var _ hub.Wider = (*Searcher)(nil)

// New returns a Searcher. Keep Run running, which ends its requests.
func New(cfg Config) *Searcher {
	s := &Searcher{Config: cfg, places: make(chan struct{}, maxAsks), checker: record.NewChecker(cfg.Gate),
		metrics: newMetrics()}
	s.alive, s.end = context.WithCancel(context.Background())
	return s
}

// Run blocks until ctx ends, then cancels all requests and waits for their goroutines.
func (s *Searcher) Run(ctx context.Context) error {
	<-ctx.Done()
	s.end()
	s.under.Wait()
	return nil
}

// answered is the result of asking one portal; err is set if it gave no valid answer in time.
type answered struct {
	from  inquiry
	found []found
	err   error
}

// found is an agent with the proof that its portal lists it: the record, the head that covers it, and the
// branch of the hash tree between them.
type found struct {
	hub.Agent
	Record *record.Record
	Head   *record.Record
	Proof  []byte
}

// Asks implements hub.Wider: it estimates how many portals a query would ask, at most maxAsked, without
// sending a request. 0 means that no remote search is needed.
func (s *Searcher) Asks(q hub.Query) int {
	n := 0
	for _, p := range s.Catalog.Partial() {
		if len(q.Portals) == 0 || slices.Contains(q.Portals, p.Host()) {
			n++
		}
	}
	if n == 0 && len(s.caps(q)) > 0 {
		return 1 // the DHT may name one or more portals
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

// Ask implements hub.Wider: it returns the agents of all portals together, after at most searchFor.
func (s *Searcher) Ask(ctx context.Context, q hub.Query) ([]hub.Agent, federation.Coverage) {
	var all []found
	c := s.collectAnswers(ctx, q, func(list []found, _ federation.Coverage) { all = append(all, list...) })
	return s.dedupeAgents(all), c
}

// AskEach implements hub.Wider: it calls heard once for each portal that answers, with the coverage so far.
// heard is never called concurrently, nor after AskEach has returned.
func (s *Searcher) AskEach(ctx context.Context, q hub.Query, heard func([]hub.Agent, federation.Coverage)) federation.Coverage {
	return s.collectAnswers(ctx, q, func(list []found, c federation.Coverage) { heard(s.dedupeAgents(slices.Clone(list)), c) })
}

// collectAnswers asks the portals and calls heard, in the caller's goroutine, with the answer of each. It
// returns when all have answered or searchFor is over.
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
	// A deadline would count a portal that is slower than searchFor as down; a canceled wait does not.
	timer := time.AfterFunc(searchFor, cancel)
	defer timer.Stop()
	var more <-chan federation.Peer // portals that the DHT names
	var later []inquiry             // portals to ask if the DHT names too few
	unnamed := false
	if len(caps) > 0 {
		more = s.namedBy(ctx, caps, &unnamed)
		if first := maxAsked - kept; len(list) > first {
			list, later = list[:first], list[first:]
		}
	}
	answers := make(chan answered, maxAsked+maxIndexes)
	waiting := make(map[string]bool) // by host; false for portals that Coverage does not count
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
	instead := func() { // gives places that were reserved for the DHT to other portals
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

// dedupeAgents returns each agent once, verified portals first and of several versions the newest. It also
// caches the agents for Open.
func (s *Searcher) dedupeAgents(list []found) []hub.Agent {
	slices.SortFunc(list, func(a, b found) int {
		if a.Verified != b.Verified {
			if a.Verified {
				return -1
			}
			return 1
		}
		// The newest version comes first, so that it is the one that remains.
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
	for _, f := range slices.Backward(list) { // backwards, so that of equal handles the first agent stays in the cache
		s.opened.note(f)
	}
	return out
}

// choosePortals returns at most maxAsked portals to ask, in the order of choose, and whether some are left
// out.
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

// each returns how many results one portal is asked for when that many portals are asked. A page has
// MaxFound results: one of many portals supplies a part of it, one of few may supply all.
func each(portals int) int {
	return min(max(3*federation.MaxFound/max(portals, 1), 5), federation.MaxFound)
}

// trustIn returns the preference of a portal when portals are chosen: 3 and 2 for an operator's rule, 1 if
// its address was verified, otherwise 0.
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

// askPortal sends the query to one portal and returns the verified results. It has no timeout of its own;
// it returns soon after ctx has ended.
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

// blamePortal counts a fault of a portal that sent an invalid record, except for reasons that depend on the
// knowledge of this portal.
func (s *Searcher) blamePortal(portal record.PortalID, err error) {
	s.Log.Debug("left out of a search", "portal", portal, "error", err)
	switch why := record.ReasonOf(err); why {
	case "", record.NoPortal, record.NoKey, record.Quarantined, record.Unknown:
	default:
		s.Registry.Fault(portal, string(why))
	}
}

// admitHead returns the head of portal that an answer of from contains, after a Gate admitted it. It fails
// if the head is not the newest one known here.
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

// verifyHits verifies the records and proofs in an answer and returns the agents to display. An invalid
// result is counted as a fault of the answering portal by and left out, like agents that the policy does
// not allow. err is an internal failure.
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

// branchOf decodes the proof of a result after a check of the sizes.
func branchOf(h federation.Hit) (*record.Proof, error) {
	if len(h.Record) > record.MaxWire || len(h.Proof) > record.MaxProof {
		return nil, &record.Refused{Reason: record.TooLarge, Text: "a result is too long"}
	}
	return record.ParseProof(h.Proof)
}

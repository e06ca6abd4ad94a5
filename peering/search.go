package peering

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"agentsite/internal/index/bm25"
	"agentsite/internal/record"
)

const (
	// maxAsked is how many portals are asked for one search.
	maxAsked = federation.MaxFound
	// searchFor is how long a search waits for the slowest.
	searchFor = 800 * time.Millisecond
	// A portal whose answers usually come soon is waited for softRTTs times as
	// long as that, and at least softLeast.
	softLeast = 400 * time.Millisecond
	softRTTs  = 8
	// maxAnswer bounds an answer, in bytes: 20 records with their proofs.
	maxAnswer = 512 << 10
	// maxAsks bounds the requests of all searches that are under way.
	maxAsks = 128
)

// SearcherConfig is what a Searcher needs.
type SearcherConfig struct {
	Network  string
	Caller   federation.Caller
	Gate     *record.Gate
	Replica  federation.Replica
	Registry federation.Registry
	// Catalog says which portals are not wholly held, and how agents are shown.
	Catalog *Catalog
	// Take takes in a head that a portal answered with: Syncer.Take.
	Take func(ctx context.Context, from record.PortalID, told []federation.Told) ([]federation.Unfit, error)
	Log  *slog.Logger
}

// Searcher asks portals whose agents are not wholly held here for those that a
// search looks for. Nothing that they answer is believed: what is shown is
// signed, and covered by a head of its portal that a Gate let in. Nothing of it
// is kept but for a minute what was opened. It implements hub.Wider. Create it
// with NewSearcher; it is safe for concurrent use.
type Searcher struct {
	SearcherConfig
	places chan struct{} // of requests under way
	under  sync.WaitGroup
	opened opened
}

var _ hub.Wider = (*Searcher)(nil)

// NewSearcher returns the Searcher of a Catalog, which opens by it what it does
// not hold.
func NewSearcher(cfg SearcherConfig) *Searcher {
	s := &Searcher{SearcherConfig: cfg, places: make(chan struct{}, maxAsks)}
	cfg.Catalog.wider.Store(s)
	return s
}

// Run waits until ctx ends and what was asked has ended.
func (s *Searcher) Run(ctx context.Context) error {
	<-ctx.Done()
	s.under.Wait()
	return nil
}

// answered is what came of asking one portal.
type answered struct {
	from  federation.Peer
	found []found
	err   error
}

// found is an agent that a portal was shown to list.
type found struct {
	hub.Agent
	record *record.Record
	head   *record.Record
	proof  []byte
}

// Ask implements hub.Wider.
func (s *Searcher) Ask(ctx context.Context, q hub.Query) ([]hub.Agent, federation.Coverage) {
	list, limited := s.choose(ctx, q)
	c := federation.Coverage{Silent: []string{}, Limited: limited}
	if len(list) == 0 {
		return nil, c
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Ended by cancel and not by a deadline, so that nobody is thought to be
	// down who is only slower than a search may wait.
	timer := time.AfterFunc(searchFor, cancel)
	defer timer.Stop()
	body, err := json.Marshal(federation.SearchQuestion{Text: q.Text, Kinds: q.Kinds, Tags: q.Tags, Skills: q.Skills, Live: q.Live, Languages: q.Languages, Limit: federation.MaxFound})
	if err != nil {
		return nil, c
	}
	answers := make(chan answered, len(list))
	waiting := make(map[string]bool)
	for _, p := range list {
		select {
		case s.places <- struct{}{}:
		default:
			c.Limited = true
			continue
		}
		waiting[p.Host()] = true
		s.under.Go(func() {
			defer func() { <-s.places }()
			a := answered{from: p}
			a.found, a.err = s.ask(ctx, p, body)
			answers <- a
		})
	}
	c.Asked = len(waiting)
	var out []found
	now := clock.Now()
	for len(waiting) > 0 {
		select {
		case a := <-answers:
			if a.err != nil {
				s.Log.Debug("a portal did not answer a search", "portal", a.from.ID, "error", a.err)
			} else {
				c.Answered++
				out = append(out, a.found...)
				c.OldestHead = max(c.OldestHead, int64(now.Sub(a.from.HeadIssued)/time.Second))
				delete(waiting, a.from.Host())
				continue
			}
			delete(waiting, a.from.Host())
			c.Silent = append(c.Silent, a.from.Host())
		case <-ctx.Done():
			for host := range waiting {
				c.Silent = append(c.Silent, host)
			}
			clear(waiting)
		}
	}
	slices.Sort(c.Silent)
	return s.once(out), c
}

// once are the agents of what was found, each once, as the first of the portals
// that list it does.
func (s *Searcher) once(list []found) []hub.Agent {
	slices.SortFunc(list, func(a, b found) int {
		if a.Verified != b.Verified {
			if a.Verified {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.record.Portal, b.record.Portal), cmp.Compare(a.ID, b.ID))
	})
	var out []hub.Agent
	seen := make(map[string]bool)
	for _, f := range list {
		s.opened.note(f)
		if !seen[f.ID] {
			seen[f.ID] = true
			out = append(out, f.Agent)
		}
	}
	return out
}

// choose says whom to ask: those that say they have what is looked for first,
// then those that answer soon; and whether some are left out.
func (s *Searcher) choose(ctx context.Context, q hub.Query) (list []federation.Peer, limited bool) {
	type choice struct {
		federation.Peer
		fits int
	}
	var all []choice
	partly := s.Catalog.partly()
	many := len(partly) > maxAsked
	for _, p := range partly {
		if len(q.Portals) > 0 && !slices.Contains(q.Portals, p.Host()) || !s.Registry.Decide(ctx, p.ID, p.URL).Show {
			continue
		}
		c := choice{Peer: p}
		if many {
			c.fits = s.fits(ctx, p.ID, q)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b choice) int {
		return cmp.Or(cmp.Compare(b.fits, a.fits), cmp.Compare(rank(a.Peer), rank(b.Peer)), cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range all[:min(len(all), maxAsked)] {
		list = append(list, c.Peer)
	}
	return list, len(all) > maxAsked
}

// rank puts those that answer first.
func rank(p federation.Peer) int {
	if p.State == federation.Active {
		return 0
	}
	return 1
}

// fits counts what of a query a portal's summary has; 1 without a summary, as
// if something fit.
func (s *Searcher) fits(ctx context.Context, portal record.PortalID, q hub.Query) int {
	wire, err := s.Replica.Held(ctx, record.Slot{Type: record.TypeSummary, Portal: portal})
	if err != nil || wire == nil {
		return 1
	}
	r, err := record.Open(s.Network, wire)
	if err != nil {
		return 1
	}
	sum, ok := r.Body.(*record.Summary)
	if !ok || r.Expires <= clock.Now().UnixMilli() {
		return 1
	}
	n := 0
	bm25.Terms([]string{q.Text}, func(term string) {
		if sum.Terms.Has(term) {
			n += 2
		}
	})
	for _, tag := range q.Tags {
		if slices.ContainsFunc(sum.Caps, func(c record.CapCount) bool { return c.Cap == tag }) {
			n += 2
		}
	}
	return n
}

// ask asks one portal. It returns soon after ctx has ended.
func (s *Searcher) ask(ctx context.Context, p federation.Peer, body []byte) ([]found, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.RTT > 0 {
		timer := time.AfterFunc(max(softLeast, softRTTs*p.RTT), cancel)
		defer timer.Stop()
	}
	a, err := s.Caller.Do(ctx, p.URL, p.ID, http.MethodPost, "/peering/v1/search", body, maxAnswer)
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("it answers with status %d", a.Status)
	}
	var in federation.SearchAnswer
	if err := json.Unmarshal(a.Body, &in); err != nil || len(in.Results) > federation.MaxFound {
		s.Registry.Fault(p.ID, "malformed")
		return nil, errors.New("its answer cannot be read")
	}
	head, err := s.head(ctx, p.ID, in.Head)
	if err != nil {
		return nil, err
	}
	out := make([]found, 0, len(in.Results))
	for _, hit := range in.Results {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f, ok, err := s.verify(ctx, p, head, hit.Record, hit.Proof)
		if err != nil {
			s.blame(p.ID, err)
		} else if ok {
			out = append(out, f)
		}
	}
	return out, nil
}

// blame counts what a portal sent that does not hold, unless it need not know
// better.
func (s *Searcher) blame(portal record.PortalID, err error) {
	s.Log.Debug("left out of a search", "portal", portal, "error", err)
	switch why := record.ReasonOf(err); why {
	case "", record.NoPortal, record.NoKey, record.Quarantined, record.Unknown:
	default:
		s.Registry.Fault(portal, string(why))
	}
}

// head returns a head that a portal answered with if it is its newest, as far
// as is known here, and holds.
func (s *Searcher) head(ctx context.Context, portal record.PortalID, wire []byte) (*record.Record, error) {
	held, err := s.Replica.Head(ctx, portal)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(held, wire) {
		if _, err := s.Take(ctx, portal, []federation.Told{{Head: wire}}); err != nil {
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
	return r, nil
}

// verify makes of a result what is shown. ok is false for what is not to be
// shown here; errors say why it is not what it should be.
func (s *Searcher) verify(ctx context.Context, p federation.Peer, head *record.Record, wire, proof []byte) (f found, ok bool, err error) {
	if len(wire) > record.MaxWire || len(proof) > record.MaxProof {
		return f, false, &record.Refused{Reason: record.TooLarge, Text: "a result is too long"}
	}
	r, err := s.Gate.Check(ctx, wire, clock.Now())
	if err != nil {
		return f, false, err
	}
	if r.Portal != p.ID {
		return f, false, &record.Refused{Reason: record.NotConsistent, Text: "a result is of another portal"}
	}
	branch, err := record.ParseProof(proof)
	if err != nil {
		return f, false, err
	}
	if !head.Body.(*record.Head).Covers(r, branch) {
		return f, false, &record.Refused{Reason: record.NotConsistent, Text: "a result is not covered by the head"}
	}
	if s.Registry.DecideKey(r.Key) != "" {
		return f, false, nil
	}
	a, err := s.Catalog.asShown(ctx, p, r)
	if err != nil {
		return f, false, nil
	}
	return found{Agent: a, record: r, head: head, proof: proof}, true, nil
}

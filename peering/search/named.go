package search

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/limit"
	"agentsite/internal/record"
	"agentsite/peering/overlay"
	"agentsite/peering/translate"
)

const (
	// maxNamedCaps is how many capabilities of one search are looked up.
	maxNamedCaps = 3
	// keptForNamed is how many of the portals that a search may ask are left to
	// those that the DHT names.
	keptForNamed = 5
	// namedSoon is for how long they are left to them: then others are asked
	// instead.
	namedSoon = 300 * time.Millisecond
	// namedFor is for how long a lookup stands for the next of the same
	// capability, restFor for how long a portal is left alone that did not answer
	// when it was met.
	namedFor = time.Minute
	restFor  = time.Minute
	maxNamed = 1024
	// All searches together look up so many capabilities at once, and then one in
	// namedEvery.
	namedEvery, namedBurst = 250 * time.Millisecond, 40
	// namedTimeout bounds a lookup, whoever waits for it.
	namedTimeout = 5 * time.Second
)

// named remembers which portals the DHT named for capabilities. The zero value is
// ready. It is safe for concurrent use.
type named struct {
	mu   sync.Mutex // guards the rest
	list map[string]*naming
	rest map[string]time.Time // by origin, of portals that did not answer
	rate *limit.Keyed
}

// naming is a lookup under way or ended.
type naming struct {
	done  chan struct{} // closed with found, which is not changed from then on
	found []overlay.Found
	until time.Time // guarded by named.mu; zero while it is under way
}

// caps are the capabilities of a query that are worth a lookup: not where all
// agents that may be looked for are held here.
func (s *Searcher) caps(q hub.Query) []string {
	if s.DHT == nil || s.Bootstrapper == nil || len(q.Portals) > 0 {
		return nil
	}
	if !s.Catalog.SummaryOnly() && len(s.Catalog.Partial()) == 0 {
		return nil
	}
	var out []string
	for _, list := range [][]string{q.Tags, q.Skills} {
		for _, t := range list {
			if c, ok := translate.Cap(t); ok && !slices.Contains(out, c) && len(out) < maxNamedCaps {
				out = append(out, c)
			}
		}
	}
	return out
}

// lookUp returns the lookup of a capability, a new one if there is none; nil when
// there are too many.
func (s *Searcher) lookUp(tag string) *naming {
	n := &s.names
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.list[tag]; a != nil && (a.until.IsZero() || now.Before(a.until)) {
		return a
	}
	if n.list == nil {
		n.list, n.rate = make(map[string]*naming), limit.New(namedEvery, namedBurst, 1)
	}
	if _, ok := n.rate.Allow(""); !ok {
		return nil
	}
	for other, a := range n.list { // any that ended: it is looked up again
		if len(n.list) < maxNamed {
			break
		}
		if !a.until.IsZero() {
			delete(n.list, other)
		}
	}
	a := &naming{done: make(chan struct{})}
	n.list[tag] = a
	s.under.Go(func() {
		ctx, cancel := context.WithTimeout(s.alive, namedTimeout)
		defer cancel()
		found, _, err := s.DHT.Capability(ctx, tag)
		if err != nil {
			s.Log.Debug("a capability was not looked up", "tag", tag, "error", err)
		}
		// The portal with the most agents of the name comes first.
		slices.SortStableFunc(found, func(a, b overlay.Found) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Card.Portal, b.Card.Portal))
		})
		a.found = found
		n.mu.Lock()
		if a.until = time.Now().Add(namedFor); err != nil {
			a.until = time.Now().Add(unansweredFor)
		}
		n.mu.Unlock()
		close(a.done)
	})
	return a
}

// namedBy sends the portals that the DHT names for capabilities and that are not
// wholly held here, those that are known at once, others when they were met. It
// closes the channel when there are no more, or ctx has ended. Limited is set
// before that if some were not looked up.
func (s *Searcher) namedBy(ctx context.Context, caps []string, limited *bool) <-chan federation.Peer {
	out := make(chan federation.Peer)
	send := func(p federation.Peer) {
		select {
		case out <- p:
		case <-ctx.Done():
		}
	}
	s.under.Go(func() {
		var meeting sync.WaitGroup
		defer close(out)
		defer meeting.Wait()
		sent := make(map[record.PortalID]bool)
		strangers := 0
		for _, tag := range caps {
			n := s.lookUp(tag)
			if n == nil {
				*limited = true
				continue
			}
			select {
			case <-n.done:
			case <-ctx.Done():
				return
			}
			for _, f := range n.found {
				id := f.Card.Portal
				if sent[id] {
					continue
				}
				sent[id] = true
				switch p, known, held := s.Catalog.Standing(id); {
				case held:
				case known:
					send(p)
				case strangers < keptForNamed && s.worthMeeting(ctx, f.Card):
					strangers++
					meeting.Go(func() {
						if p, ok := s.met(ctx, f.Card); ok {
							send(p)
						}
					})
				}
			}
		}
	})
	return out
}

// worthMeeting reports whether a portal that is not known may be met.
func (s *Searcher) worthMeeting(ctx context.Context, c *record.Card) bool {
	if d := s.Registry.Decide(ctx, c.Portal, c.Origin); !d.Show || !d.In || !d.Take {
		return false
	}
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	return time.Now().After(s.names.rest[c.Origin])
}

// met meets a portal, and returns when it has, or ctx has ended: it is known for
// the next search then.
func (s *Searcher) met(ctx context.Context, c *record.Card) (federation.Peer, bool) {
	done := make(chan federation.Peer, 1)
	s.under.Go(func() {
		defer close(done)
		// Ended by cancel and not by a deadline, see memo.ask.
		ctx, cancel := context.WithCancel(s.alive)
		defer cancel()
		timer := time.AfterFunc(lateFor, cancel)
		defer timer.Stop()
		card, err := s.Bootstrapper.contactPortal(ctx, c.Origin, c.Portal, false)
		if err != nil {
			s.Log.Debug("a portal that the DHT names was not met", "portal", c.Portal, "error", err)
			s.pausePortal(c.Origin)
			return
		}
		p, known, held := s.Catalog.Standing(card.Portal)
		if !known && !held { // there is no room for it, so it is asked this once
			p, known = s.passing(ctx, card)
		}
		if known {
			done <- p
		}
	})
	select {
	case p, ok := <-done:
		return p, ok
	case <-ctx.Done():
		return federation.Peer{}, false
	}
}

// passing is a portal that was met just now and is not known from then on; false
// when it has no word for its agents.
func (s *Searcher) passing(ctx context.Context, c *record.Card) (federation.Peer, bool) {
	wire, err := s.Replica.Head(ctx, c.Portal)
	if err != nil || wire == nil {
		return federation.Peer{}, false
	}
	r, err := record.Open(s.Network, wire)
	if err != nil {
		return federation.Peer{}, false
	}
	return federation.Peer{ID: c.Portal, URL: c.Origin, Name: c.Name, State: federation.Active, Proved: clock.Now(),
		Head: r.Version(), HeadIssued: time.UnixMilli(r.Issued)}, true
}

// pausePortal excludes a portal that did not answer from requests for a while.
func (s *Searcher) pausePortal(origin string) {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rest == nil || len(n.rest) >= maxNamed {
		n.rest = make(map[string]time.Time)
	}
	n.rest[origin] = time.Now().Add(restFor)
}

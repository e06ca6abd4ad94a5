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
	// maxNamedCaps is how many capabilities of one query are looked up in the DHT.
	maxNamedCaps = 3
	// keptForNamed is how many of the maxAsked places of a search are reserved for portals that the DHT
	// names.
	keptForNamed = 5
	// namedSoon is how long these places stay reserved. Then other portals get them.
	namedSoon = 300 * time.Millisecond
	// namedFor is how long the result of a lookup is reused. restFor is how long a portal that did not
	// answer a handshake is not contacted again. maxNamed bounds both caches.
	namedFor = time.Minute
	restFor  = time.Minute
	maxNamed = 1024
	// namedBurst lookups may start at once, in all searches together, and then one in namedEvery.
	namedEvery, namedBurst = 250 * time.Millisecond, 40
	// namedTimeout bounds a lookup. It is longer than a search waits, because the result is cached.
	namedTimeout = 5 * time.Second
)

// named caches the portals that the DHT named for capabilities. The zero value is ready; it is safe for
// concurrent use.
type named struct {
	mu   sync.Mutex // guards the fields below, and naming.until
	list map[string]*naming
	rest map[string]time.Time // end of the pause after a failed handshake, by origin
	rate *limit.Keyed
}

// naming is a DHT lookup of one capability, running or ended.
type naming struct {
	done  chan struct{} // closed once found is set; it does not change afterwards
	found []overlay.Found
	until time.Time // expiry, guarded by named.mu; zero while the lookup runs
}

// caps returns the capabilities of a query to look up in the DHT, at most maxNamedCaps. It returns none
// when all agents that the query can match are held here, or when it is limited to certain portals.
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

// lookUp returns the running or cached lookup of a capability, or starts one. It returns nil when the rate
// limit does not allow another one.
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
	for other, a := range n.list { // remove arbitrary ended lookups: they are repeated when needed
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
		// The portal with the most agents of that capability comes first.
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

// namedBy sends the portals that the DHT names for the capabilities, except those with all agents held
// here: known portals at once, unknown ones after a handshake. It closes the channel when there are no more
// or ctx has ended. Before that it sets *limited if the rate limit prevented a lookup.
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

// worthMeeting reports whether a handshake with an unknown portal is allowed: the policy allows its agents,
// and it did not fail to answer within restFor.
func (s *Searcher) worthMeeting(ctx context.Context, c *record.Card) bool {
	if d := s.Registry.Decide(ctx, c.Portal, c.Origin); !d.Show || !d.In || !d.Take {
		return false
	}
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	return time.Now().After(s.names.rest[c.Origin])
}

// met performs the handshake with an unknown portal and returns its registry entry. If ctx ends earlier,
// the handshake goes on, so that the next search knows the portal.
func (s *Searcher) met(ctx context.Context, c *record.Card) (federation.Peer, bool) {
	done := make(chan federation.Peer, 1)
	s.under.Go(func() {
		defer close(done)
		// A deadline would count a slow portal as down, see memo.joinRequest.
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
		if !known && !held { // the registry is full: ask the portal in this search only
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

// passing returns a peer for a portal that performed the handshake but did not fit into the registry. ok is
// false when its head is not held, because answers could not be verified then.
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

// pausePortal excludes an origin that did not answer from handshakes for restFor.
func (s *Searcher) pausePortal(origin string) {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rest == nil || len(n.rest) >= maxNamed {
		n.rest = make(map[string]time.Time)
	}
	n.rest[origin] = time.Now().Add(restFor)
}

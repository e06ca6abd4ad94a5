package replication

import (
	"context"
	"net/http"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// newestPeers is how many portals are asked for the newest head of this one, newestWithin their common
	// time limit.
	newestPeers  = 3
	newestWithin = 5 * time.Second
	// ownEvery is the interval of these requests while the portal runs. A newer head arrives with the
	// comparison of heads; a newer card alone does not.
	ownEvery = 10 * time.Minute
)

// runOwn asks other portals at intervals for the head and card of this portal that they hold.
func (s *Syncer) runOwn(ctx context.Context) {
	for clock.Sleep(ctx, s.dice.vary(ownEvery)) {
		if v := s.Newest(ctx); v != (record.Version{}) && s.Ahead != nil {
			s.Ahead(v)
		}
	}
}

// ownCard passes on a card of this portal that another portal holds.
func (s *Syncer) ownCard(wire []byte) {
	if len(wire) > 0 && s.OwnCard != nil {
		s.OwnCard(wire)
	}
}

// Newest asks a few portals for the newest head of this one that they hold, and
// passes on the cards that come with them. It returns the head's version if it
// is one that this portal signed and does not know of, zero otherwise, after at
// most newestWithin.
func (s *Syncer) Newest(ctx context.Context) record.Version {
	ctx, cancel := context.WithTimeout(ctx, newestWithin)
	defer cancel()
	up := s.dice.sample(s.listActive(ctx), newestPeers)
	found := make(chan record.Version, len(up))
	for _, id := range up {
		go func() { found <- s.ownAt(ctx, id) }() // ends with ctx
	}
	var newest record.Version
	for range up {
		if v := <-found; v.Compare(newest) > 0 {
			newest = v
		}
	}
	return newest
}

// ownAt asks one portal for the newest head of this one, see Newest.
func (s *Syncer) ownAt(ctx context.Context, portal record.PortalID) record.Version {
	var t federation.Told
	a, err := s.askPortal(ctx, portal, http.MethodGet, "/peering/v1/portals/"+string(s.own)+"/head", nil, newestWithin,
		maxShort)
	if err == nil {
		err = readAnswer(a, &t)
	}
	if err != nil {
		return record.Version{} // it is unreachable, or holds none
	}
	s.ownCard(t.Card)
	claim, err := record.Open(s.Self.Network(), t.Head)
	if err != nil || claim.Type != record.TypeHead || claim.Portal != s.own || !s.unknownOwn(ctx, claim) {
		return record.Version{}
	}
	return claim.Version()
}

// unknownOwn reports whether a head is one that this portal signed and does not
// know of.
func (s *Syncer) unknownOwn(ctx context.Context, claim *record.Record) bool {
	standing, err := s.Replica.Standing(ctx, s.own)
	// Only records that this portal signed matter. A gate without stored versions checks that, and keeps
	// nothing.
	return err == nil && claim.Version().Compare(standing.Head) > 0 && s.signedByUs(ctx, claim)
}

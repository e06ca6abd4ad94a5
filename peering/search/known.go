package search

import (
	"bytes"
	"context"
	"sync"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// maxLooked bounds the portals in lookedUp, which is emptied when it is full.
const maxLooked = 1024

// lookedUp caches the decoded cards and heads of portals that were asked. The zero value is ready; it is
// safe for concurrent use.
type lookedUp struct {
	mu   sync.Mutex // guards list
	list map[record.PortalID]looked
}

// looked is the cached card and head of a portal; each may be nil.
type looked struct {
	ring *record.Ring // ring at the time of reading: another pointer means another card
	card *record.Card
	head *record.Record
}

func (l *lookedUp) get(portal record.PortalID) looked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list[portal]
}

func (l *lookedUp) put(portal record.PortalID, k looked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil || len(l.list) >= maxLooked {
		l.list = make(map[record.PortalID]looked)
	}
	l.list[portal] = k
}

// readCard returns the current card of a portal, from the cache unless its keys changed.
func (s *Searcher) readCard(ctx context.Context, portal record.PortalID) (*record.Card, error) {
	standing, err := s.Replica.Standing(ctx, portal)
	if err != nil {
		return nil, err
	}
	k := s.looked.get(portal)
	if k.card != nil && standing.Ring != nil && k.ring == standing.Ring {
		return k.card, nil
	}
	card, err := s.Catalog.Card(ctx, portal)
	if err == nil {
		s.looked.put(portal, looked{ring: standing.Ring, card: card, head: k.head})
	}
	return card, err
}

// sameHead returns the cached head of a portal if its bytes equal wire and it is still the newest and valid
// one; otherwise nil.
func (s *Searcher) sameHead(ctx context.Context, portal record.PortalID, wire []byte) *record.Record {
	r := s.looked.get(portal).head
	if r == nil || !bytes.Equal(r.Wire, wire) || r.Expires <= clock.Now().UnixMilli() {
		return nil
	}
	standing, err := s.Replica.Standing(ctx, portal)
	if err != nil || standing.Quarantined || standing.Head != r.Version() || standing.Ring == nil ||
		!standing.Ring.Has(r.Key) {
		return nil
	}
	return r
}

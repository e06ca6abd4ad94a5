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

// ownWatch is the part of a Syncer that finds records of this portal which others hold and it does not know.
type ownWatch struct{ s *Syncer }

// runOwn asks other portals at intervals for the head and card of this portal that they hold.
func (w *ownWatch) runOwn(ctx context.Context) {
	for clock.Sleep(ctx, w.s.dice.varyTime(ownEvery)) {
		if v := w.findNewest(ctx); v != (record.Version{}) && w.s.Own != nil {
			w.s.Own.SeeHead(v)
		}
	}
}

// seeCard passes on a card of this portal that another portal holds.
func (w *ownWatch) seeCard(wire []byte) {
	if len(wire) > 0 && w.s.Own != nil {
		w.s.Own.SeeCard(wire)
	}
}

// seeHead checks a head of this portal that another portal holds.
func (w *ownWatch) seeHead(ctx context.Context, claim *record.Record) {
	if w.s.Own != nil && w.isUnknown(ctx, claim) {
		w.s.Own.SeeHead(claim.Version())
	}
}

// Newest asks a few portals for the newest head of this one that they hold, and
// passes on the cards that come with them. It returns the head's version if it
// is one that this portal signed and does not know of, zero otherwise, after at
// most newestWithin.
func (s *Syncer) Newest(ctx context.Context) record.Version { return s.ownWatch.findNewest(ctx) }

// findNewest is Syncer.Newest.
func (w *ownWatch) findNewest(ctx context.Context) record.Version {
	ctx, cancel := context.WithTimeout(ctx, newestWithin)
	defer cancel()
	up := w.s.dice.sampleList(w.s.listActive(ctx), newestPeers)
	found := make(chan record.Version, len(up))
	for _, id := range up {
		go func() { found <- w.askOwn(ctx, id) }() // ends with ctx
	}
	var newest record.Version
	for range up {
		if v := <-found; v.Compare(newest) > 0 {
			newest = v
		}
	}
	return newest
}

// askOwn asks one portal for the newest head of this one, see Newest.
func (w *ownWatch) askOwn(ctx context.Context, portal record.PortalID) record.Version {
	var t federation.Told
	a, err := w.s.askPortal(ctx, portal, http.MethodGet, "/peering/v1/portals/"+string(w.s.own)+"/head", nil, newestWithin,
		maxShort)
	if err == nil {
		err = readAnswer(a, &t)
	}
	if err != nil {
		return record.Version{} // it is unreachable, or holds none
	}
	w.seeCard(t.Card)
	claim, err := record.Open(w.s.Self.Network(), t.Head)
	if err != nil || claim.Type != record.TypeHead || claim.Portal != w.s.own || !w.isUnknown(ctx, claim) {
		return record.Version{}
	}
	return claim.Version()
}

// isUnknown reports whether a head is one that this portal signed and does not
// know of.
func (w *ownWatch) isUnknown(ctx context.Context, claim *record.Record) bool {
	standing, err := w.s.Replica.Standing(ctx, w.s.own)
	// Only records that this portal signed matter. A gate without stored versions checks that, and keeps
	// nothing.
	return err == nil && claim.Version().Compare(standing.Head) > 0 && w.signedByUs(ctx, claim)
}

// signedByUs reports whether a claim bears a signature of this portal. It asks a gate without stored
// versions, which checks the signature alone.
func (w *ownWatch) signedByUs(ctx context.Context, claim *record.Record) bool {
	gate, err := record.NewGate(w.s.Self.Network(), ownMemory{w.s.Replica})
	if err != nil {
		return false
	}
	_, _, err = gate.Admit(ctx, claim.Wire, clock.Now())
	return err == nil
}

// ownMemory is a gate memory that knows the keys of portals and keeps nothing else.
type ownMemory struct{ record.Memory }

func (m ownMemory) Standing(ctx context.Context, id record.PortalID) (record.Standing, error) {
	s, err := m.Memory.Standing(ctx, id)
	return record.Standing{Ring: s.Ring}, err
}

func (ownMemory) Seen(context.Context, record.Slot) (record.Seen, error) { return record.Seen{}, nil }

func (ownMemory) Held(context.Context, record.Slot) ([]byte, error) { return nil, nil }

func (ownMemory) Keep(context.Context, *record.Record, record.Seen, int64) (bool, error) {
	return true, nil
}

func (ownMemory) Quarantine(context.Context, record.Conflict) error { return nil }

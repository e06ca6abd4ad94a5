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

// ownWatch is the part of a Syncer that finds records which this portal signed but does not hold, at other
// portals: a sign that it was restored from a backup or runs twice.
type ownWatch struct{ s *Syncer }

// runOwn calls findNewest at intervals until ctx ends, and reports an unknown head to Config.Own.
func (w *ownWatch) runOwn(ctx context.Context) {
	for clock.Sleep(ctx, w.s.dice.varyTime(ownEvery)) {
		if v := w.findNewest(ctx); v != (record.Version{}) && w.s.Own != nil {
			w.s.Own.SeeHead(v)
		}
	}
}

// seeCard hands a card of this portal that another portal holds to Config.Own, unverified.
func (w *ownWatch) seeCard(wire []byte) {
	if len(wire) > 0 && w.s.Own != nil {
		w.s.Own.SeeCard(wire)
	}
}

// seeHead calls Config.Own if a head that another portal holds was signed by this portal and is unknown
// here.
func (w *ownWatch) seeHead(ctx context.Context, claim *record.Record) {
	if w.s.Own != nil && w.isUnknown(ctx, claim) {
		w.s.Own.SeeHead(claim.Version())
	}
}

// Newest asks a few portals for the newest head of this portal that they hold. It returns its version if
// this portal signed it and does not know it, otherwise zero. Cards in the answers go to Config.Own. It
// takes at most newestWithin.
func (s *Syncer) Newest(ctx context.Context) record.Version { return s.ownWatch.findNewest(ctx) }

// findNewest implements Syncer.Newest by asking newestPeers random portals at the same time.
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

// askOwn asks one portal for the newest head of this portal; the result is as for Newest.
func (w *ownWatch) askOwn(ctx context.Context, portal record.PortalID) record.Version {
	var t federation.Told
	a, err := w.s.askPortal(ctx, portal, http.MethodGet, "/peering/v1/portals/"+string(w.s.own)+"/head", nil, newestWithin,
		maxShort)
	if err == nil {
		err = readAnswer(a, &t)
	}
	if err != nil {
		return record.Version{} // the portal is unreachable or holds no head
	}
	w.seeCard(t.Card)
	claim, err := record.Open(w.s.Self.Network(), t.Head)
	if err != nil || claim.Type != record.TypeHead || claim.Portal != w.s.own || !w.isUnknown(ctx, claim) {
		return record.Version{}
	}
	return claim.Version()
}

// isUnknown reports whether a head is newer than all that this portal holds of itself, and was signed by
// this portal.
func (w *ownWatch) isUnknown(ctx context.Context, claim *record.Record) bool {
	standing, err := w.s.Replica.Standing(ctx, w.s.own)
	// Only records that this portal signed matter. The signature is verified last, because that is
	// expensive.
	return err == nil && claim.Version().Compare(standing.Head) > 0 && w.signedByUs(ctx, claim)
}

// signedByUs reports whether a record bears a valid signature of this portal. It uses a gate without stored
// versions, which checks the signature only and stores nothing.
func (w *ownWatch) signedByUs(ctx context.Context, claim *record.Record) bool {
	gate, err := record.NewGate(w.s.Self.Network(), ownMemory{w.s.Replica})
	if err != nil {
		return false
	}
	_, _, err = gate.Admit(ctx, claim.Wire, clock.Now())
	return err == nil
}

// ownMemory is the memory of a gate that knows the keys of portals but no versions, so that no record is
// refused as stale.
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

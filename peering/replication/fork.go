package replication

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// forkLife is how long the signed report of a fork is valid, in milliseconds. The proof in it does not
// expire.
const forkLife = 365 * 24 * 60 * 60 * 1000

// handleFork handles a portal that was just seen to sign two different heads of one version (an
// equivocator). The gate has quarantined it; handleFork signs the proof for other portals and hides the
// portal's agents.
func (s *Syncer) handleFork(ctx context.Context, portal record.PortalID) {
	s.Registry.Fault(portal, string(record.Equivocation))
	// Once the operator releases the portal its log is pulled again, because the records held may belong to
	// either head.
	s.noteLost(ctx, portal)
	s.Directory.Changed(portal)
	s.Log.Warn("a portal signed two records of one version and is quarantined", "portal", portal)
	c, err := s.Replica.Quarantined(ctx, portal)
	if err != nil || c == nil {
		return
	}
	body := c.Proof()
	if body == nil {
		return // two agent records of one version prove nothing: the head decides which of them counts
	}
	now := clock.Now()
	_, key, until, err := s.Self.Key(now)
	if err != nil || now.After(until) {
		s.Log.Error("no key to sign a proof with", "error", err)
		return
	}
	// Proofs have a slot for each accused portal, and the epoch is the current time. No version is
	// therefore used twice, even after a loss of data.
	body.Header = record.Header{Portal: s.own, Epoch: now.UnixMilli(), Seq: 1, Issued: now.UnixMilli(),
		Expires: now.UnixMilli() + forkLife}
	r, err := record.Sign(s.Self.Network(), body, key)
	if err != nil {
		s.Log.Error("a proof could not be signed", "portal", portal, "error", err)
		return
	}
	if _, _, err := s.gate.Admit(ctx, r.Wire, now); err != nil {
		s.Log.Warn("a proof was not kept", "portal", portal, "error", err)
	}
}

package guard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// ArriveNew refuses a handshake by the rates of its address and of its network, before its body is read.
// Handshakes from other networks do not count.
func (g *Guard) ArriveNew(addr string) error {
	if g.unlimited(addr) {
		return nil
	}
	wait, ok := g.hellos.Allow(addr)
	if ok {
		wait, ok = g.networkHellos.Allow(networkOf(addr))
	}
	if !ok {
		return federation.RefuseFor(federation.ReasonLimit, wait,
			"Too many portals say hello from your address. Ask again later.")
	}
	return nil
}

// Hello verifies a handshake: a request that brings the card whose key signed it, from an address that
// ArriveNew admitted. The card is admitted if the signature is valid, unless the origin that the card
// names serves the card of another portal. Portals whose origin cannot be reached are limited in number.
func (g *Guard) Hello(r *http.Request, body, card []byte, addr string) (asker Asker, done func(), err error) {
	ctx, now := r.Context(), clock.Now()
	if err := g.checkNetwork(r); err != nil {
		return asker, nil, err
	}
	c, err := record.OpenCard(g.cfg.Self.Network(), card, now)
	if err != nil {
		return asker, nil, refuseAdmission(err)
	}
	if c.Portal == g.cfg.Self.ID() {
		return asker, nil, federation.Refuse(federation.ReasonDenied,
			"This is the very portal whose card you send. Is another one running with a copy of its keys?")
	}
	if c.Origin == g.cfg.Self.Origin() {
		return asker, nil, federation.Refuse(federation.ReasonDenied,
			"%s is where this portal is. Say hello with a card of where you are.", c.Origin)
	}
	sig, id, key, err := readSigner(r.Header)
	if err != nil {
		return asker, nil, err
	}
	if id != c.Portal {
		return asker, nil, federation.Refuse(federation.ReasonMalformed,
			"card is of another portal than the signature.")
	}
	d := g.cfg.Registry.Decide(ctx, id, c.Origin)
	if !d.In && d.State != federation.Pending {
		return asker, nil, g.refuseKept(d)
	}
	pub, err := g.checkSignature(r, sig, c, now)
	if err == nil {
		err = g.verifySignature(r, sig, pub, addr, d.Unproved)
	}
	if err != nil {
		return asker, nil, err
	}
	if err := sig.VerifyBody(r.Header, body); err != nil {
		return asker, nil, refusalOf(err)
	}
	if err := g.refuseReplay(ctx, sig.Params, now); err != nil {
		return asker, nil, err
	}
	proved, err := g.proveOrigin(ctx, c, d, addr)
	if err != nil {
		return asker, nil, err
	}
	// The place is taken after the proof, so that slow origins of strangers take none.
	if done, err = g.places.enter(id, d.Unproved); err != nil {
		return asker, nil, err
	}
	if _, _, err := g.cfg.Gate.Admit(ctx, card, now); err != nil {
		done()
		return asker, nil, refuseAdmission(err)
	}
	if !proved {
		g.cfg.Registry.Learned(c, false)
	}
	g.cfg.Registry.Seen(id, 0)
	return Asker{Portal: id, Key: key, Card: c, Decision: g.cfg.Registry.Decide(ctx, id, c.Origin)}, done, nil
}

// proveOrigin asks the origin that a card names for the portal's card. proved is false if it could not be
// asked. A Refusal if another portal is there, because otherwise a card alone could take over a host, or
// if too many strangers say hello. Portals that are known, or added by an operator, are not limited.
func (g *Guard) proveOrigin(ctx context.Context, c *record.Card, d federation.Decision, addr string) (proved bool,
	err error) {
	stranger, network := d.Unproved && !d.Follow, networkOf(addr)
	if stranger {
		most := maxNetworkProofs
		if g.unlimited(addr) {
			most = maxProofs
		}
		proving, end, err := g.proofs.begin(ctx, network, most)
		if err != nil {
			return false, err
		}
		defer end()
		ctx = proving
	}
	switch err = g.cfg.Prover.Prove(ctx, c.Origin, c.Portal); {
	case err == nil:
		return true, nil
	case errors.Is(err, ErrImpostor):
		return false, federation.Refuse(federation.ReasonDenied,
			"%s serves the card of another portal. Serve yours there, or say hello with a card of where you are.",
			c.Origin)
	case errors.Is(context.Cause(ctx), errDisplaced):
		return false, federation.RefuseFor(federation.ReasonBusy, 5*time.Second,
			"%s did not answer in time, and many other portals say hello. Ask again later.", c.Origin)
	}
	if stranger && !g.near {
		wait, ok := g.networkStrangers.Allow(network)
		if ok {
			wait, ok = g.strangers.Allow("")
		}
		if !ok {
			return false, federation.RefuseFor(federation.ReasonLimit, wait,
				"%s could not be asked whether you are there, and too many such portals say hello. Let it answer, and ask again.", c.Origin)
		}
	}
	g.cfg.Log.Info("a portal that said hello is not proved yet", "portal", c.Portal, "origin", c.Origin, "error", err)
	return false, nil
}

// refuseAdmission converts the error of a card that was not admitted to a Refusal.
func refuseAdmission(err error) error {
	switch record.ReasonOf(err) {
	case "":
		return err
	case record.Stale:
		return federation.Refuse(federation.ReasonMalformed,
			"card: a newer one is known here already. Send your current one.")
	case record.BadSignature, record.NoKey:
		return federation.Refuse(federation.ReasonSignature, "card: %s.", err)
	case record.FromFuture, record.Expired:
		return federation.Refuse(federation.ReasonClock, "card: %s.", err)
	case record.Equivocation, record.Quarantined:
		return federation.Refuse(federation.ReasonQuarantined, "card: %s.", err)
	}
	return federation.Refuse(federation.ReasonMalformed, "card: %s.", err)
}

package guard

import (
	"errors"
	"net/http"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// ArriveNew refuses a handshake by the rate of its address, before its body is read.
func (g *Guard) ArriveNew(addr string) error {
	if wait, ok := g.hellos.Allow(addr); !ok && !g.unlimited(addr) {
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
	if done, err = g.places.enter(id, d.Unproved); err != nil {
		return asker, nil, err
	}
	proved := true
	// A card that names the origin of another portal is refused, because otherwise a card alone could
	// take over a host.
	if err := g.cfg.Prover.Prove(ctx, c.Origin, id); errors.Is(err, ErrImpostor) {
		done()
		return asker, nil, federation.Refuse(federation.ReasonDenied,
			"%s serves the card of another portal. Serve yours there, or say hello with a card of where you are.",
			c.Origin)
	} else if err != nil {
		if wait, ok := g.strangers.Allow(""); !ok && !g.near {
			done()
			return asker, nil, federation.RefuseFor(federation.ReasonLimit, wait,
				"%s could not be asked whether you are there, and too many such portals say hello. Let it answer, and ask again.", c.Origin)
		}
		proved = false
		g.cfg.Log.Info("a portal that said hello is not proved yet", "portal", id, "origin", c.Origin, "error", err)
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

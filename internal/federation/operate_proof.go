package federation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// Proof is the reason for a quarantine: two contradicting records of the portal with the same version.
type Proof struct {
	Type    record.Type
	About   string
	Version record.Version
	// Mark identifies this proof. Release requires it, so that an operator releases only what they have seen.
	Mark string
	// A and B are the two records as indented JSON; empty for a record of which only the hash is stored.
	A, B             string
	HashA, HashB     string
	WireA, WireB     string
	Issued, IssuedB  time.Time
	Expires, ExpireB time.Time
}

// describeRecord returns the content of a record as indented JSON, its hash and its times. A record that
// cannot be opened is returned as it is, without hash.
func (p *Peers) describeRecord(wire []byte) (text, hash string, issued, expires time.Time) {
	if wire == nil {
		return
	}
	network := ""
	if p.cfg.Signer != nil {
		network = p.cfg.Signer.Network()
	}
	r, err := record.Open(network, wire)
	if err != nil {
		return string(wire), "", issued, expires
	}
	b, err := json.MarshalIndent(r.Body, "", "  ")
	if err != nil {
		return string(wire), "", issued, expires
	}
	if hash = r.Hash.String(); network == "" {
		hash = "" // The hash covers the name of the network, which is unknown here.
	}
	return string(b), hash, clock.FromMilli(r.Issued), clock.FromMilli(r.Expires)
}

// Release ends a portal's quarantine, or its time in the penalty box. For a quarantine, mark must be
// Proof.Mark of the current proof.
func (p *Peers) Release(ctx context.Context, actor ident.Actor, name, mark, why string) (Peer, error) {
	if err := checkOperator(actor); err != nil {
		return Peer{}, err
	}
	peer, ok := p.Portal(ctx, name)
	if !ok {
		return Peer{}, noPeer(name)
	}
	proof, err := p.Proof(ctx, actor, name)
	switch {
	case fault.Is(err, fault.NotFound):
		p.mu.RLock()
		e := p.findEntry(name)
		refused := e != nil && e.RefusedUntil.After(clock.Now())
		p.mu.RUnlock()
		if !refused {
			return Peer{}, fault.New(fault.Conflict,
				"This portal is not quarantined or refused; there is nothing to release.")
		}
	case err != nil:
		return Peer{}, err
	case mark != proof.Mark:
		return Peer{}, &fault.Error{Kind: fault.Conflict,
			Safe:   "Look at the proof first and name it: its mark is shown with it.",
			Fields: map[string]string{"proof": "is not the mark of the proof there is now"}}
	default:
		if why = strings.TrimSpace(why + " (proof " + proof.Mark + ")"); len(why) > maxNote {
			return Peer{}, &fault.Error{Kind: fault.Invalid, Safe: "The reason is too long.",
				Fields: map[string]string{"note": "use fewer words"}}
		}
	}
	key := string(peer.ID)
	if err := p.storeDecision(ctx, Decided{By: actor, Act: "peer.release", Subject: key, Why: why}, nil); err != nil {
		return Peer{}, err
	}
	if proof.Mark != "" {
		if err := p.cfg.Replica.Release(ctx, peer.ID); err != nil {
			return Peer{}, err
		}
	}
	p.mu.Lock()
	if e := p.entries[key]; e != nil {
		e.Quarantined, e.RefusedUntil, e.RefusedWhy, e.forged = false, time.Time{}, "", nil
		p.markDirty(e, clock.Now())
	}
	p.mu.Unlock()
	peer, _ = p.Portal(ctx, key)
	return peer, nil
}

// Proof returns the reason for a portal's quarantine; a NotFound fault if it is not quarantined.
func (p *Peers) Proof(ctx context.Context, actor ident.Actor, name string) (Proof, error) {
	if err := checkOperator(actor); err != nil {
		return Proof{}, err
	}
	peer, ok := p.Portal(ctx, name)
	if !ok {
		return Proof{}, noPeer(name)
	}
	if peer.ID == "" || p.cfg.Replica == nil {
		return Proof{}, fault.New(fault.NotFound, "This portal is not quarantined.")
	}
	c, err := p.cfg.Replica.Quarantined(ctx, peer.ID)
	if err != nil {
		return Proof{}, err
	}
	if c == nil {
		return Proof{}, fault.New(fault.NotFound, "This portal is not quarantined.")
	}
	out := Proof{Type: c.Slot.Type, About: c.Slot.About, Version: c.Version, WireA: string(c.Lower),
		WireB: string(c.Higher)}
	out.A, out.HashA, out.Issued, out.Expires = p.describeRecord(c.Lower)
	out.B, out.HashB, out.IssuedB, out.ExpireB = p.describeRecord(c.Higher)
	sum := sha256.Sum256(slices.Concat(c.Lower, []byte{0}, c.Higher))
	out.Mark = base64.RawURLEncoding.EncodeToString(sum[:12])
	return out, nil
}

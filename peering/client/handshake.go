package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// Handshake is a portal's answer in a handshake, after its card was admitted.
type Handshake struct {
	Card *record.Card
	// Head is the portal's newest head, unverified; nil if it has none.
	Head []byte
	// State is federation.Active if the portal admits this one, Pending while its operator has not decided.
	State federation.State
}

const (
	// maxHelloWait is the longest Retry-After of a busy portal that is waited for, and maxHelloWaits how
	// often. Two portals that meet have many requests at once, and a portal admits only a few requests of
	// an unverified one at a time.
	maxHelloWait  = 2 * time.Second
	maxHelloWaits = 3
)

// Handshake exchanges cards and heads with the portal at an origin and admits its card. It is an error if
// portal is not empty and another one answers there.
func (c *Client) Handshake(ctx context.Context, origin string, portal record.PortalID) (*Handshake, error) {
	if err := c.checkAllowed(ctx, portal, origin); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	who, err := c.portalAt(ctx, origin, portal)
	if err != nil {
		return nil, err
	}
	card := c.cfg.Self.Card()
	if card == nil {
		_, _, _, err := c.cfg.Self.Key(clock.Now())
		return nil, err
	}
	mine := struct {
		Card json.RawMessage `json:"card"`
		Head json.RawMessage `json:"head,omitempty"`
	}{Card: card}
	if mine.Head, err = c.cfg.Replica.Head(ctx, c.cfg.Self.ID()); err != nil {
		return nil, err
	}
	body, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	var a *federation.Answer
	for mended, waited := false, 0; ; {
		if a, err = c.sendOnce(ctx, origin, http.MethodPost, Base+"/hello", body, maxWhole); err != nil {
			c.noteFailed(ctx, who, err)
			return nil, err
		}
		switch why, wait := ReasonOf(a), a.RetryAfter(); {
		case a.Status == http.StatusUnauthorized && why == federation.ReasonClock && !mended:
			mended = true
			if again, err := c.prepareRetry(ctx, origin, who, federation.ReasonClock, a.Header); err == nil && again {
				continue
			}
		case (why == federation.ReasonLimit || why == federation.ReasonBusy) && 0 < wait && wait <= maxHelloWait &&
			waited < maxHelloWaits:
			waited++
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
			}
		}
		break
	}
	c.clockOf(who, a)
	if a.Status != http.StatusOK {
		c.noteBarred(who, a)
		return nil, RefusedBy(origin, a)
	}
	c.cfg.Registry.Seen(who, a.Took)
	var w whole
	if err := decode(a.Body, &w); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "What %s answered cannot be read.", federation.HostOf(origin))
	}
	if err := c.admitCard(ctx, w.Card, who); err != nil {
		return nil, err
	}
	theirs, err := record.OpenCard(c.cfg.Self.Network(), w.Card, clock.Now())
	if err != nil {
		return nil, err
	}
	out := &Handshake{Card: theirs, Head: w.Head, State: federation.Pending}
	if w.State == string(federation.Active) {
		out.State = federation.Active
		c.cfg.Registry.Barred(theirs.Portal, "", "")
	}
	if r, err := record.Open(c.cfg.Self.Network(), card); err == nil {
		c.MarkCardKnown(origin, r.Version())
	}
	if c.cfg.Listener != nil {
		c.cfg.Listener.HandshakeAnswered(ctx, out)
	}
	return out, nil
}

// MarkCardKnown records that the portal at an origin has the given version of this portal's card, because
// it was sent there or returned in a handshake.
func (c *Client) MarkCardKnown(origin string, v record.Version) {
	p := c.placeOf(origin)
	c.mu.Lock()
	defer c.mu.Unlock()
	p.met = v
}

// KnowsCard reports whether MarkCardKnown was called with that origin and version since the start.
func (c *Client) KnowsCard(origin string, v record.Version) bool {
	p := c.placeOf(origin)
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.met == v
}

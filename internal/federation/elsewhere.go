package federation

import (
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Elsewhere describes a card with this portal's id that its root key signed and that is newer than all cards signed
// here. Then a copy of the portal runs somewhere, or this data folder is an old backup. Other portals use the newest
// card: they look for the portal at its address and refuse the card used here.
type Elsewhere struct {
	Origin string
	Since  time.Time // time at which the card was signed, as it states
}

// String describes the situation in a sentence for operators.
func (e Elsewhere) String() string {
	return fmt.Sprintf("Somewhere else somebody signs as this portal (at %s, since %s). Other portals look for it there, and refuse the older card that is used here.", e.Origin, e.Since.UTC().Format("2006-01-02 15:04 UTC"))
}

// Saw checks a card that another portal holds of this one. If it is newer than all cards signed here,
// Elsewhere returns it until a newer one is signed here, and a warning is logged once for each such
// card. Other input is ignored.
func (s *Self) Saw(wire []byte) {
	c, err := record.OpenCard(s.cfg.Network, wire, clock.Now())
	if err != nil || c.Portal != s.id {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Version().Compare(s.newestLocked()) <= 0 {
		return
	}
	s.foreign = c
	s.cfg.Log.Warn("somewhere else somebody signs as this portal: stop the copy, then run agentsite keys rotate on the one that stays",
		"origin", c.Origin, "since", clock.FromMilli(c.Issued))
}

// Elsewhere returns the place at which another program signs as this portal; ok is false if none is known.
func (s *Self) Elsewhere() (e Elsewhere, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elsewhereLocked()
}

func (s *Self) elsewhereLocked() (e Elsewhere, ok bool) {
	if s.foreign == nil || s.foreign.Version().Compare(s.last) <= 0 {
		return e, false
	}
	return Elsewhere{s.foreign.Origin, clock.FromMilli(s.foreign.Issued)}, true
}

// newestLocked returns the newest known version of this portal's card, whether it was signed here or
// elsewhere; the caller holds mu.
func (s *Self) newestLocked() record.Version {
	if s.foreign != nil && s.foreign.Version().Compare(s.last) > 0 {
		return s.foreign.Version()
	}
	return s.last
}

// Elsewhere returns the place at which another program signs as this portal; ok is false if none is known.
func (p *Peers) Elsewhere() (e Elsewhere, ok bool) {
	if p.cfg.Elsewhere == nil {
		return e, false
	}
	return p.cfg.Elsewhere()
}

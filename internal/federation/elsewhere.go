package federation

import (
	"fmt"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Elsewhere is a card of this portal that its root key signed and that is newer
// than all that this portal signed: a copy of the portal runs somewhere, or its
// folder is an older one. Others look for the portal where that card says, and
// refuse the card that is used here.
type Elsewhere struct {
	Origin string
	Since  time.Time // when the card was signed, as it says
}

// String is a sentence for operators.
func (e Elsewhere) String() string {
	return fmt.Sprintf("Somewhere else somebody signs as this portal (at %s, since %s). Other portals look for it there, and refuse the older card that is used here.", e.Origin, e.Since.UTC().Format("2006-01-02 15:04 UTC"))
}

// Saw reads a card of this portal that another portal holds. If it is newer than all cards signed
// here, that is remembered until a newer one is signed here, and logged once for each such card.
// Other input is ignored.
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

// Elsewhere returns where another program signs as this portal; not ok when no such place is
// known.
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

// newestLocked is the newest version of a card of this portal that is known of,
// whoever signed it; the caller holds mu.
func (s *Self) newestLocked() record.Version {
	if s.foreign != nil && s.foreign.Version().Compare(s.last) > 0 {
		return s.foreign.Version()
	}
	return s.last
}

// Elsewhere returns where another program signs as this portal; not ok when no such place is
// known.
func (p *Peers) Elsewhere() (e Elsewhere, ok bool) {
	if p.cfg.Elsewhere == nil {
		return e, false
	}
	return p.cfg.Elsewhere()
}

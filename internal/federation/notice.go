package federation

import (
	"context"
	"slices"
	"time"

	"agentsite/internal/record"
)

// Notice is what operators are told without asking.
type Notice struct {
	Subject string // the host of the portal it is about
	Text    string // one or two sentences
	Href    string // the page to look at
}

// maxNotices bounds what waits to be told.
const maxNotices = 64

// notify queues a notice; the caller holds mu.
func (p *Peers) notify(n Notice) {
	if len(p.notices) < maxNotices {
		p.notices = append(p.notices, n)
		p.nudge()
	}
}

// tellAll tells what waits.
func (p *Peers) tellAll(ctx context.Context) {
	p.mu.Lock()
	list := p.notices
	p.notices = nil
	p.mu.Unlock()
	for _, n := range list {
		if p.cfg.Tell != nil {
			p.cfg.Tell(ctx, n)
		}
	}
}

// noticeState tells of a portal that was proved to lie. The caller holds mu.
func (p *Peers) noticeState(e *entry, was State) {
	if e.state == Quarantined && was != "" {
		p.notify(Notice{e.host(), "The portal " + e.host() + " was proved to lie and is quarantined: none of its agents is shown. Look at the proof and decide.", e.href()})
	}
}

// noticeCard tells of what must not change unnoticed: where a pinned portal is
// and which keys speak for it. The caller holds mu; e still has the old facts.
func (p *Peers) noticeCard(e *entry, origin string, keys []record.KeyID, proved bool) {
	if e.Rule.Stand == Pin && e.URL != "" {
		if e.URL != origin {
			p.notify(Notice{e.host(), "The pinned portal " + e.host() + " has moved to " + HostOf(origin) + ". Make sure that it is meant to be there.", e.href()})
		} else if len(e.Keys) > 0 && !slices.ContainsFunc(keys, func(k record.KeyID) bool { return slices.Contains(e.Keys, k) }) {
			p.notify(Notice{e.host(), "All keys that speak for the pinned portal " + e.host() + " have changed at once. Ask its operator whether that was meant.", e.href()})
		}
	}
	if !proved {
		return
	}
	for _, o := range p.entries {
		if o != e && o.URL == origin && o.ID != "" && o.Rule.Stand == Pin {
			p.notify(Notice{o.host(), "At the address of the pinned portal " + o.host() + " answers another portal, " + string(e.ID) + ". It lost its key, or somebody took its domain.", o.href()})
		}
	}
}

const (
	// Many have vanished when so many, and half of those there were, went
	// silent within this time: then it is probably this portal's network.
	vanishedLeast  = 3
	vanishedWithin = 10 * time.Minute
	alarmEvery     = time.Hour
)

// noticeVanished tells when many portals went silent at once. The caller holds
// mu.
func (p *Peers) noticeVanished(now time.Time) {
	if now.Sub(p.alarmed) < alarmEvery {
		return
	}
	there, gone := 0, 0
	for _, e := range p.entries {
		switch {
		case e.state == Active:
			there++
		case e.state == Silent && !e.Seen.IsZero() && now.Sub(e.Seen) < vanishedWithin:
			gone++
		}
	}
	if gone >= vanishedLeast && gone >= there {
		p.alarmed = now
		p.notify(Notice{"", count(gone, "portal", "portals") + " of " + count(gone+there, "portal", "portals") + " stopped answering within ten minutes. Look at this portal's own connection first.", "/admin/peers"})
	}
}

func (e *entry) host() string { return HostOf(e.URL) }

func (e *entry) href() string { return "/admin/peers/" + string(e.ID) }

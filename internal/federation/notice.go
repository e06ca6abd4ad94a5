package federation

import (
	"context"
	"slices"
	"strconv"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Notice is a message to all operators of this portal.
type Notice struct {
	Subject string // host of the portal that the notice is about
	Text    string // one or two sentences
	Href    string // path of the page with details
}

// maxNotices is the length of the queue of notices.
const maxNotices = 64

// queueNotice queues a notice for sendNotices; if the queue is full, the oldest is dropped. The caller holds mu.
func (p *Peers) queueNotice(n Notice) {
	if len(p.notices) >= maxNotices {
		p.notices = p.notices[1:]
		p.untold++
	}
	p.notices = append(p.notices, n)
	p.wakeRun()
}

// sendNotices sends the queued notices. It is called without mu, because Tell writes to the store.
func (p *Peers) sendNotices(ctx context.Context) {
	p.mu.Lock()
	list := p.notices
	if p.untold > 0 {
		list = append(list, Notice{"", "There were " + formatCount(p.untold, "older notice",
			"older notices") + " about portals than could be told. Look through the list of portals.", "/admin/peers"})
	}
	p.notices, p.untold = nil, 0
	p.mu.Unlock()
	for _, n := range list {
		if p.cfg.Tell != nil {
			p.cfg.Tell(ctx, n)
		}
	}
}

// noticeState queues a notice if the portal of e became quarantined; was is its earlier state. The caller holds mu.
func (p *Peers) noticeState(e *entry, was State) {
	if e.state == Quarantined && was != "" &&
		(e.Rule.isAdmitted() || p.liars.allowNotice(e.site, e.hostName(), clock.Now())) {
		p.queueNotice(Notice{e.hostName(), "The portal " + e.hostName() +
			" was proved to lie and is quarantined: none of its agents is shown. Look at the proof and decide.",
			e.adminPath()})
	}
}

// noticeCard queues a notice if a new card changes the address or all keys of a pinned portal. The
// caller holds mu; e still has the facts of the old card.
func (p *Peers) noticeCard(e *entry, origin string, keys []record.KeyID, proved bool) {
	if e.Rule.Stand == Pin && e.URL != "" {
		if e.URL != origin {
			p.queueNotice(Notice{e.hostName(),
				"The pinned portal " + e.hostName() + " has moved to " + HostOf(origin) +
					". Make sure that it is meant to be there.", e.adminPath()})
		} else if len(e.Keys) > 0 && !slices.ContainsFunc(keys,
			func(k record.KeyID) bool { return slices.Contains(e.Keys, k) }) {
			p.queueNotice(Notice{e.hostName(),
				"All keys that speak for the pinned portal " + e.hostName() +
					" have changed at once. Ask its operator whether that was meant.", e.adminPath()})
		}
	}
	if !proved {
		return
	}
	for _, o := range p.entries {
		if o != e && o.URL == origin && o.ID != "" && o.Rule.Stand == Pin {
			p.queueNotice(Notice{o.hostName(),
				"At the address of the pinned portal " + o.hostName() + " answers another portal, " + string(e.ID) +
					". It lost its key, or somebody took its domain.", o.adminPath()})
		}
	}
}

// noticeCrowd queues a notice that a portal was dropped because its site, or the whole table, has too
// many; at most one for each site in an hour. The caller holds mu.
func (p *Peers) noticeCrowd(site string, now time.Time) {
	if !p.crowds.allowNotice(site, site, now) || p.crowds.sites[site] > 1 {
		return
	}
	p.cfg.Log.Warn("too many portals of one site: those that are not seen where they say they are and list nothing are let go first", "site", site, "known", p.sites[site])
	p.queueNotice(Notice{site, "More portals of " + site + " turn up than are kept (" + strconv.Itoa(maxOfSite) +
		" of one domain or network, " + strconv.Itoa(maxPeers) +
		" in all). Those that nobody saw at their address and that list nothing are let go first. Allow the domain if they are meant to be there, or shut it out.", "/admin/peers"})
}

// noticeTallies queues one notice with the number of notices that were left out in the past hour because
// of the limits of tally. The caller holds mu.
func (p *Peers) noticeTallies(now time.Time) {
	if n, last := p.liars.takeLeftOut(now); n > 0 {
		p.queueNotice(Notice{last, formatCount(n, "more portal was",
			"more portals were") + " proved to lie within an hour and quarantined, " + last + " the last of them.",
			"/admin/peers"})
	}
	if n, last := p.crowds.takeLeftOut(now); n > 0 {
		p.queueNotice(Notice{last, formatCount(n, "more portal was",
			"more portals were") + " let go within an hour because too many turn up, of " + last + " the last of them.",
			"/admin/peers"})
	}
}

const (
	// Many portals have vanished if at least vanishedLeast, and half of the active ones, became silent
	// within vanishedWithin. Then the network of this portal is the likely cause.
	vanishedLeast  = 3
	vanishedWithin = 10 * time.Minute
	alarmEvery     = time.Hour
)

// noticeVanished queues a notice if many portals vanished at the same time, at most one in alarmEvery.
// The caller holds mu.
func (p *Peers) noticeVanished(now time.Time) {
	if now.Sub(p.alarmed) < alarmEvery {
		return
	}
	there, gone := 0, 0
	for _, e := range p.entries {
		switch {
		case e.state == Active:
			there++
		case !e.mute.IsZero() && now.Sub(e.mute) < vanishedWithin:
			gone++
		}
	}
	if gone >= vanishedLeast && gone >= there {
		p.alarmed = now
		p.queueNotice(Notice{"", formatCount(gone, "portal", "portals") + " of " + formatCount(gone+there, "portal",
			"portals") + " stopped answering within ten minutes. Look at this portal's own connection first.",
			"/admin/peers"})
	}
}

func (e *entry) hostName() string { return HostOf(e.URL) }

func (e *entry) adminPath() string { return "/admin/peers/" + string(e.ID) }

package federation

import "time"

// Events that anyone can cause, such as new portals, lead to at most tallySite notices a site and
// tallyAll notices in an hour; the rest is counted and reported as one number.
const (
	tallyHour  = time.Hour
	tallySite  = 3
	tallyAll   = 20
	tallySites = 1_000 // number of sites that are counted separately
)

// tally limits the notices of one kind. Peers.mu guards it.
type tally struct {
	began time.Time
	all   int            // notices sent
	sites map[string]int // notices sent, by site
	more  int            // notices left out
	last  string         // subject of the newest one left out
}

// allowNotice counts an event of a site and reports whether a notice may be sent. what names the event
// for takeLeftOut.
func (t *tally) allowNotice(site, what string, now time.Time) bool {
	if t.sites == nil {
		t.began, t.sites = now, make(map[string]int)
	}
	_, known := t.sites[site]
	if t.all >= tallyAll || t.sites[site] >= tallySite || !known && len(t.sites) >= tallySites {
		t.more++
		t.last = what
		return false
	}
	t.all++
	t.sites[site]++
	return true
}

// takeLeftOut returns the number of events without a notice in the past hour and the newest of them, and
// starts a new hour; 0 before the hour is over.
func (t *tally) takeLeftOut(now time.Time) (more int, last string) {
	if t.sites == nil || now.Sub(t.began).Abs() < tallyHour {
		return 0, ""
	}
	more, last = t.more, t.last
	*t = tally{}
	return more, last
}

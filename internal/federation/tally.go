package federation

import "time"

// Of what strangers can bring about, operators are told so often in an hour of
// one site, and of all; the rest is counted and told together.
const (
	tallyHour  = time.Hour
	tallySite  = 3
	tallyAll   = 20
	tallySites = 1_000 // that are told apart
)

// tally counts notices of one kind. Peers.mu guards it.
type tally struct {
	began time.Time
	all   int            // told
	sites map[string]int // told, by site
	more  int            // not told
	last  string         // the newest of those
}

// one reports whether operators are told of one more, of a site, and counts it.
func (t *tally) one(site, what string, now time.Time) bool {
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

// over returns how many were not told of in the hour that is over, and the
// newest of them; 0 before it is.
func (t *tally) over(now time.Time) (more int, last string) {
	if t.sites == nil || now.Sub(t.began).Abs() < tallyHour {
		return 0, ""
	}
	more, last = t.more, t.last
	*t = tally{}
	return more, last
}

// Package livereport keeps the signed reports of portals about the liveness of
// agents, and weighs them against each other into one verdict.
package livereport

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// Report is the liveness of an agent as one portal observed it.
type Report struct {
	Portal record.PortalID
	Host   string // host of the portal's origin
	Reach  record.Reach
	// At is the time of the observation by the portal's own clock. For the agent's own portal it is
	// extended, because that portal would have reported a change.
	At     time.Time
	Called bool // result of a real task, not of a probe
	// The sources of weight: Own is a report of this portal, Home one of the agent's portal, Pinned one
	// of a portal that the operator trusts, Proved one of a portal whose domain was seen to serve its
	// key. A report with none of them is shown, but not counted.
	Own, Home, Pinned, Proved bool
}

// Verdict is the liveness that many reports of an agent result in.
type Verdict struct {
	Reach record.Reach // 0 if no report counts
	At    time.Time    // time of the deciding report
	// Reason explains the result to people and names portals that contradict; Disputed is true if there
	// are any.
	Reason   string
	Disputed bool
	// Reports are all usable reports, at most one of each portal, those with most weight first.
	Reports []Report
}

const (
	// ownFresh is the age up to which this portal's own result decides alone.
	ownFresh = 10 * time.Minute
	// wordFresh is the age up to which a report counts before older ones.
	wordFresh = time.Hour
	// wordLasts is the age from which a report is ignored: the largest age that a record can state plus
	// two days.
	wordLasts = record.MaxAgo + 48*time.Hour
)

// Weigh combines reports to the liveness of an agent. It asks in this order, and the first group
// with a report decides:
//
//  1. this portal, if it was in contact within 10 minutes;
//  2. it and the portals pinned here, within the hour: their median;
//  3. the agent's own portal;
//  4. the other proved portals, within the hour: their median;
//  5. those of 2, then those of 4, of any age.
//
// The median of an even number is the better of the two in the middle, because a portal that
// reached an agent was not mistaken, while one that did not may have been cut off. In 2 and 4 one
// site has one report, the newest; the site of the agent's portal has none in 4. Portals that are
// not proved never count, however many they are, because a thousand portals can be made without
// one domain.
//
// The order of reports does not matter. A report from the future counts as of now if it is within
// 5 minutes, else not.
func Weigh(voices []Report, now time.Time) Verdict {
	list := cleanReports(voices, now)
	var home *Report
	var trusted, others []Report
	for i, v := range list {
		if v.Home {
			home = &list[i]
		}
		switch {
		case v.Own, v.Pinned:
			trusted = append(trusted, v)
		case v.Proved && !v.Home:
			others = append(others, v)
		}
	}
	trusted, others = perSite(trusted, ""), perSite(others, homeSite(home))
	out := Verdict{Reports: list}
	decide := func(group []Report) (ok bool) {
		if len(group) == 0 {
			return false
		}
		v := medianOf(group)
		out.Reach, out.At = v.Reach, v.At
		out.writeReason(group, v, home, others, now)
		return true
	}
	own := slices.DeleteFunc(slices.Clone(trusted), func(v Report) bool { return !v.Own || now.Sub(v.At) > ownFresh })
	var there []Report
	if home != nil {
		there = []Report{*home}
	}
	_ = decide(own) || decide(freshOnly(trusted, now)) || decide(there) || decide(freshOnly(others, now)) ||
		decide(trusted) || decide(others)
	if out.Reach == 0 {
		out.Reason = "No trusted portal has reached it recently."
	}
	return out
}

// cleanReports removes reports without a state, too old or from the future, keeps the newest of each
// portal, and sorts by weight.
func cleanReports(voices []Report, now time.Time) []Report {
	list := slices.DeleteFunc(slices.Clone(voices), func(v Report) bool {
		return v.Reach < record.Alive || v.Reach > record.Unreachable || v.At.Sub(now) > 5*time.Minute ||
			now.Sub(v.At) > wordLasts
	})
	for i := range list {
		if list[i].At.After(now) {
			list[i].At = now
		}
	}
	slices.SortStableFunc(list, func(a, b Report) int {
		return cmp.Or(cmp.Compare(a.Portal, b.Portal),
			compareTime(a, b))
	})
	list = slices.CompactFunc(list, func(a, b Report) bool { return a.Portal == b.Portal })
	slices.SortStableFunc(list, func(a, b Report) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)),
			compareTime(a, b))
	})
	return list
}

// compareTime orders reports by time, newest first. Different reports never compare equal, so that
// results do not depend on the input order.
func compareTime(a, b Report) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Reach, b.Reach), cmp.Compare(rankOf(a), rankOf(b)),
		cmp.Compare(a.Portal, b.Portal), cmp.Compare(a.Host, b.Host))
}

func rankOf(v Report) int {
	switch {
	case v.Own:
		return 0
	case v.Pinned:
		return 1
	case v.Home:
		return 2
	case v.Proved:
		return 3
	}
	return 4
}

func homeSite(home *Report) string {
	if home == nil {
		return ""
	}
	return federation.SiteOf(home.Host)
}

// perSite keeps the newest report of each site, because one owner can run many portals, and removes
// those of the site except.
func perSite(group []Report, except string) []Report {
	slices.SortStableFunc(group, compareTime)
	seen := map[string]bool{except: except != ""}
	return slices.DeleteFunc(group, func(v Report) bool {
		site := federation.SiteOf(v.Host)
		drop := seen[site]
		seen[site] = true
		return drop
	})
}

func freshOnly(group []Report, now time.Time) []Report {
	return slices.DeleteFunc(slices.Clone(group), func(v Report) bool { return now.Sub(v.At) > wordFresh })
}

// medianOf returns the newest report with the median state; group must not be empty.
func medianOf(group []Report) Report {
	group = slices.Clone(group)
	slices.SortStableFunc(group, func(a, b Report) int {
		return cmp.Or(cmp.Compare(a.Reach, b.Reach),
			compareTime(a, b))
	})
	state := group[(len(group)-1)/2].Reach
	return group[slices.IndexFunc(group, func(v Report) bool { return v.Reach == state })]
}

// writeReason sets Reason and Disputed from the deciding group: v is the report that decided, home that
// of the agent's portal (nil for none), others those of proved portals.
func (out *Verdict) writeReason(group []Report, v Report, home *Report, others []Report, now time.Time) {
	n := 0
	for _, w := range group {
		if w.Reach == v.Reach {
			n++
		}
	}
	out.Disputed = n < len(group)
	switch {
	case v.Own:
		out.Reason = "This portal " + describePast(v.Reach)
	case v.Home:
		out.Reason = "Its portal says " + describeNow(v.Reach)
	case v.Pinned:
		out.Reason = v.Host + ", which this portal trusts, " + describePast(v.Reach)
	case len(group) == 1:
		out.Reason = v.Host + " " + describePast(v.Reach)
	default:
		out.Reason = fmt.Sprintf("%d of %d other portals %s", n, len(group), describePast(v.Reach))
	}
	if home != nil && !v.Home && home.Reach != v.Reach {
		out.Disputed = true
		out.Reason += "; its portal says " + describeNow(home.Reach)
	}
	// In this case group is the reports of the other portals, which the sentence has counted already.
	if !v.Own && !v.Pinned && !v.Home {
		out.Reason += "."
		return
	}
	others = freshOnly(others, now)
	var say [record.Unreachable + 1]int
	for _, w := range others {
		say[w.Reach]++
	}
	worst := record.Reach(0)
	for r := record.Alive; r <= record.Unreachable; r++ {
		if r != v.Reach && say[r] > 0 && say[r] >= say[worst] {
			worst = r
		}
	}
	if worst != 0 {
		out.Disputed = true
		out.Reason += fmt.Sprintf("; %d of %d others %s", say[worst], len(others), describePast(worst))
	}
	out.Reason += "."
}

// describePast returns the end of a sentence about a portal, for example "could not reach it".
func describePast(r record.Reach) string {
	return [...]string{"", "reached it", "was asked for a credential", "got an answer in another protocol",
		"could not reach it"}[r]
}

// describeNow returns the end of a sentence that begins with "Its portal says", for example "that it is alive".
func describeNow(r record.Reach) string {
	return [...]string{"", "that it is alive", "that it needs a credential", "that it speaks another protocol",
		"that it cannot be reached"}[r]
}

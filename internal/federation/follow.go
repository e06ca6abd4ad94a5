package federation

import (
	"cmp"
	"slices"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// The uses of another portal's statements about third portals: Rule.Follow.
const (
	// FollowWarn: portals that it warns of or blocks are marked for operators.
	FollowWarn = "warn"
	// FollowBlock: portals that it blocks are denied, portals that it warns of are marked.
	FollowBlock = "block"
)

// maxFollowed bounds the lists that are followed: each decision asks all of them.
// A list itself has as many words as the replica keeps of one portal.
const maxFollowed = 16

// Said is a statement of a portal whose list is followed.
type Said struct {
	Host            string // host of the portal that made the statement
	By              record.PortalID
	Verdict, Reason string
	// Denies: it shuts the portal out, unless a rule or an allowed domain lets
	// that in.
	Denies bool
}

// updateFollowed updates the list of followed portals; the caller holds mu.
func (p *Peers) updateFollowed() {
	p.followed = p.followed[:0:0]
	for _, e := range p.entries {
		if e.Rule.Follow != "" && e.ID != "" {
			p.followed = append(p.followed, e.ID)
		}
	}
	slices.Sort(p.followed)
}

// isTrusted reports whether statements of a portal are kept even when there are too many, because an
// operator chose to follow or pin it. The caller holds mu.
func (p *Peers) isTrusted(id record.PortalID) bool {
	e := p.entries[string(id)]
	return e != nil && (e.Rule.Stand == Pin || e.Rule.Follow != "")
}

// listEntries returns the statements of followed lists about a portal. Lists of proved liars are ignored,
// and so are statements about followed portals: otherwise chance would decide between two that
// deny each other. The caller holds mu.
func (p *Peers) listEntries(f *Facts, now time.Time) (out []Said) {
	if f.ID == "" || f.Rule.Follow != "" || f.ID == p.selfID() {
		return nil
	}
	for _, by := range p.followed {
		w, ok := p.words[f.ID][by]
		if !ok || w.Verdict == record.Vouch || !w.Expires.After(now) {
			continue
		}
		if e := p.entries[string(by)]; e != nil && e.Rule.Follow != "" && !e.Quarantined && by != f.ID {
			out = append(out, Said{Host: e.hostName(), By: by, Verdict: w.Verdict, Reason: w.Reason,
				Denies: w.Verdict == record.Block && e.Rule.Follow == FollowBlock})
		}
	}
	slices.SortStableFunc(out, func(a, b Said) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.By, b.By))
	})
	return out
}

// listVerdict is the reason why a followed list shuts a portal out, empty when none
// does. The caller holds mu.
func (p *Peers) listVerdict(f *Facts, now time.Time) string {
	if len(p.followed) == 0 {
		return ""
	}
	for _, s := range p.listEntries(f, now) {
		if !s.Denies {
			continue
		}
		why := "."
		if s.Reason != "" {
			why = `: "` + record.CutLine(s.Reason, maxWhy) + `".`
		}
		return "It is on the list of " + s.Host + ", which this portal follows" + why +
			" Allow it to let it in all the same."
	}
	return ""
}

// mayFollow refuses one more list when maxFollowed is reached; the caller holds mu.
func (p *Peers) mayFollow(f *Facts) error {
	switch {
	case f.ID == "":
		return fault.New(fault.Conflict, "Nobody has answered at %s yet, so nothing is known of what it says.",
			HostOf(f.URL))
	case f.Rule.Follow == "" && len(p.followed) >= maxFollowed:
		return fault.New(fault.Conflict, "The lists of %d portals are followed already; end one first.", maxFollowed)
	}
	return nil
}

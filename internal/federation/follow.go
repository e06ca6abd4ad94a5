package federation

import (
	"cmp"
	"slices"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// The values of Rule.Follow: the use of a portal's statements about third portals.
const (
	// FollowWarn: portals that it warns of or blocks are marked on the operator's pages.
	FollowWarn = "warn"
	// FollowBlock: portals that it blocks are denied; portals that it warns of are marked.
	FollowBlock = "block"
)

// maxFollowed is the number of lists that are followed, because each decision reads all of them. A list
// has at most as many statements as the replica keeps of one portal.
const maxFollowed = 16

// Said is a statement of a followed portal about another portal.
type Said struct {
	Host            string // host of the portal that made the statement
	By              record.PortalID
	Verdict, Reason string
	// Denies: the statement leads to Denied, unless a rule or an allowed domain admits the portal.
	Denies bool
}

// updateFollowed recomputes the list of followed portals after a rule changed; the caller holds mu.
func (p *Peers) updateFollowed() {
	p.followed = p.followed[:0:0]
	for _, e := range p.entries {
		if e.Rule.Follow != "" && e.ID != "" {
			p.followed = append(p.followed, e.ID)
		}
	}
	slices.Sort(p.followed)
}

// isTrusted reports whether statements of the portal id are kept even beyond the limits, because an
// operator follows or pinned it. The caller holds mu.
func (p *Peers) isTrusted(id record.PortalID) bool {
	e := p.entries[string(id)]
	return e != nil && (e.Rule.Stand == Pin || e.Rule.Follow != "")
}

// listEntries returns the statements of followed portals about the portal of f. Statements by
// quarantined portals are ignored. So are statements about followed portals, because two that deny each
// other would make the result depend on their order. The caller holds mu.
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

// listVerdict returns the reason for which a followed list denies the portal of f, "" if none does. The
// caller holds mu.
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

// mayFollow returns a Conflict fault if maxFollowed lists are followed already; the caller holds mu.
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

package catalog

import (
	"slices"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// view is a snapshot of the portals for queries, built by each Reconcile. It is immutable.
type view struct {
	tier   string
	self   string // this portal's host
	made   time.Time
	byHost map[string]*seen // key in lower case
	list   []*seen          // sorted by host
	all    federation.Coverage
	oldest time.Time         // issue time of the oldest head behind all; zero for none
	partly []federation.Peer // displayed portals with agents that are not all held
	// partlyAt holds the indexes of partly by portal.
	partlyAt map[record.PortalID]int
	// indexes are the displayed portals of the tier index, which answer searches for other portals.
	indexes []federation.Peer
}

// seen is the state of another portal for queries, copied from the registry when the view was built.
type seen struct {
	id       record.PortalID
	host     string
	url      string
	name     string
	shown    bool // agents are in the directory
	verified bool
	answers  bool // the portal answered the last requests
	silent   bool // the portal answered earlier but not lately
	partly   bool // not all agents are held, so searches ask the portal
	folded   int
	issued   time.Time // issue time of the portal's head
}

// maxSilent bounds the silent portals listed in a Coverage, to bound the size of answers.
const maxSilent = 100

func newView(cfg Config, peers []federation.Peer, want map[record.PortalID]shown, now time.Time) *view {
	v := &view{tier: record.TierReplica, self: cfg.Host, made: now, byHost: make(map[string]*seen),
		partlyAt: make(map[record.PortalID]int)}
	if cfg.Tiers != nil {
		v.tier = cfg.Tiers.Tier()
	}
	for _, p := range peers {
		if p.ID == "" || p.ID == cfg.Self || p.Host() == "" {
			continue
		}
		switch p.State {
		case federation.Pending, federation.Denied, federation.Quarantined:
			continue // answers must not reveal which portals are denied
		}
		w, shown := want[p.ID]
		s := &seen{id: p.ID, host: p.Host(), url: p.URL, name: p.Name, shown: shown, verified: w.verified,
			issued:  p.HeadIssued,
			answers: p.State == federation.Active, silent: p.Mute()}
		switch {
		case shown:
			if s.partly = p.Partly(); s.partly {
				v.partlyAt[p.ID] = len(v.partly)
				v.partly = append(v.partly, p)
			}
			if p.Tier == record.TierIndex {
				v.indexes = append(v.indexes, p)
			}
		case p.State == federation.Stale || !p.HeadExpires.IsZero() && !p.HeadExpires.After(now):
			s.folded = p.Agents
		case p.State == federation.Joining || p.HeadExpires.IsZero():
		default:
			continue // the policy excludes the portal's agents
		}
		v.list = append(v.list, s)
		if was := v.byHost[s.host]; was == nil || !was.shown && s.shown {
			v.byHost[s.host] = s
		}
	}
	v.all, v.oldest = v.coverOf(v.list, true)
	v.all.Known = len(v.list) + 1
	return v
}

// coverOf returns the coverage of the listed portals, and with own of this one too. oldest is the issue
// time of their oldest head; zero for none.
func (v *view) coverOf(list []*seen, own bool) (c federation.Coverage, oldest time.Time) {
	c = federation.Coverage{Known: len(v.list) + 1, Silent: []string{}, Tier: v.tier}
	if own {
		c.Asked, c.Answered = 1, 1
	}
	for _, s := range list {
		if !s.shown && s.folded == 0 || s.partly {
			continue // not covered by local search: no agents, or not all
		}
		c.Asked++
		c.Folded += s.folded
		if s.shown && s.answers {
			c.Answered++
		} else if len(c.Silent) < maxSilent {
			c.Silent = append(c.Silent, s.host)
		}
		if s.shown && (oldest.IsZero() || s.issued.Before(oldest)) {
			oldest = s.issued
		}
	}
	return c, oldest
}

// countCoverage returns the coverage of the portals with the given hosts; of all portals if there are none.
// "" and "local" stand for this portal.
func (v *view) countCoverage(portals []string, now time.Time) federation.Coverage {
	c, oldest := v.all, v.oldest
	if len(portals) > 0 {
		var list []*seen
		own := false
		for _, host := range portals {
			switch s := v.byHost[host]; {
			case host == "" || host == "local" || host == v.self:
				own = true
			case s != nil && !slices.Contains(list, s):
				list = append(list, s)
			}
		}
		c, oldest = v.coverOf(list, own)
	}
	c.Silent = slices.Clone(c.Silent)
	if !oldest.IsZero() {
		c.OldestHead = max(int64(now.Sub(oldest)/time.Second), 0)
	}
	return c
}

// listPortals returns the portals with agents in the directory, by host.
func (v *view) listPortals() []hub.Source {
	var out []hub.Source
	for _, s := range v.list {
		if s.shown {
			out = append(out, s.sourceOf())
		}
	}
	return out
}

func (s *seen) sourceOf() hub.Source {
	return hub.Source{Portal: s.host, URL: s.url, Name: s.name, ID: string(s.id), Verified: s.verified,
		HeadIssued: s.issued, Silent: s.silent}
}

// sourceOf returns the portal that an agent comes from. Only the host is known if the registry has no such
// portal.
func (v *view) sourceOf(a hub.Agent) hub.Source {
	s := v.byHost[a.Portal]
	if s == nil {
		return hub.Source{Portal: a.Portal, Record: a.Record, Also: a.Also}
	}
	out := s.sourceOf()
	out.Verified, out.Record, out.Also = a.Verified && s.shown, a.Record, a.Also
	return out
}

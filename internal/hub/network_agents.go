package hub

import (
	"context"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
)

// errElsewhere refuses to change an agent of another portal.
func errElsewhere(a Agent, source Source) error {
	where := a.Portal
	if source.URL != "" {
		where = source.URL + "/agents/" + a.Name
	}
	return fault.New(fault.Forbidden, "%s is an agent of another portal. Its owners change it there: %s", a.Handle(),
		where)
}

// errElsewhereOnly says that only its portal keeps the versions of an agent.
func errElsewhereOnly(a Agent, source Source) error {
	return fault.New(fault.NotFound, "What %s was before is kept by its own portal: %s/agents/%s/versions", a.Handle(),
		source.URL, a.Name)
}

// Elsewhere is true for agents of other portals: this one keeps no versions,
// owners or settings of them.
func (a Agent) Elsewhere() bool { return a.Portal != "" }

// findRemote returns an agent of another portal.
func (s *Service) findRemote(ctx context.Context, h ident.Handle) (Agent, error) {
	if s.network == nil {
		return Agent{}, errNoAgent(h.String())
	}
	a, err := s.network.Find(ctx, h.Name, h.Portal)
	if err == nil && a.Portal == "" {
		err = errNoAgent(h.String()) // the local table is never asked for a handle of others
	}
	return a, err
}

// RemoteAgents are the agents of other portals in the same index as the local ones. The holder of
// the records of other portals fills it; the Service over the same index searches it. It needs no
// Service, so the code that fills it can be built before one.
type RemoteAgents struct {
	index  Index
	portal string // the host of this portal
}

// NewRemoteAgents returns the agents of other portals in an index of the portal
// at a host.
func NewRemoteAgents(index Index, portal string) RemoteAgents { return RemoteAgents{index, portal} }

// Learned returns an agent of another portal by its id in the network, as it
// is found now.
func (r RemoteAgents) Learned(id string) (Agent, bool) {
	if !foreignID(id) {
		return Agent{}, false
	}
	a, ok := r.index.Get(id)
	return a, ok && a.Portal != ""
}

// LearnedAs returns the agents that are found under a handle of another
// portal. There are several when portals claim the same host, or one lists two
// agents of one name.
func (r RemoteAgents) LearnedAs(name, portal string) []Agent {
	if portal == "" {
		return nil
	}
	return r.index.Named(name, portal)
}

// Builtin returns the built-in agent of this portal that has a name.
func (r RemoteAgents) Builtin(name string) (Agent, bool) {
	for _, a := range r.index.Named(name, "") {
		if a.Kind == Builtin {
			return a, true
		}
	}
	return Agent{}, false
}

// LearnedFrom returns the ids of all agents of another portal that are found.
func (r RemoteAgents) LearnedFrom(portal string) []string {
	if portal == "" {
		return nil
	}
	return r.index.Of(portal)
}

// Learn puts agents of other portals, or their new forms, into the index. Invalid agents are left
// out: a remote agent must not pass for a local one.
func (r RemoteAgents) Learn(list []Agent) {
	if len(list) <= fewLearned {
		for _, a := range list {
			if a, ok := r.prepareAgent(a); ok {
				r.index.Put(a)
			}
		}
		return
	}
	n := 0
	r.LearnAll(func() (Agent, bool) {
		if n == len(list) {
			return Agent{}, false
		}
		n++
		return list[n-1], true
	})
}

// fewLearned is up to how many agents are put one by one.
const fewLearned = 64

// LearnAll is Learn for all agents that next returns until it returns false.
func (r RemoteAgents) LearnAll(next func() (Agent, bool)) {
	r.index.Load(func() (Agent, bool) {
		for {
			a, more := next()
			if !more {
				return Agent{}, false
			}
			if a, ok := r.prepareAgent(a); ok {
				return a, true
			}
		}
	})
}

// Unlearn takes agents of other portals out of the index, by their ids in the
// network.
func (r RemoteAgents) Unlearn(ids []string) {
	for _, id := range ids {
		if foreignID(id) {
			r.index.Remove(id)
		}
	}
}

// prepareAgent returns an agent of another portal as the directory shows it, see Elsewhere, with
// its known liveness.
func (r RemoteAgents) prepareAgent(a Agent) (Agent, bool) {
	if a.Portal == "" || strings.EqualFold(a.Portal, r.portal) || !foreignID(a.ID) {
		return Agent{}, false
	}
	live := a.Liveness
	if live.State == "" {
		live.State = Unknown
	}
	a, err := Elsewhere(a)
	a.Liveness = live
	return a, err == nil
}

// foreignID reports whether an id can be that of an agent elsewhere: a portal's
// id, a slash and more, or the id of an agent with its own key. Ids of this
// portal's are much shorter.
func foreignID(id string) bool {
	return len(id) >= 54 && (strings.HasPrefix(id, "p1") || strings.HasPrefix(id, "a1"))
}

// Source says where an agent that the actor may see comes from.
func (s *Service) Source(a Agent) Source {
	if a.Portal == "" || s.network == nil {
		return Source{Portal: s.cfg.Portal, URL: s.cfg.URL, Verified: a.Portal == ""}
	}
	return s.network.Source(a)
}

// Portals are the other portals with agents in searches, by host.
func (s *Service) Portals() []Source {
	if s.network == nil {
		return nil
	}
	return s.network.Portals()
}

// Evidence returns the evidence that an agent is listed by its portal, see Network.
func (s *Service) Evidence(ctx context.Context, a Agent, prove bool) (Evidence, error) {
	if s.network == nil {
		return Evidence{}, fault.New(fault.NotFound, "This portal signs nothing: it is alone.")
	}
	return s.network.Record(ctx, a, prove)
}

// Coverage says how much of the network a search looks through.
func (s *Service) Coverage(q Query) federation.Coverage {
	portals := q.Portals
	if q.Scope == ScopePortal {
		portals = []string{""}
	}
	if s.network == nil {
		return federation.Coverage{Known: 1, Asked: 1, Answered: 1, Silent: []string{}, Tier: "replica"}
	}
	return s.network.Coverage(portals)
}

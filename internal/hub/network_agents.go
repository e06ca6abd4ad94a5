package hub

import (
	"context"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
)

// errElsewhere returns the fault for changing an agent of another portal; it names the portal that can change it.
func errElsewhere(a Agent, source Source) error {
	where := a.Portal
	if source.URL != "" {
		where = source.URL + "/agents/" + a.Name
	}
	return fault.New(fault.Forbidden, "%s is an agent of another portal. Its owners change it there: %s", a.Handle(),
		where)
}

// errElsewhereOnly returns the fault for reading versions of an agent of another portal, which only that
// portal keeps.
func errElsewhereOnly(a Agent, source Source) error {
	return fault.New(fault.NotFound, "What %s was before is kept by its own portal: %s/agents/%s/versions", a.Handle(),
		source.URL, a.Name)
}

// Elsewhere reports whether the agent is listed by another portal. This portal keeps no versions, owners
// or settings of such agents.
func (a Agent) Elsewhere() bool { return a.Portal != "" }

// findRemote returns a replicated agent of another portal; a NotFound fault if federation is off or the
// agent is unknown.
func (s *Service) findRemote(ctx context.Context, h ident.Handle) (Agent, error) {
	if s.network == nil {
		return Agent{}, errNoAgent(h.String())
	}
	a, err := s.network.Find(ctx, h.Name, h.Portal)
	if err == nil && a.Portal == "" {
		// A result of this portal is an error: its own agents have handles without a host here.
		err = errNoAgent(h.String())
	}
	return a, err
}

// RemoteAgents reads and changes the agents of other portals in the index that Service searches. It
// needs no Service, so the replica that fills the index can be built first.
type RemoteAgents struct {
	index  Index
	portal string // host of this portal
}

// NewRemoteAgents returns the remote part of index; portal is the host of this portal, whose agents it refuses.
func NewRemoteAgents(index Index, portal string) RemoteAgents { return RemoteAgents{index, portal} }

// Learned returns the agent of another portal with this network id, in its indexed form; false if it is
// not in the index.
func (r RemoteAgents) Learned(id string) (Agent, bool) {
	if !foreignID(id) {
		return Agent{}, false
	}
	a, ok := r.index.Get(id)
	return a, ok && a.Portal != ""
}

// LearnedAs returns the indexed agents with this name and portal host. There are several if portals
// claim the same host or a portal lists two agents of one name.
func (r RemoteAgents) LearnedAs(name, portal string) []Agent {
	if portal == "" {
		return nil
	}
	return r.index.Named(name, portal)
}

// Builtin returns this portal's built-in agent of that name, if there is one.
func (r RemoteAgents) Builtin(name string) (Agent, bool) {
	for _, a := range r.index.Named(name, "") {
		if a.Kind == Builtin {
			return a, true
		}
	}
	return Agent{}, false
}

// LearnedFrom returns the ids of all indexed agents of another portal.
func (r RemoteAgents) LearnedFrom(portal string) []string {
	if portal == "" {
		return nil
	}
	return r.index.Of(portal)
}

// Learn adds or replaces agents of other portals in the index. Invalid agents and those with this
// portal's host are dropped, so that a remote agent cannot pass for a local one.
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

// fewLearned is the number of agents up to which single puts are cheaper than a bulk load.
const fewLearned = 64

// LearnAll is Learn for a sequence: it takes agents from next until next returns false.
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

// Unlearn removes agents of other portals from the index, by network id.
func (r RemoteAgents) Unlearn(ids []string) {
	for _, id := range ids {
		if foreignID(id) {
			r.index.Remove(id)
		}
	}
}

// prepareAgent returns an agent of another portal in the form for the index: cleaned by Elsewhere, with
// its known liveness. false if the agent is invalid or claims to be of this portal.
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

// foreignID reports whether id has the form of a network id: the portal's id, a slash and a name, or the
// id of an agent with a key of its own. Local ids are much shorter.
func foreignID(id string) bool {
	return len(id) >= 54 && (strings.HasPrefix(id, "p1") || strings.HasPrefix(id, "a1"))
}

// Source returns the portal that lists an agent and the evidence for it. The caller has checked that the
// actor may see the agent.
func (s *Service) Source(a Agent) Source {
	if a.Portal == "" || s.network == nil {
		return Source{Portal: s.cfg.Portal, URL: s.cfg.URL, Verified: a.Portal == ""}
	}
	return s.network.Source(a)
}

// Portals lists the other portals with agents in the index, ordered by host.
func (s *Service) Portals() []Source {
	if s.network == nil {
		return nil
	}
	return s.network.Portals()
}

// Evidence returns the signed records that prove an agent's listing; see Network.Record.
func (s *Service) Evidence(ctx context.Context, a Agent, prove bool) (Evidence, error) {
	if s.network == nil {
		return Evidence{}, fault.New(fault.NotFound, "This portal signs nothing: it is alone.")
	}
	return s.network.Record(ctx, a, prove)
}

// Coverage returns how much of the network a search with q covers.
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

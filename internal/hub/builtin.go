package hub

import (
	"context"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// remoteBuiltin returns a built-in agent of another portal by its handle. Built-in agents are in no
// portal's records, because every portal has its own: the one of this portal describes the other, which
// may be called as soon as its portal is known. The result for any other handle is the error absent.
func (s *Service) remoteBuiltin(ctx context.Context, h ident.Handle, absent error) (Agent, error) {
	if s.ways == nil {
		return Agent{}, absent
	}
	var own Agent
	for _, a := range s.index.Named(h.Name, "") {
		if a.Kind == Builtin {
			own = a
		}
	}
	portal := s.network.Source(Agent{Portal: h.Portal}).ID
	if own.ID == "" || portal == "" {
		return Agent{}, absent
	}
	if _, err := s.ways.Way(ctx, portal); err != nil {
		return Agent{}, absent
	}
	a := own
	a.Portal, a.ID, a.Proof = h.Portal, portal+"/builtin/"+h.Name, Proof{}
	// Conversations go on with the agent that they began with, which had a record in an older version.
	was, err := s.store.ElsewhereBy(ctx, h.Name, h.Portal)
	if err == nil && was.PortalID == portal {
		a.ID = was.NetworkID
	} else if err != nil && !fault.Is(err, fault.NotFound) {
		return Agent{}, err
	}
	return Elsewhere(a)
}

// resolveHandle is resolveRemote for a handle.
func (s *Service) resolveHandle(ctx context.Context, actor ident.Actor, h ident.Handle, absent error) (Agent, error) {
	a, err := s.resolveRemote(ctx, actor, h.String(), absent)
	if fault.Is(err, fault.NotFound) && s.network != nil { // its portal may be known by now
		return s.remoteBuiltin(ctx, h, err)
	}
	return a, err
}

package hub

import (
	"context"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// maxCoOwners is how many co-owners an agent may have.
const maxCoOwners = 20

// isOwner reports whether the actor is the agent's owner or a co-owner.
func isOwner(actor ident.Actor, a Agent) bool {
	return actor.IsPerson() && actor.ID != "" && (a.OwnerID == actor.ID || slices.Contains(a.CoOwnerIDs, actor.ID))
}

// canSee reports whether the actor may see the agent: drafts and private agents are visible to their
// owners and the operator only.
func canSee(actor ident.Actor, a Agent) bool {
	if a.Visibility != Private && a.Status.State != StatusDraft {
		return true
	}
	return isOwner(actor, a) || actor.IsOperator() && actor.May(ident.Admin)
}

// OwnedBy reports whether the actor is the agent's owner or a co-owner; these may see its usage.
func (a Agent) OwnedBy(actor ident.Actor) bool { return isOwner(actor, a) }

// MayEdit reports whether the actor may change the agent: owners and the operator may, for agents of
// this portal that are not built in.
func (a Agent) MayEdit(actor ident.Actor) bool {
	return a.Kind != Builtin && a.Portal == "" && actor.IsPerson() && actor.May(ident.AgentsWrite) &&
		(isOwner(actor, a) || actor.IsOperator() && actor.May(ident.Admin))
}

// MayGive reports whether the actor may remove the agent, transfer it and choose its co-owners: the
// owner and the operator may, co-owners may not.
func (a Agent) MayGive(actor ident.Actor) bool {
	return a.MayEdit(actor) && (a.OwnerID == actor.ID || actor.IsOperator() && actor.May(ident.Admin))
}

// ownedAgent returns an agent that the actor may change; a Forbidden fault for other visible agents.
func (s *Service) ownedAgent(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	if err := RequireWriter(actor); err != nil {
		return Agent{}, err
	}
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if a.Elsewhere() {
		return Agent{}, errElsewhere(a, s.Source(a))
	}
	if !a.MayEdit(actor) {
		return Agent{}, fault.New(fault.Forbidden, "Only an owner of %s may do that.", a.Name)
	}
	return a, nil
}

// givenAgent returns an agent for which MayGive allows the actor; else a Forbidden fault.
func (s *Service) givenAgent(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err == nil && !a.MayGive(actor) {
		err = fault.New(fault.Forbidden, "Only the owner of %s may do that; you share it.", a.Name)
	}
	return a, err
}

// findAccount returns the account of this portal with a name or handle; a NotFound fault if there is none.
func (s *Service) findAccount(ctx context.Context, name string) (Owner, error) {
	none := func() error {
		text := "there is nobody of that name on this portal"
		return fault.Field("account", text)
	}
	h, ok := ident.ParseHandle(name, s.cfg.Portal)
	if !ok || h.Portal != "" {
		return Owner{}, none()
	}
	o, err := s.store.Account(ctx, h.Name)
	if fault.Is(err, fault.NotFound) {
		return Owner{}, none()
	}
	return o, err
}

// CoOwners lists the co-owners of an agent; only owners and the operator may call it.
func (s *Service) CoOwners(ctx context.Context, actor ident.Actor, name string) ([]Owner, error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return nil, err
	}
	return s.store.CoOwners(ctx, a.ID)
}

// mayTell counts an action that sends a notice to another account or reveals that an account exists; a
// RateLimited fault if the actor does so too often.
func (s *Service) mayTell(actor ident.Actor) error {
	if wait, ok := s.shares.Allow(actor.ID); !ok {
		return fault.Limited(wait, "You shared or offered much in a short time. Wait a moment.")
	}
	return nil
}

// AddCoOwner allows another account to change the agent, see its usage and call it while it is private.
// Removing and transferring stay with the owner.
func (s *Service) AddCoOwner(ctx context.Context, actor ident.Actor, name, who string) error {
	a, err := s.givenAgent(ctx, actor, name)
	if err == nil {
		err = s.mayTell(actor)
	}
	if err != nil {
		return err
	}
	o, err := s.findAccount(ctx, who)
	if err != nil {
		return err
	}
	if o.ID == a.OwnerID || slices.Contains(a.CoOwnerIDs, o.ID) {
		return nil
	}
	if len(a.CoOwnerIDs) >= maxCoOwners {
		return fault.New(fault.Conflict, "%d accounts share %s already; remove one first.", maxCoOwners, a.Name)
	}
	if err := s.store.AddCoOwner(ctx, a.ID, o.ID); err != nil {
		return err
	}
	s.Reindex(ctx, a.ID)
	s.Notices.Notify(ctx, []string{o.ID}, Notice{Kind: NoticeShared, Subject: a.Name,
		Text: actor.Name + " shares " + a.Name + " with you: you may change it.", Href: "/agents/" + a.Name})
	return nil
}

// RemoveCoOwner ends the rights of a co-owner; a co-owner may also remove itself.
func (s *Service) RemoveCoOwner(ctx context.Context, actor ident.Actor, name, who string) error {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return err
	}
	// The name is searched in the list of co-owners, because findAccount does not return disabled accounts.
	list, err := s.store.CoOwners(ctx, a.ID)
	if err != nil {
		return err
	}
	h, _ := ident.ParseHandle(who, s.cfg.Portal)
	i := slices.IndexFunc(list, func(o Owner) bool { return o.Name == h.Name && h.Portal == "" })
	if i < 0 {
		return nil
	}
	o := list[i]
	if o.ID != actor.ID && !a.MayGive(actor) {
		return fault.New(fault.Forbidden, "Only the owner of %s may do that; you share it.", a.Name)
	}
	if err := s.store.RemoveCoOwner(ctx, a.ID, o.ID); err != nil {
		return err
	}
	s.Reindex(ctx, a.ID)
	s.dropConnections(a.ID)
	if o.ID != actor.ID {
		s.Notices.Notify(ctx, []string{o.ID}, Notice{Kind: NoticeUnshared, Subject: a.Name,
			Text: actor.Name + " no longer shares " + a.Name + " with you.", Href: "/agents/" + a.Name})
	}
	return nil
}

// Offer offers the agent to another account, which becomes its owner when it accepts. A new offer
// replaces the earlier one; "" withdraws it.
func (s *Service) Offer(ctx context.Context, actor ident.Actor, name, who string) error {
	a, err := s.givenAgent(ctx, actor, name)
	if err != nil {
		return err
	}
	if who == "" {
		return s.store.SetOffer(ctx, a.ID, "")
	}
	if err := s.mayTell(actor); err != nil {
		return err
	}
	o, err := s.findAccount(ctx, who)
	if err != nil {
		return err
	}
	if o.ID == a.OwnerID {
		return fault.Field("account", "owns it already")
	}
	if err := s.store.SetOffer(ctx, a.ID, o.ID); err != nil {
		return err
	}
	s.Notices.Notify(ctx, []string{o.ID}, Notice{Kind: NoticeOffer, Subject: a.Name,
		Text: actor.Name + " wants to give you " + a.Name + ". It becomes yours when you accept.",
		Href: "/account#offers"})
	return nil
}

// Offers lists the agents that are offered to the actor.
func (s *Service) Offers(ctx context.Context, actor ident.Actor) ([]Offer, error) {
	if err := requireAccount(actor, ident.AgentsRead); err != nil {
		return nil, err
	}
	return s.store.Offers(ctx, actor.ID)
}

// Offered returns the account that an agent is offered to; ok is false without an offer. Only owners may call it.
func (s *Service) Offered(ctx context.Context, actor ident.Actor, name string) (o Owner, ok bool, err error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return Owner{}, false, err
	}
	return s.store.OfferOf(ctx, a.ID)
}

// Answer accepts or declines an offer to the actor. On acceptance the former owner loses all rights; the
// new owner may add them as co-owner.
func (s *Service) Answer(ctx context.Context, actor ident.Actor, name string, accept bool) error {
	if err := RequireWriter(actor); err != nil {
		return err
	}
	offers, err := s.store.Offers(ctx, actor.ID)
	if err != nil {
		return err
	}
	h, _ := ident.ParseHandle(name, s.cfg.Portal)
	i := slices.IndexFunc(offers, func(o Offer) bool { return o.Agent.Name == h.Name && h.Portal == "" })
	if i < 0 {
		return fault.New(fault.NotFound, "Nobody offers you an agent called %.80q.", name)
	}
	a := offers[i].Agent
	if !accept {
		if err := s.store.SetOffer(ctx, a.ID, ""); err != nil {
			return err
		}
		s.Notices.Notify(ctx, []string{a.OwnerID},
			Notice{Kind: NoticeTaken, Subject: a.Name,
				Text: actor.Name + " does not want " + a.Name + ". It stays yours.", Href: "/agents/" + a.Name})
		return nil
	}
	if err := s.store.Transfer(ctx, a.ID, actor.ID, false, MaxAgentsPerOwner); err != nil {
		return err
	}
	s.dropConnections(a.ID)
	s.Notices.Notify(ctx, []string{a.OwnerID}, Notice{Kind: NoticeTaken, Subject: a.Name,
		Text: a.Name + " now belongs to " + actor.Name + ".", Href: "/agents/" + a.Name})
	s.afterTransfer(context.WithoutCancel(ctx), a.ID, ident.Actor{Kind: ident.Person, ID: a.OwnerID, Name: a.OwnerName})
	s.cfg.Log.Info("agent given away", "agent", a.ID, "name", a.Name, "to", actor.ID)
	return nil
}

// afterTransfer removes from a transferred agent whatever rested on the former owner: the publishing
// domain, the proof of its address, and tools that only the former owner may use. Errors are logged.
func (s *Service) afterTransfer(ctx context.Context, agentID string, former ident.Actor) {
	for range 3 { // A concurrent edit causes a version conflict, after which the agent is read again.
		a, err := s.store.AgentByID(ctx, agentID)
		if err != nil {
			break
		}
		if a.Proof.Method == ProofToken {
			if err := s.store.SetProof(ctx, a.ID, a.OwnerID, Proof{}); err != nil {
				s.cfg.Log.Warn("end a proof", "agent", a.ID, "error", err)
			}
		}
		changed := a.Publisher != "" && !s.Proofs.controlsDomain(ctx, a.OwnerID, a.Publisher)
		if changed {
			a.Publisher = ""
		}
		config, fewer, err := s.tools.givenTools(ctx, former, a)
		if err != nil {
			s.cfg.Log.Warn("look at the tools of an agent", "agent", a.ID, "error", err)
		} else if fewer {
			a.Config, changed = config, true
		}
		if !changed {
			break
		}
		if _, err = s.saveVersion(ctx, ident.Actor{Kind: ident.System}, a, a.Version, nil,
			"Given to "+a.OwnerName); err == nil {
			break
		}
		s.cfg.Log.Warn("end what rested on the former owner", "agent", a.ID, "error", err)
	}
	s.Reindex(ctx, agentID)
}

package doctor

import (
	"context"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// silentPage lists the portal's own agents that do not answer.
const silentPage = "/agents?live=unreachable,wrong_protocol&portal=local"

// checkAgents checks the portal's own agents: it reports those that do not answer and those that are
// not published to other portals. quick counts those that do not answer, because their owners mend them.
func (s Subject) checkAgents(ctx context.Context, r *Report, quick bool) {
	if s.Agents == nil {
		return
	}
	dead := cappedFindings{r: r, check: Agents, level: Fault,
		do: "Inform its owner; its page has details and a button to check it again"}
	away := cappedFindings{r: r, check: Agents, level: Note,
		do: "It is alive again when its program connects: agentsite agent run"}
	untold := cappedFindings{r: r, check: Agents, level: Note,
		do: "Nothing, if intended. agentsite doctor --agent NAME has details"}
	public, told := 0, 0
	silent, owners := 0, make(map[string]bool)
	err := s.Agents.AllAgents(ctx, func(a hub.Agent) bool {
		if a.Portal != "" || !a.Listable() || a.Kind == hub.Builtin { // built-in agents are not published
			return ctx.Err() == nil
		}
		public++
		switch {
		case a.Liveness.State != hub.Unreachable && a.Liveness.State != hub.WrongProtocol:
		case quick:
			silent++
			owners[a.OwnerID] = true
		case a.Kind == hub.Link:
			away.addOne("The agent %s is not connected.", a.Name)
		default:
			dead.addOne("The agent %s cannot be used: %s", a.Name, deadReason(a))
		}
		if s.Network == "" {
			return ctx.Err() == nil
		}
		if p := s.publishedState(ctx, a); p.Why == "" {
			told++
		} else {
			untold.addOne("The agent %s is not published: %s", a.Name, p.Why)
		}
		return ctx.Err() == nil
	})
	if err != nil {
		r.Add(Agents, Fault, "agentsite verify", "The portal's agents cannot be read: %v.", err)
		return
	}
	if silent > 0 {
		r.Add(Agents, Note, "Their owners mend them; each page names the reason.", "%s of %s not reachable.",
			counted(silent, "agent", "agents"), counted(len(owners), "person", "people")+isOrAre(silent))
		r.Findings[len(r.Findings)-1].Page = silentPage
	}
	for _, f := range []*cappedFindings{&dead, &away, &untold} {
		f.addRest()
	}
	switch {
	case public == 0:
		r.Add(Agents, OK, "", "The portal has no public agents.")
	case s.Network == "":
		r.Add(Agents, OK, "", "The portal has %s.", counted(public, "public agent", "public agents"))
	default:
		r.Add(Agents, OK, "", "Published: %d of %s.", told, counted(public, "public agent", "public agents"))
	}
}

func isOrAre(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func deadReason(a hub.Agent) string {
	if a.Liveness.Reason != "" {
		return a.Liveness.Reason
	}
	return "it is " + string(a.Liveness.State) + "."
}

// publishedState returns the publication state of an agent: from the running portal, or else computed
// from its data folder.
func (s Subject) publishedState(ctx context.Context, a hub.Agent) federation.Published {
	if s.Publisher != nil {
		return s.Publisher.Published(a)
	}
	none := func(why string) federation.Published { return federation.Published{Why: why} }
	switch {
	case !a.Listable():
		return none("Only public agents that are not withdrawn are published.")
	case s.Peers != nil && !s.Peers.Exports(a.Tags(), a.Languages):
		return none("The operator of this portal does not publish agents like this one.")
	case s.Replica == nil:
		return none("The portal has published nothing yet: it does when it runs.")
	}
	wire, err := s.Replica.Agent(ctx, s.ID, record.AgentKey(s.idOf(a)))
	if err != nil {
		return none("The published records cannot be read: " + plainError(err))
	}
	if wire == nil {
		return none("It is published when the portal runs.")
	}
	rec, err := record.Open(s.Network, wire)
	if err != nil {
		return none("The published records cannot be read: " + plainError(err))
	}
	if b, ok := rec.Body.(*record.Agent); !ok || b.Deleted {
		return none("It is published when the portal runs.")
	}
	head, ok := s.ownHead(ctx)
	return federation.Published{Version: rec.Version(), Hash: rec.Hash, Listed: ok &&
		head.Epoch == rec.Version().Epoch && head.Seq > rec.Version().Seq}
}

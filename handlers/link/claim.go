package link

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
	"agentsite/internal/team/aware"
)

// Directory implements Agents with the portal's directory: the owner of an agent may connect a program
// for it.
type Directory struct{ Hub *hub.Service }

// maxClient bounds the stored name of a connected program in bytes; a longer name is cut.
const maxClient = 80

// Claim returns the actor's agent that hello names, and registers it if there is none. Title, description
// and skills of hello are used for a new agent only, because the owner edits them on the agent's page
// later.
func (d Directory) Claim(ctx context.Context, actor ident.Actor, h linkwire.Hello) (task.Attached, error) {
	bound, only := actor.Program()
	if !only && !actor.May(ident.AgentsWrite) {
		return task.Attached{}, fault.New(fault.Forbidden,
			"%s Or take the command from the page of the agent.", ident.AgentsWrite.DescribeMissing())
	}
	if err := ident.CheckName(h.Name); err != nil {
		return task.Attached{}, fault.Field("name", err.Error())
	}
	a, err := d.Hub.Get(ctx, reader(actor), h.Name)
	if only && (fault.Is(err, fault.NotFound) || err == nil && a.ID != bound) {
		return task.Attached{}, fault.New(fault.Forbidden,
			"This token connects another agent than %s, and may do nothing else.", h.Name)
	}
	if fault.Is(err, fault.NotFound) {
		a, err = d.registerAgent(ctx, actor, h)
		if fault.Is(err, fault.Conflict) {
			// A second connection of the same program may have registered the agent meanwhile.
			if now, gerr := d.Hub.Get(ctx, actor, h.Name); gerr == nil {
				a, err = now, nil
			}
		}
	}
	if err != nil {
		return task.Attached{}, err
	}
	if err := d.checkOwner(actor, a); err != nil {
		return task.Attached{}, err
	}
	return task.Attached{AgentID: a.ID, Name: a.Name, OwnerID: a.OwnerID, Client: linkwire.Line(h.Client, maxClient)},
		nil
}

// reader returns the actor with the right to look up its agent, which a token that only connects a program lacks.
func reader(actor ident.Actor) ident.Actor {
	if _, only := actor.Program(); only {
		actor.Scopes = append(slices.Clip(actor.Scopes), ident.AgentsRead)
	}
	return actor
}

func (d Directory) registerAgent(ctx context.Context, actor ident.Actor, h linkwire.Hello) (hub.Agent, error) {
	kind := hub.Link
	draft := hub.Draft{Name: &h.Name, Kind: &kind, Description: &h.Description}
	if h.Title != "" {
		draft.Title = &h.Title
	}
	if h.Description == "" {
		text := fmt.Sprintf("A program that %s runs elsewhere and connects to this portal.", actor.Name)
		draft.Description = &text
	}
	skills := make([]hub.Skill, len(h.Skills))
	for i, s := range h.Skills {
		skills[i] = hub.Skill(s)
	}
	draft.Skills = &skills
	if h.Team {
		draft.InputModes = &[]string{"text/plain", aware.MediaType}
	}
	config, err := json.Marshal(hub.LinkConfig{Client: linkwire.Line(h.Client, maxClient), Tools: h.Tools})
	if err == nil {
		err = json.Unmarshal(config, &draft.Config)
	}
	if err != nil {
		return hub.Agent{}, err
	}
	return d.Hub.Publish(ctx, actor, draft)
}

// checkOwner returns nil if the actor may speak for the agent, otherwise the reason for the refusal.
func (d Directory) checkOwner(actor ident.Actor, a hub.Agent) error {
	switch {
	case !a.OwnedBy(actor):
		return fault.New(fault.Conflict, "The name %s is taken by an agent of another account. Choose another.", a.Name)
	case a.Kind != hub.Link:
		return fault.New(fault.Conflict,
			"The agent %s is of kind %s, which does not connect to the portal. Choose another name.", a.Name, a.Kind)
	case a.Status.State == hub.Withdrawn:
		return fault.New(fault.Forbidden, "The agent %s is withdrawn. Put it back before it connects.", a.Name)
	}
	return nil
}

// Holds returns nil as long as the actor may speak for the agent, otherwise the reason for the refusal.
func (d Directory) Holds(ctx context.Context, actor ident.Actor, who task.Attached) error {
	a, err := d.Hub.Get(ctx, reader(actor), who.Name)
	if err != nil {
		return err
	}
	if a.ID != who.AgentID {
		return fault.New(fault.NotFound, "The agent was deleted.")
	}
	return d.checkOwner(actor, a)
}

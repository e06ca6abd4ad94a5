package app

import (
	"context"
	"encoding/json"

	"agentsite/agentruntime"
	"agentsite/agentruntime/mcp"
	"agentsite/agentruntime/prompt"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// promptTools implements prompt.Tools: prompt agents may use the tools of MCP agents. The rights are
// those of the prompt agent's owner for every caller, so that a caller does not gain rights and
// the owner knows which tools are used.
type promptTools struct {
	portal *Portal
	mcp    *mcp.Driver
}

// Offer implements prompt.Tools. Agents that are not MCP agents, are not allowed for the owner or do not
// answer are left out.
func (t promptTools) Offer(ctx context.Context, call task.Call, names []string) ([]prompt.Tool, error) {
	owner, err := t.toolOwner(ctx, call)
	if err != nil {
		return nil, err
	}
	var out []prompt.Tool
	for _, name := range names {
		a, err := t.portal.hub.Callable(ctx, owner, name)
		if err != nil || a.Kind != hub.MCP {
			continue
		}
		b, _ := task.BehalfOf(ctx)
		tools, err := t.mcp.Tools(task.WithBehalf(ctx, b.ForCall(a.ID, t.portal.Hop(b.AgentID))),
			hub.Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config})
		if err != nil {
			continue // temporarily left out; the next call tries again
		}
		for _, tool := range tools {
			out = append(out, prompt.Tool{Agent: a.Handle(), Name: tool.Name, Description: tool.Description,
				Schema: tool.InputSchema, ReadOnly: tool.ReadOnly,
				Caller: ownedTool{t, owner, a.Name, tool.Name}})
		}
	}
	return out, nil
}

// ownedTool is one tool that is called with the rights of the prompt agent's owner.
type ownedTool struct {
	tools       promptTools
	owner       ident.Actor
	agent, tool string
}

// CallTool implements prompt.ToolCaller with the checks of callTool. args is the JSON object with the
// arguments.
func (o ownedTool) CallTool(ctx context.Context, args json.RawMessage) (string, bool, error) {
	return o.tools.callTool(ctx, o.owner, o.agent, o.tool, args)
}

// trier implements hub.Trier. It stores the actor in the context, because an agent that is tried before
// its registration has no owner yet (toolOwner).
type trier struct{ agentruntime.Trier }

type triedBy struct{}

// Try implements hub.Trier: actor becomes the owner of the agent's tools for this call.
func (t trier) Try(ctx context.Context, actor ident.Actor, a hub.Agent, secret, text string) (hub.Tried, error) {
	return t.Trier.Try(context.WithValue(ctx, triedBy{}, actor), actor, a, secret, text)
}

// toolOwner returns the actor whose rights an agent uses for tools: the agent's owner, or the actor of
// trier.Try before registration.
func (t promptTools) toolOwner(ctx context.Context, call task.Call) (ident.Actor, error) {
	a, err := t.portal.db.Hub.AgentByID(ctx, call.Agent.ID)
	if fault.Is(err, fault.NotFound) {
		if actor, tried := ctx.Value(triedBy{}).(ident.Actor); tried {
			return actor, nil
		}
		return ident.Actor{}, fault.New(fault.NotFound, "%s is not here any more.", call.Agent.Handle)
	}
	if err != nil {
		return ident.Actor{}, err
	}
	return ident.Actor{Kind: ident.Person, ID: a.OwnerID, Name: a.OwnerName}, nil
}

// callTool runs one tool, after checking that the owner still has access and is within the limits of the
// tool's agent.
func (t promptTools) callTool(ctx context.Context, owner ident.Actor, name, tool string, args json.RawMessage) (string,
	bool, error) {
	if err := t.portal.hub.Admit(ctx, owner, name, len(args)); err != nil {
		return "", false, err
	}
	a, err := t.portal.hub.Callable(ctx, owner, name)
	if err != nil {
		return "", false, err
	}
	a, secret, err := t.portal.hub.Open(ctx, a.ID)
	if err != nil {
		return "", false, err
	}
	b, _ := task.BehalfOf(ctx)
	ctx = task.WithBehalf(ctx, b.ForCall(a.ID, t.portal.Hop(b.AgentID)))
	return t.mcp.CallTool(ctx, hub.Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config, Secret: secret}, tool,
		args)
}

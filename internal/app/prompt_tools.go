package app

import (
	"context"

	"agentsite/agentruntime"
	"agentsite/agentruntime/acting"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// acted implements the ports of acting.Tools. It refers to the portal, because the services are built after the
// drivers.
type acted struct{ portal *Portal }

func (p *Portal) newTools(servers acting.Servers) *acting.Tools {
	a := acted{p}
	return acting.New(a, a, a, servers, p, p.keeper, filedLibrary{p})
}

// Callable implements acting.Directory. A halted agent is a Conflict fault, because tools of MCP agents are called
// without a task of their own.
func (a acted) Callable(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error) {
	agent, err := a.portal.hub.Callable(ctx, actor, name)
	if err == nil {
		err = a.portal.checkHalt(agent)
	}
	return agent, err
}

// checkHalt returns a Conflict fault for an agent that takes no work.
func (p *Portal) checkHalt(a hub.Agent) error {
	if why := p.halts.ReasonOf(a, p.hub.TextGoesTo(a)); why != "" {
		return fault.New(fault.Conflict, "%s", why)
	}
	return nil
}

func (a acted) Admit(ctx context.Context, actor ident.Actor, name string, size int) error {
	return a.portal.hub.Admit(ctx, actor, name, size)
}

func (a acted) Open(ctx context.Context, id string) (hub.Agent, string, error) {
	agent, secret, err := a.portal.hub.Open(ctx, id)
	if err == nil {
		err = a.portal.checkHalt(agent)
	}
	return agent, secret, err
}

func (a acted) Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error) {
	q.Private = true
	return a.portal.hub.Search(ctx, actor, q)
}

func (a acted) TextGoesTo(agent hub.Agent) string { return a.portal.hub.TextGoesTo(agent) }

func (a acted) AgentByID(ctx context.Context, id string) (hub.Agent, error) {
	return a.portal.db.Hub.AgentByID(ctx, id)
}

// IsOperator implements acting.Directory; it is false if the account cannot be read.
func (a acted) IsOperator(ctx context.Context, id string) bool {
	who, err := a.portal.db.Accounts.AccountByID(ctx, id)
	return err == nil && who.Operator && who.DisabledAt.IsZero()
}

func (a acted) AskAside(ctx context.Context, q chat.Aside) (chat.Asked, error) {
	return a.portal.chats.Asides.Ask(ctx, q)
}

func (a acted) AwaitTask(ctx context.Context, actor ident.Actor, t task.Task) (task.Task, chat.Message, error) {
	return a.portal.chats.Asides.Await(ctx, actor, t)
}

func (a acted) StopTask(ctx context.Context, actor ident.Actor, id, reason string) error {
	return a.portal.chats.StopTask(ctx, actor, id, reason)
}

func (a acted) Begin(ctx context.Context, u grant.Use) (grant.Decision, context.Context, func(), error) {
	return a.portal.grants.Begin(ctx, u)
}

func (a acted) Denials(ctx context.Context, u grant.Use) (func(target string) bool, error) {
	return a.portal.grants.Denials(ctx, u)
}

func (a acted) Remember(ctx context.Context, u grant.Use, allow, conversationOnly bool) error {
	return a.portal.grants.Remember(ctx, u, allow, conversationOnly)
}

// grantAgents implements grant.Agents.
type grantAgents struct{ portal *Portal }

func (g grantAgents) AgentBinding(ctx context.Context, actor ident.Actor, handle string) (id, name string,
	b grant.Binding, err error) {
	a, err := g.portal.hub.Callable(ctx, actor, handle)
	return a.ID, a.Handle(), acting.BindingOf(a, g.portal.hub.TextGoesTo(a)), err
}

func (g grantAgents) BindingOf(ctx context.Context, agentID string) (grant.Binding, error) {
	a, err := g.portal.db.Hub.AgentByID(ctx, agentID)
	return acting.BindingOf(a, g.portal.hub.TextGoesTo(a)), err
}

// trier implements hub.Trier. It stores the actor in the context, because an agent that is tried before
// its registration has no owner yet.
type trier struct {
	agentruntime.Trier
	portal *Portal
}

// Try implements hub.Trier: actor becomes the owner of the agent's tools for this call.
func (t trier) Try(ctx context.Context, actor ident.Actor, a hub.Agent, secret, text string) (hub.Tried, error) {
	if err := t.portal.checkHalt(a); err != nil {
		return hub.Tried{}, err
	}
	return t.Trier.Try(acting.WithTrier(ctx, actor), actor, a, secret, text)
}

func (a acted) Forget(ctx context.Context, p grant.Person, agentID, conversationID string) error {
	return a.portal.grants.Forget(ctx, p, agentID, conversationID)
}

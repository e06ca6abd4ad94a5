// Package acting lets agents act for the person behind a task: it offers the tools of other agents, and find and ask,
// with which an agent searches for other agents and gives them work. It implements prompt.Tools and prompt.Grants.
//
// MCP tools run with the rights of the agent's owner, because the owner chose them. find and ask run with the rights of
// the person behind the task, see chat.Service.AskAside.
package acting

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"agentsite/agentruntime/prompt"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Directory is the part of the directory of agents that acting agents use.
type Directory interface {
	Callable(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
	Admit(ctx context.Context, actor ident.Actor, name string, size int) error
	Open(ctx context.Context, agentID string) (a hub.Agent, secret string, err error)
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
	AgentByID(ctx context.Context, id string) (hub.Agent, error)
	// TextGoesTo returns the host that gets the texts for an agent, "" for this portal.
	TextGoesTo(a hub.Agent) string
	// IsOperator reports whether an account operates the portal.
	IsOperator(ctx context.Context, accountID string) bool
}

// Conversations asks agents for other agents.
type Conversations interface {
	AskAside(ctx context.Context, a chat.Aside) (chat.Asked, error)
	AwaitTask(ctx context.Context, actor ident.Actor, t task.Task) (task.Task, chat.Message, error)
	StopTask(ctx context.Context, actor ident.Actor, id, reason string) error
}

// Grants decides about calls, see grant.Service.
type Grants interface {
	Begin(ctx context.Context, u grant.Use) (grant.Decision, context.Context, func(), error)
	Denials(ctx context.Context, u grant.Use) (func(target string) bool, error)
	Remember(ctx context.Context, u grant.Use, allow, conversationOnly bool) error
	Forget(ctx context.Context, p grant.Person, agentID, conversationID string) error
}

// Servers calls MCP servers.
type Servers interface {
	Tools(ctx context.Context, t hub.Target) ([]hub.Tool, error)
	CallTool(ctx context.Context, t hub.Target, name string, args json.RawMessage) (text string, isError bool,
		err error)
}

// Memories keeps the memories that agents have of the person behind a call. The sentence of a *fault.Error is for the
// agent.
type Memories interface {
	Remember(ctx context.Context, call task.Call, text string) error
	// Recall returns the agent's memories that fit a query.
	Recall(ctx context.Context, call task.Call, query string) ([]task.Memory, error)
}

// Tools offers tools to agents. Create it with New; it is safe for concurrent use.
type Tools struct {
	directory Directory
	chats     Conversations
	grants    Grants
	servers   Servers
	hops      chat.HopNames
	memories  Memories
	library   Library
}

var (
	_ prompt.Tools  = (*Tools)(nil)
	_ prompt.Grants = (*Tools)(nil)
)

// New returns the tools of a portal. The services are used only while tasks run.
func New(d Directory, c Conversations, g Grants, s Servers, h chat.HopNames, m Memories,
	l Library) *Tools {
	return &Tools{d, c, g, s, h, m, l}
}

// Offer implements prompt.Tools: names are grant.PortalTools, agents of the MCP kind, which give
// their tools, and other agents, which can be asked. Agents that are gone, do not answer or may not be used by the
// owner are left out.
func (t *Tools) Offer(ctx context.Context, call task.Call, names []string) ([]prompt.Tool, error) {
	owner, err := t.toolOwner(ctx, call)
	if err != nil {
		return nil, err
	}
	var out []prompt.Tool
	for _, name := range names {
		switch name {
		case grant.Find:
			out = append(out, t.findTool(call))
			continue
		case grant.Ask:
			out = append(out, t.askTool(call))
			continue
		case grant.Memory:
			out = append(out, t.memoryTools(call)...)
			continue
		case grant.Library:
			out = append(out, t.libraryTools(call)...)
			continue
		}
		a, err := t.directory.Callable(ctx, owner, name)
		if err != nil {
			continue
		}
		if a.Kind != hub.MCP {
			out = append(out, t.askOne(call, a))
			continue
		}
		b, _ := task.BehalfOf(ctx)
		tools, err := t.servers.Tools(task.WithBehalf(ctx, b.ForCall(a.ID, t.hops.Hop(b.AgentID))),
			hub.Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config})
		if err != nil {
			continue // temporarily left out; the next call tries again
		}
		// A server's word that a tool only reads is believed if an operator registered the server.
		trusted := a.OwnerID != "" && t.directory.IsOperator(ctx, a.OwnerID)
		for _, tool := range tools {
			if tool.Name == grant.Memory || tool.Name == grant.LibraryRead || tool.Name == grant.LibraryWrite {
				continue // people would take it for the portal's own tool
			}
			out = append(out, prompt.Tool{Agent: a.Handle(), Name: tool.Name, Description: tool.Description,
				Schema: tool.InputSchema, ReadOnly: trusted && tool.ReadOnly, Owned: true,
				Caller: ownedTool{t, owner, a.Name, tool.Name}})
		}
	}
	return out, nil
}

// ownedTool is a tool of an MCP server that is called with the rights of the agent's owner.
type ownedTool struct {
	tools       *Tools
	owner       ident.Actor
	agent, tool string
}

// CallTool implements prompt.ToolCaller. It checks that the owner still has access and is within the limits of the
// tool's agent.
func (o ownedTool) CallTool(ctx context.Context, c prompt.Invocation) (text string, isError bool, err error) {
	d := o.tools.directory
	if err := d.Admit(ctx, o.owner, o.agent, len(c.Args)); err != nil {
		return "", false, err
	}
	a, err := d.Callable(ctx, o.owner, o.agent)
	if err != nil {
		return "", false, err
	}
	a, secret, err := d.Open(ctx, a.ID)
	if err != nil {
		return "", false, err
	}
	b, _ := task.BehalfOf(ctx)
	ctx = task.WithBehalf(ctx, b.ForCall(a.ID, o.tools.hops.Hop(b.AgentID)))
	target := hub.Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config, Secret: secret}
	return o.tools.servers.CallTool(ctx, target, o.tool, c.Args)
}

type triedBy struct{}

// WithTrier returns a context for a call of an agent that actor tries before its registration: actor becomes the
// owner of the agent's tools.
func WithTrier(ctx context.Context, actor ident.Actor) context.Context {
	return context.WithValue(ctx, triedBy{}, actor)
}

// toolOwner returns the actor that lends an agent its rights for MCP tools: the agent's owner, or that of WithTrier.
func (t *Tools) toolOwner(ctx context.Context, call task.Call) (ident.Actor, error) {
	a, err := t.directory.AgentByID(ctx, call.Agent.ID)
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

// BindingOf returns the facts about an agent for which grants are given. The origin of an agent without an endpoint is
// goesTo, the host of its model, and that of a hosted program its hash with the hosts that it may call.
func BindingOf(a hub.Agent, goesTo string) grant.Binding {
	b := grant.Binding{Owner: a.OwnerName, Origin: goesTo}
	if u, err := url.Parse(a.Endpoint); err == nil && u.Host != "" {
		b.Origin = u.Scheme + "://" + u.Host
	}
	if a.Kind == hub.Wasm {
		var cfg hub.WasmConfig
		if json.Unmarshal(a.Config, &cfg) == nil {
			b.Origin = strings.TrimSpace("sha256:" + cfg.Module + " " + goesTo)
			b.Needs = grant.NeedsOf(slices.Concat(cfg.Tools, cfg.Hosts))
		}
		return b
	}
	// The settings of the other kinds have tools of the same form, those of MCP servers another one.
	var cfg hub.PromptConfig
	if a.Kind != hub.MCP && json.Unmarshal(a.Config, &cfg) == nil {
		b.Needs = grant.NeedsOf(cfg.Tools)
	}
	return b
}

// use describes a call of a tool for a decision. The Person is zero for callers that cannot keep grants.
func (t *Tools) use(ctx context.Context, call task.Call, tool prompt.Tool, c prompt.Invocation) (grant.Use, error) {
	u := grant.Use{AgentID: call.Agent.ID, Agent: call.Agent.Handle, Tool: tool.Name, Target: tool.Agent,
		Person: personOf(call), ConversationID: call.ConversationID}
	a, err := t.directory.AgentByID(ctx, call.Agent.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return u, err
	}
	u.Binds = BindingOf(a, t.directory.TextGoesTo(a))
	if asker, ok := tool.Caller.(asking); ok {
		u.Tool = grant.Ask
		target, err := asker.target(ctx, c)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) || fault.Is(err, fault.Forbidden) {
			err = errNotAskable(asker.named(c))
		}
		if err != nil {
			return u, err
		}
		u.Target, u.Public = target.Handle(), target.Visibility == hub.Public
	}
	switch caller := tool.Caller.(type) {
	case filing:
		u.Target = caller.target(c)
	case finding, remembering, recalling:
		u.Target = ""
	}
	return u, nil
}

// personOf returns the person behind a call; zero for callers that cannot keep grants.
func personOf(call task.Call) grant.Person {
	switch call.Caller.Kind {
	case string(ident.Person), string(ident.Operator):
		return grant.Person{Kind: string(ident.Person), ID: call.Caller.ID}
	case string(ident.Portal):
		return grant.Person{Kind: string(ident.Portal), ID: call.Caller.ID}
	}
	return grant.Person{}
}

// Begin implements prompt.Grants. A private agent that no grant names is a NotFound fault, so that an agent does not
// learn by asking which private agents the person has.
func (t *Tools) Begin(ctx context.Context, call task.Call, tool prompt.Tool,
	c prompt.Invocation) (prompt.Permission, error) {
	u, err := t.use(ctx, call, tool, c)
	if err != nil {
		return prompt.Permission{}, err
	}
	p := prompt.Permission{Target: u.Target, Context: ctx, Done: func() {}}
	if f, ok := tool.Caller.(filing); ok {
		if err := f.checkCaller(); err != nil {
			return prompt.Permission{}, err
		}
	}
	if tool.Name == grant.Memory {
		a, err := t.directory.AgentByID(ctx, call.Agent.ID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return prompt.Permission{}, err
		}
		p.Reader = t.directory.TextGoesTo(a)
	}
	if u.Person.ID == "" {
		return p, nil
	}
	d, within, done, err := t.grants.Begin(ctx, u)
	if err != nil {
		return prompt.Permission{}, err
	}
	asker, asks := tool.Caller.(asking)
	if asks && !u.Public && d == grant.Undecided && !slices.Contains(declaredTools(call), u.Target) {
		return prompt.Permission{}, errNotAskable(asker.named(c))
	}
	p.Decision, p.Context, p.Done, p.Keeps = d, within, done, true
	p.KeepsAll = u.Person.Kind == string(ident.Person)
	return p, nil
}

// errNotAskable is the same for an agent that does not exist and for a private one without a grant.
func errNotAskable(name string) error {
	return fault.New(fault.NotFound,
		"There is no agent %.80q that may be asked. Use find, and the handle that it returns.", name)
}

// declaredTools returns the tools that the owner of a prompt agent named. A private agent among them may be asked for.
func declaredTools(call task.Call) []string {
	var cfg hub.PromptConfig
	if json.Unmarshal(call.Agent.Config, &cfg) != nil {
		return nil
	}
	return cfg.Tools
}

// Remember implements prompt.Grants.
func (t *Tools) Remember(ctx context.Context, call task.Call, tool prompt.Tool, c prompt.Invocation,
	a prompt.Answer) error {
	u, err := t.use(ctx, call, tool, c)
	if err != nil || u.Person.ID == "" {
		return err
	}
	if _, ok := tool.Caller.(filing); ok {
		u.Target = grant.FolderOf(u.Target)
	}
	// A person of another portal has no page here on which to take a decision back, so it ends with the conversation.
	here := a == prompt.AlwaysHere || u.Person.Kind == string(ident.Portal)
	return t.grants.Remember(ctx, u, a != prompt.Never, here)
}

// Forget implements prompt.Grants. People of other portals have no page here and take decisions back by it.
func (t *Tools) Forget(ctx context.Context, call task.Call) error {
	p := personOf(call)
	if p.ID == "" {
		return nil
	}
	return t.grants.Forget(ctx, p, call.Agent.ID, call.ConversationID)
}

package app

import (
	"context"
	"fmt"
	"strings"

	"agentsite/agentruntime/assistant"
	"agentsite/agentruntime/builtin"
	"agentsite/agentruntime/bundle"
	"agentsite/agentruntime/conformance"
	"agentsite/agentruntime/goals"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/team"
	"agentsite/internal/usage"
)

// newTeams builds the service of goals.
func (p *Portal) newTeams() *team.Service {
	t := teamPorts{p}
	return team.New(team.Ports{Speaker: p.drivers.lead, Store: p.db.Teams, Directory: t, Conversations: t, People: t},
		team.Config{Running: int(p.set.Bounds.Work.GoalsPerAccount), Log: p.log})
}

// workDrivers returns the drivers by kind with the agent team, which has goals as tasks. Instant answers come from the
// inner driver of built-in agents, which has no goals.
func (p *Portal) workDrivers() map[hub.Kind]task.Agent {
	all := p.drivers.byKind()
	all[hub.Prompt] = p.keeper.Wrap(all[hub.Prompt], p.drivers.prompt)
	for _, kind := range []hub.Kind{hub.Wasm, hub.A2A, hub.Link} {
		all[kind] = p.keeper.Wrap(all[kind], nil)
	}
	all[hub.Builtin] = goals.New(p.drivers.build, func() goals.Teams { return p.teams }, p.url.String()+"/goals")
	return all
}

// builtinDrafts describes the built-in agents of every portal.
func builtinDrafts() []hub.Draft { return append(builtin.Drafts(), goals.Draft()) }

// registerBuiltins registers the built-in agents that the settings ask for and hides the others.
func (p *Portal) registerBuiltins(ctx context.Context) error {
	drafts := builtinDrafts()
	if !p.set.Bare {
		drafts = append(drafts, bundle.Drafts()...)
	}
	for _, optional := range []struct {
		draft hub.Draft
		on    bool
	}{{conformance.Draft(), p.set.Conformance}, {assistant.NewDraft(), namedModels{p.models}.hasDefault()}} {
		if optional.on {
			drafts = append(drafts, optional.draft)
		} else if err := p.hub.RetireBuiltin(ctx, *optional.draft.Name); err != nil {
			return err
		}
	}
	for _, d := range drafts {
		if err := p.hub.EnsureBuiltin(ctx, d); err != nil {
			return fmt.Errorf("register built-in agents: %w", err)
		}
	}
	return nil
}

// teamPorts implements the ports of package team with the services of the portal.
type teamPorts struct{ portal *Portal }

// Search implements team.Directory. Goals go on at the start of the portal before the directory is loaded, and would
// find no agents.
func (t teamPorts) Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error) {
	select {
	case <-t.portal.loaded:
	case <-ctx.Done():
		return hub.Page{}, ctx.Err()
	}
	q.Private = true
	return t.portal.hub.Search(ctx, actor, q)
}

// Callable implements team.Directory.
func (t teamPorts) Callable(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error) {
	return acted(t).Callable(ctx, actor, name)
}

// Ask implements team.Conversations.
func (t teamPorts) Ask(ctx context.Context, actor ident.Actor, a chat.Ask) (chat.Asked, error) {
	return t.portal.chats.Ask(ctx, actor, a)
}

// Post implements team.Conversations.
func (t teamPorts) Post(ctx context.Context, actor ident.Actor, id string, d chat.Draft) (chat.Posted, error) {
	return t.portal.chats.Post(ctx, actor, id, d)
}

// AwaitTask implements team.Conversations.
func (t teamPorts) AwaitTask(ctx context.Context, actor ident.Actor, k task.Task) (task.Task, chat.Message, error) {
	return t.portal.chats.Asides.Await(ctx, actor, k)
}

// StopTask implements team.Conversations.
func (t teamPorts) StopTask(ctx context.Context, actor ident.Actor, id, reason string) error {
	return t.portal.chats.StopTask(ctx, actor, id, reason)
}

// Archive implements team.Conversations.
func (t teamPorts) Archive(ctx context.Context, actor ident.Actor, id string) error {
	return t.portal.db.Chat.SetMine(ctx, id, string(ident.Person), actor.ID, chat.Mine{Archived: true})
}

// TaskOf implements team.Conversations.
func (t teamPorts) TaskOf(ctx context.Context, actor ident.Actor, agent, clientID string) (task.Task, error) {
	a, err := t.portal.hub.Callable(ctx, actor, agent)
	if err != nil {
		return task.Task{}, err
	}
	id, err := t.portal.db.Chat.FirstAsked(ctx, chat.FirstAsk{CallerID: actor.ID, AgentID: a.ID, ClientID: clientID})
	if err != nil {
		return task.Task{}, err
	}
	m, err := t.portal.db.Chat.Said(ctx, id, actor.ID, clientID)
	if err != nil {
		return task.Task{}, err
	}
	return t.portal.db.Chat.TaskAsked(ctx, id, m.Seq)
}

// AskPerson implements team.Conversations. The person is invited as to any conversation, and may have blocked the
// actor.
func (t teamPorts) AskPerson(ctx context.Context, actor ident.Actor, person, title, text string) (conversationID string,
	seq int64, err error) {
	if r := []rune(title); len(r) > chat.MaxTitleRunes {
		title = string(r[:chat.MaxTitleRunes-1]) + "…"
	}
	c, err := t.portal.chats.Create(ctx, actor, title, []string{person})
	if err != nil {
		return "", 0, err
	}
	p, err := t.portal.chats.Post(ctx, actor, c.ID, chat.Draft{ClientID: ident.NewID(), Face: "goal",
		Parts: []task.Part{task.TextPart(text)}})
	return c.ID, p.Message.Seq, err
}

// AwaitPerson implements team.Conversations.
func (t teamPorts) AwaitPerson(ctx context.Context, actor ident.Actor, person, conversationID string,
	after int64) (string, error) {
	sub, err := t.portal.chats.Subscribe(ctx, actor, conversationID, after)
	if err != nil {
		return "", err
	}
	defer sub.Close()
	for {
		u, err := sub.Next(ctx)
		if err != nil {
			return "", err
		}
		m := u.Message
		if m == nil || m.Kind != chat.Text || m.Sender.Kind != string(ident.Person) || m.Sender.Handle != person {
			continue
		}
		if text := strings.TrimSpace(task.PlainText(m.Parts)); text != "" {
			return text, nil
		}
	}
}

// IsPerson implements team.People.
func (t teamPorts) IsPerson(ctx context.Context, name string) (bool, error) {
	a, err := t.portal.db.Accounts.AccountByName(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && !a.Disabled(), err
}

// RootOf implements team.Conversations. A question of an agent names the task that it belongs to in its client id.
func (t teamPorts) RootOf(ctx context.Context, taskID string) (clientID, callerID string, err error) {
	for range task.MaxChain + 1 {
		face, caller, asked, err := t.portal.db.Tasks.AskedAs(ctx, taskID)
		switch { // only the portal gives these faces
		case err != nil:
			return "", "", err
		case face == "goal":
			return asked, caller, nil
		case face != "agent" && face != chat.FaceRelay:
			return "", "", nil
		}
		taskID, _, _ = strings.Cut(asked, "/")
	}
	return "", "", nil
}

// workMeter counts the usage of models, and adds it to the goals for which they worked.
type workMeter struct{ portal *Portal }

// Count implements usage.Meter.
func (m workMeter) Count(ctx context.Context, c usage.Call) {
	p := m.portal
	p.usage.Count(ctx, c)
	if c.TaskID == "" || c.CallerKind != string(ident.Person) {
		return
	}
	cost := p.prices.Cost(c.Model, c.Price, c.Input, c.Output)
	if err := p.teams.Spend(ctx, c.TaskID, c.Input+c.Output, cost); err != nil && !fault.Is(err, fault.NotFound) {
		p.log.Warn("add the cost of a model to a goal", "task", c.TaskID, "error", err)
	}
}

// MayAct implements team.People.
func (t teamPorts) MayAct(ctx context.Context, accountID string) (bool, error) {
	a, err := t.portal.db.Accounts.AccountByID(ctx, accountID)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && !a.Disabled(), err
}

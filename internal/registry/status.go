package registry

import (
	"context"
	"slices"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// SetReleaseStatus changes the status of one version of a published server, or of all versions if
// version is empty. A nil message clears the earlier one. The status of the server's agent follows.
// Publishers of the server and the operator may do this. When an operator without the right to
// publish deletes the whole server, only the operator can restore it.
func (s *Service) SetReleaseStatus(ctx context.Context, actor ident.Actor, name, version, status string,
	message *string) ([]Release, error) {
	right, err := s.mayRelease(ctx, actor, name)
	if err != nil && !(fault.Is(err, fault.Forbidden) && hub.RequireOperator(actor) == nil) {
		return nil, err
	}
	var c fault.Check
	c.Field(slices.Contains([]string{ReleaseActive, ReleaseDeprecated, ReleaseDeleted}, status), "status",
		"expected value to be one of active, deprecated, deleted")
	c.Field(message == nil || utf8.RuneCountInString(*message) <= maxReleaseMessage, "statusMessage",
		"expected length <= %d", maxReleaseMessage)
	if err := c.Err(); err != nil {
		return nil, err
	}
	text := ""
	if message != nil {
		text = plaintext.Clean(*message)
	}
	if status == ReleaseActive && message != nil {
		return nil, fault.New(fault.Invalid, "status_message cannot be provided when setting status to active")
	}
	if wait, ok := s.agents.AllowStore("status "+actor.ID+actor.Name, 0); !ok {
		return nil, fault.Limited(wait, "You changed very much in a short time. Wait a while.")
	}
	if err := s.retried(ctx, name, func() (Change,
		error) {
		return s.planStatus(ctx, actor, right, name, version, status, text)
	}); err != nil {
		return nil, err
	}
	return s.store.Releases(ctx, Filter{Name: name, Version: version, Deleted: true, Limit: maxReleases})
}

func (s *Service) planStatus(ctx context.Context, actor ident.Actor, right grant, name, version, status,
	text string) (Change, error) {
	server, err := s.store.Server(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return Change{}, errNoServer()
	}
	if err != nil {
		return Change{}, err
	}
	agent, err := s.agentOf(ctx, server)
	if err != nil {
		return Change{}, err
	}
	if agent != nil && right.own && !agent.MayEdit(actor) {
		return Change{}, fault.New(fault.Forbidden, "You do not have publish or edit permissions for this server")
	}
	over := right == (grant{}) || right.own && agent != nil && !agent.OwnedBy(actor)
	if !over && (server.Held || agent != nil && agent.Status.Held) {
		return Change{}, errHeld(name)
	}
	was := server.Held
	if over && version == "" {
		server.Held = status == ReleaseDeleted
	}
	list, err := s.heads(ctx, name)
	if err != nil {
		return Change{}, err
	}
	c := Change{Server: server, Status: status, Message: text, At: clock.Now(), Author: actor}
	found, changed := false, false
	for i := range list {
		r := &list[i]
		if version != "" && r.Version != version {
			continue
		}
		found = true
		changed = changed || r.Status != status || r.Message != text
		c.Set = append(c.Set, r.Version)
		r.Status, r.Message = status, text
	}
	if !found {
		return Change{}, fault.New(fault.NotFound, "Server version not found")
	}
	latest := latestOf(list)
	c.Latest = latest.Version
	err = s.lead(ctx, actor, right, &c, agent, *latest)
	if err == nil && over && agent != nil {
		c.hold(*agent, server.Held || agent.Status.Held)
	}
	if err == nil && !changed && c.Agent == nil && server.Held == was {
		err = fault.New(fault.Invalid, "No changes to apply: status and message are already set to the provided values")
	}
	return c, err
}

// hold adds to a change whether the operator withdrew the server's agent. While held is true its
// owner cannot restore it.
func (c *Change) hold(agent hub.Agent, held bool) {
	next := agent
	if c.Agent != nil {
		next = *c.Agent
	}
	held = held && next.Status.State == hub.Withdrawn
	if next.Status.Held == held {
		return
	}
	if c.Agent == nil {
		c.Base = agent.Version
		next.Version, next.UpdatedAt, next.Note = agent.Version+1, c.At, "Withdrawn by the operator"
	}
	next.Status.Held = held
	c.Agent = &next
}

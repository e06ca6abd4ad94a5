package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// releaseTries bounds the attempts to save a change while concurrent changes make it stale.
const releaseTries = 4

// PublishRelease publishes a version of a server in the MCP registry; a version can be published
// once. If the latest version of a server has an address that this portal can call, the server is
// also an agent of kind mcp: the agent is created with the first such version and has the content
// of the latest one. The publisher needs a proof of the server's domain, but no account. An agent
// published without an account has no owner, and only the operator may edit it.
func (s *Service) PublishRelease(ctx context.Context, actor ident.Actor, r Release) (Release, error) {
	right, err := s.mayRelease(ctx, actor, r.Name)
	if err != nil {
		return Release{}, err
	}
	if r.Version == "" || r.Version == "latest" || len(r.Version) > maxReleaseVersion || !utf8.ValidString(r.Version) {
		return Release{}, fault.New(fault.Invalid, "A version has 1 to %d characters and is not the word latest.",
			maxReleaseVersion)
	}
	if len(r.Document) == 0 || len(r.Document) > MaxDocument {
		return Release{}, fault.New(fault.Invalid, "server.json may take at most %d KiB.", MaxDocument>>10)
	}
	who := actor.ID
	if !actor.IsPerson() {
		who = right.site
	}
	if wait, ok := s.agents.AllowStore(who, len(r.Document)); !ok {
		return Release{}, fault.Limited(wait, "You published very much in a short time. Wait a while.")
	}
	err = s.retried(ctx, r.Name, func() (Change, error) {
		c, err := s.planPublish(ctx, actor, right, r)
		if err == nil {
			r = *c.Add
			r.Latest = c.Latest == r.Version
		}
		return c, err
	})
	if err != nil {
		return Release{}, err
	}
	// A deleted server or one with a private agent is not listed, so the release may not be found.
	// Then r is returned as it was saved.
	if now, err := s.oneRelease(ctx, Filter{Name: r.Name, Version: r.Version, Deleted: true}); !fault.Is(err,
		fault.NotFound) {
		return now, err
	}
	return r, nil
}

// retried plans a change and saves it. When a concurrent change made the plan stale, it plans
// again, up to releaseTries times, and then returns an Unavailable fault.
func (s *Service) retried(ctx context.Context, name string, plan func() (Change, error)) error {
	for range releaseTries {
		c, err := plan()
		if err != nil {
			return err
		}
		err = s.store.SaveRelease(ctx, c)
		if errors.Is(err, ErrStale) {
			continue
		}
		if err != nil {
			return err
		}
		if c.Agent != nil {
			s.agents.AfterChange(ctx, *c.Agent)
		}
		s.cfg.Log.Info("server published or its status changed", "server", name, "latest", c.Latest, "agent",
			c.Server.AgentID, "actor_kind", c.Author.Kind, "actor", c.Author.Name)
		return nil
	}
	return fault.New(fault.Unavailable, "%s is being changed by somebody else. Try again in a moment.", name)
}

func (s *Service) planPublish(ctx context.Context, actor ident.Actor, right grant, r Release) (Change, error) {
	now := clock.Now()
	r.Status, r.PublishedAt, r.StatusAt, r.UpdatedAt = ReleaseActive, now, now, now
	server, agent, err := s.serverFor(ctx, actor, right, r.Name)
	if err != nil {
		return Change{}, err
	}
	before, err := s.heads(ctx, r.Name)
	if err != nil {
		return Change{}, err
	}
	if slices.ContainsFunc(before, func(b Release) bool { return b.Version == r.Version }) {
		return Change{}, fault.New(fault.Conflict,
			"invalid version: cannot publish duplicate version: %s@%s already exists. A version is published once; publish this one under another.", r.Name, r.Version)
	}
	size := len(r.Document)
	for _, b := range before {
		size += b.Size
	}
	if len(before) >= maxReleases || size > maxServerBytes {
		return Change{}, fault.New(fault.Conflict,
			"%s has %d versions that take %d KiB; a server has at most %d, of %d KiB together.", r.Name, len(before),
			size>>10, maxReleases, maxServerBytes>>10)
	}
	if server.Revision == 0 {
		if n, err := s.store.CountServers(ctx, right.site); err != nil {
			return Change{}, err
		} else if n >= maxServers {
			return Change{}, fault.New(fault.Conflict, "You published %d servers already, and more are not taken.", n)
		}
	}
	c := Change{Server: server, Add: &r, At: now, Author: actor}
	latest := latestOf(append(before, r))
	c.Latest = latest.Version
	if latest.Version == r.Version {
		err = s.lead(ctx, actor, right, &c, agent, r)
	} else if agent == nil && right.own {
		err = errNoRemote(r.Name)
	}
	return c, err
}

// serverFor returns the server of a name and its agent, nil for none. A name that is not published
// yet gives a Server with Revision 0. It returns a fault if the operator withdrew the server, or
// its agent was removed or is not the actor's.
func (s *Service) serverFor(ctx context.Context, actor ident.Actor, right grant,
	name string) (Server, *hub.Agent, error) {
	server, err := s.store.Server(ctx, name)
	if fault.Is(err, fault.NotFound) {
		server, err = Server{Name: name, Site: right.site}, nil
	}
	if err == nil && server.Held {
		err = errHeld(name)
	}
	if err != nil {
		return Server{}, nil, err
	}
	if !right.own {
		a, err := s.agentOf(ctx, server)
		if err == nil && a != nil && a.Status.Held {
			err = errHeld(name)
		}
		return server, a, err
	}
	// Under the portal's namespace the part after the slash is the agent's name, so the right to
	// edit the agent decides.
	_, short, _ := strings.Cut(name, "/")
	a, err := s.store.AgentByName(ctx, short)
	if fault.Is(err, fault.NotFound) {
		if server.AgentID != "" {
			return Server{}, nil, errRemoved(name)
		}
		return server, nil, nil
	}
	switch {
	case err != nil:
		return Server{}, nil, err
	case !a.MayEdit(actor) || server.AgentID != "" && server.AgentID != a.ID:
		return Server{}, nil, fault.New(fault.Forbidden,
			"The name %s is taken on this portal. Publish under another, or with the token of its owner.", short)
	case a.Kind != hub.MCP:
		return Server{}, nil, fault.New(fault.Conflict,
			"%s is an agent of kind %s; only those of kind %s are in the MCP registry.", short, a.Kind, hub.MCP)
	case a.Status.Held:
		return Server{}, nil, errHeld(name)
	}
	return server, &a, nil
}

// agentOf returns the agent of a published server, nil for a server without one, and a Conflict
// fault if the agent was removed.
func (s *Service) agentOf(ctx context.Context, server Server) (*hub.Agent, error) {
	if server.AgentID == "" {
		return nil, nil
	}
	a, err := s.store.AgentByID(ctx, server.AgentID)
	if fault.Is(err, fault.NotFound) {
		return nil, errRemoved(server.Name)
	}
	return &a, err
}

func errRemoved(name string) error {
	return fault.New(fault.Conflict, "%s was removed from this portal, and what is removed is not given again. Publish under another name.", name)
}

func errHeld(name string) error {
	return fault.New(fault.Forbidden, "The operator of this portal withdrew %s; ask them to give it back.", name)
}

func errNoRemote(name string) error {
	return fault.New(fault.Invalid, "%s is a name of this portal's own namespace, for servers that this portal can call: give a remote of type streamable-http with a fixed address.", name)
}

// lead adds to a change the update of the server's agent to its latest release: new content,
// another status, or a new agent. It leaves c.Agent nil if nothing changes. agent is the present
// one, nil for none.
func (s *Service) lead(ctx context.Context, actor ident.Actor, right grant, c *Change, agent *hub.Agent,
	latest Release) error {
	now := c.At
	switch {
	case latest.Status == ReleaseDeleted:
		if agent == nil || agent.Status.State == hub.Withdrawn {
			return nil
		}
		return c.status(*agent, hub.Status{State: hub.Withdrawn, Message: latest.Message},
			"Deleted from the MCP registry")
	case latest.Endpoint == "" && agent == nil:
		if right.own {
			return errNoRemote(latest.Name)
		}
		return nil // without an address the server is only listed in the registry, for installing
	case latest.Endpoint == "":
		return c.status(*agent, hub.Status{State: hub.Deprecated,
			Message: cutRunes("Version "+latest.Version+" has no address: install it. This is an earlier version.",
				300)}, "Version "+cutRunes(latest.Version, 100)+" has no address")
	}
	kind, visibility := hub.MCP, hub.Public
	d := hub.Draft{Title: &latest.Title, Description: &latest.Description, Endpoint: &latest.Endpoint, Kind: &kind,
		Status: &hub.Status{State: latest.Status, Message: cutRunes(latest.Message, 300)}}
	if c.Add != nil || agent == nil {
		d.Visibility = &visibility // a new release makes the agent public
	}
	if agent == nil {
		a := hub.Agent{ID: ident.NewID(), Version: 1, CreatedAt: now, UpdatedAt: now,
			Liveness: hub.Liveness{State: hub.Unknown, Reason: "Not checked yet."}}
		if actor.IsPerson() && right != (grant{}) {
			a.OwnerID, a.OwnerName = actor.ID, actor.Name
			if n, err := s.store.CountAgents(ctx, actor.ID); err != nil {
				return err
			} else if n >= hub.MaxAgentsPerOwner {
				return fault.New(fault.Conflict, "You have %d agents already; remove one first.", hub.MaxAgentsPerOwner)
			}
		}
		name, err := s.freeName(ctx, right, latest.Name)
		if err != nil {
			return err
		}
		a.Publisher, d.Name = right.domain, &name
		if err := s.agents.ApplyDraft(ctx, d, &a); err != nil {
			return err
		}
		a.Note = releaseNote(latest.Version)
		c.Agent, c.Server.AgentID = &a, a.ID
		return nil
	}
	next := *agent
	if right.domain != "" && (next.OwnerID == "" || next.OwnerID == actor.ID) {
		next.Publisher = right.domain
	}
	if next.Endpoint != latest.Endpoint {
		next.Skills, next.Config = nil, authHeaderOf(next) // another address: its description is read again
	}
	if err := s.agents.ApplyDraft(ctx, d, &next); err != nil {
		return err
	}
	c.Server.AgentID = agent.ID
	if c.Add == nil && len(hub.Diff(*agent, next)) == 0 && agent.Status == next.Status {
		return nil // without this check each change of a status would add a version to the agent's history
	}
	c.Sealed = hub.KeepSecret(*agent, &next)
	next.Version, next.UpdatedAt, next.Note = agent.Version+1, now, releaseNote(latest.Version)
	c.Agent, c.Base = &next, agent.Version
	return nil
}

// status adds to a change a version of an agent with another status and no other difference. An
// agent that has the status already is left as it is.
func (c *Change) status(a hub.Agent, to hub.Status, note string) error {
	if a.Status == to {
		return nil
	}
	c.Base = a.Version
	a.Status, a.Version, a.UpdatedAt, a.Note = to, a.Version+1, c.At, note
	c.Agent = &a
	return nil
}

// freeName returns a name for the agent of a server: the part after the slash under the portal's
// namespace, else the first free one of agentNames. It returns a Conflict fault if all are taken.
func (s *Service) freeName(ctx context.Context, right grant, name string) (string, error) {
	_, short, _ := strings.Cut(name, "/")
	if right.own {
		if err := ident.CheckName(short); err != nil {
			return "", fault.New(fault.Invalid, "The part after the slash is the agent's name on this portal: %s.", err)
		}
		taken, err := s.store.NameTaken(ctx, short)
		if err == nil && taken {
			err = fault.New(fault.Conflict, "The name %s is taken on this portal. Choose another.", short)
		}
		return short, err
	}
	for _, n := range agentNames(name) {
		if taken, err := s.store.NameTaken(ctx, n); err != nil || !taken {
			return n, err
		}
	}
	return "", fault.New(fault.Conflict, "No name is free on this portal for an agent of %s. Publish under another name.", name)
}

func releaseNote(version string) string {
	return fmt.Sprintf("Version %s of the MCP registry", cutRunes(plaintext.OneLine(version), 200))
}

// authHeaderOf returns the settings of an agent reduced to the name of the header for the
// credential, the one field that its owner set; nil without it.
func authHeaderOf(a hub.Agent) json.RawMessage {
	var had hub.MCPConfig
	if json.Unmarshal(a.Config, &had) != nil || had.AuthHeader == "" {
		return nil
	}
	b, err := json.Marshal(hub.MCPConfig{AuthHeader: had.AuthHeader})
	if err != nil {
		return nil
	}
	return b
}

func cutRunes(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}

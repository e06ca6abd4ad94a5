package hub

import (
	"context"
	"net/url"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// maxSuggest is the number of suggestions for an incomplete query.
const maxSuggest = 8

// Suggest returns completions of an incomplete query of at most 200 bytes.
func (s *Service) Suggest(_ context.Context, actor ident.Actor, text string) ([]Suggestion, error) {
	if !actor.May(ident.AgentsRead) {
		return nil, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	var c fault.Check
	c.Field(len(text) <= 200, "q", "use at most 200 characters")
	if err := c.Err(); err != nil {
		return nil, err
	}
	return s.index.Suggest(text, maxSuggest), nil
}

// History returns the last exchanges with an agent that the actor may see, oldest first.
func (s *Service) History(ctx context.Context, actor ident.Actor, name string) ([]Contact, error) {
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return nil, err
	}
	return s.HistoryOf(ctx, a)
}

// HistoryOf is History for an agent that the caller got from Get, without another access check.
func (s *Service) HistoryOf(ctx context.Context, a Agent) ([]Contact, error) {
	if a.Elsewhere() {
		return []Contact{}, nil // The portal of the agent keeps its history.
	}
	return s.store.History(ctx, a.ID)
}

// NameFree reports whether a new agent can have the name: it is valid, it does not look like one of the portal's own
// agents, and no agent of this portal has or ever had it. The rate is limited, because the answer reveals private
// agents.
func (s *Service) NameFree(ctx context.Context, actor ident.Actor, name string) (bool, error) {
	if err := RequireWriter(actor); err != nil {
		return false, err
	}
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	if ident.CheckName(name) != nil || s.Names.Resembles(name) != "" {
		return false, nil
	}
	if wait, ok := s.looks.Allow(actor.ID); !ok {
		return false, fault.Limited(wait, "You looked at very many names in a short time. Wait a moment.")
	}
	taken, err := s.store.NameTaken(ctx, name)
	return !taken && err == nil, err
}

// Reread reads the description at the address that the draft gives the named agent. It sends the draft's
// credential or, if the address has the same origin as the stored one, the stored credential.
func (s *Service) Reread(ctx context.Context, actor ident.Actor, name string, d Draft) (Described, error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return Described{}, err
	}
	t := Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config}
	assign(&t.Kind, d.Kind)
	if d.Endpoint != nil {
		t.Endpoint = strings.TrimSpace(*d.Endpoint)
	}
	switch {
	case d.Secret != nil:
		t.Secret = *d.Secret
	case a.HasSecret && originOf(a.Endpoint) == originOf(t.Endpoint):
		if now, secret, err := s.Open(ctx, a.ID); err == nil && now.Version == a.Version {
			t.Secret = secret
		}
	}
	described, _, err := s.readTarget(ctx, actor, t)
	return described, err
}

// originOf returns scheme, host and port of an address; credentials are bound to it.
func originOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Scheme + "://" + u.Host
}

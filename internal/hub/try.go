package hub

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Trier runs an agent once outside of conversations, without storing anything.
type Trier interface {
	Try(ctx context.Context, actor ident.Actor, a Agent, secret, text string) (Tried, error)
}

// Tried is the result of a trial call; nothing of it is stored.
type Tried struct {
	State string // a task state: completed, failed, input_required …
	Text  string
	// Reason explains a State other than completed.
	Reason string
	Took   time.Duration
	Log    []string // lines of a hosted program, with its trap
}

const (
	maxTry     = 4000 // characters
	tryTimeout = 50 * time.Second
	// maxTrying is the number of concurrent trial calls on this portal.
	maxTrying = 64
)

// Try calls a draft before it is published or, with a name, the actor's agent with the draft applied.
// The draft's credential is used or, if it has none and the address has the same origin, the stored one.
func (s *Service) Try(ctx context.Context, actor ident.Actor, name string, d Draft, text string) (Tried, error) {
	a, secret, err := s.applyUnsaved(ctx, actor, name, d)
	if err != nil {
		return Tried{}, err
	}
	if !isOwner(actor, a) { // An operator who is no owner tries the agent with their own rights to tools.
		if err := s.tools.mayUse(ctx, actor, Agent{}, a); err != nil {
			return Tried{}, err
		}
	}
	text = strings.TrimSpace(text)
	var c fault.Check
	c.Field(text != "", "try", "write something to say to it")
	c.Field(utf8.RuneCountInString(text) <= maxTry, "try", "use at most %d characters", maxTry)
	c.Field(a.Kind != Link, "try", "a linked agent is tried after it has dialled in")
	if err := c.Err(); err != nil {
		return Tried{}, err
	}
	if a.Status.Held {
		return Tried{}, fault.New(fault.Forbidden, "The operator of this portal withdrew %s; it takes no work.", a.Name)
	}
	if wait, ok := s.tries.Allow(actor.ID); !ok {
		return Tried{}, fault.Limited(wait, "You tried much in a short time. Wait a moment.")
	}
	select {
	case s.trying <- struct{}{}:
		defer func() { <-s.trying }()
	default:
		return Tried{}, fault.Limited(5*time.Second, "Many people try agents right now. Wait a moment.")
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	began := time.Now()
	t, err := s.trier.Try(ctx, actor, a, secret, text)
	t.Took = time.Since(began)
	return t, err
}

// Preview returns the agent as it would be after publishing the draft or, with a name, after editing
// that agent. Every field is checked; nothing is stored.
func (s *Service) Preview(ctx context.Context, actor ident.Actor, name string, d Draft) (Agent, error) {
	a, _, err := s.applyUnsaved(ctx, actor, name, d)
	return a, err
}

// applyUnsaved applies a draft without storing anything. It returns the agent and the credential to use for it.
func (s *Service) applyUnsaved(ctx context.Context, actor ident.Actor, name string, d Draft) (Agent, string, error) {
	if err := RequireWriter(actor); err != nil {
		return Agent{}, "", err
	}
	a := Agent{ID: ident.NewID(), OwnerID: actor.ID, OwnerName: actor.Name, Version: 1,
		Liveness: Liveness{State: Unknown, Reason: "Not checked yet."}}
	secret, before := "", ""
	var was Agent
	if name != "" {
		var err error
		if a, err = s.ownedAgent(ctx, actor, name); err != nil {
			return Agent{}, "", err
		}
		d.Name = nil
		before = a.Endpoint
		was = a
	}
	if name == "" { // The description of an existing agent was read at its registration.
		var err error
		if d, err = s.consultAddress(ctx, actor, d); err != nil {
			return Agent{}, "", err
		}
	}
	if err := s.ApplyDraft(ctx, d, &a); err != nil {
		return Agent{}, "", err
	}
	if err := s.tools.mayUse(ctx, actor, was, a); err != nil {
		return Agent{}, "", err
	}
	switch {
	case d.Secret != nil:
		secret = *d.Secret
	case name != "" && a.HasSecret && originOf(before) == originOf(a.Endpoint):
		if now, stored, err := s.Open(ctx, a.ID); err == nil && now.Version == a.Version {
			secret = stored
		}
	}
	return a, secret, nil
}

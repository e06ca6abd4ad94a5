package hub

import (
	"context"
	"crypto/subtle"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// Update stores a new version of an agent that the actor may change. A draft without changes stores
// nothing and returns the agent as it is. A Conflict fault if BaseVersion is outdated.
func (s *Service) Update(ctx context.Context, actor ident.Actor, name string, d Draft) (Agent, error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if d.Name != nil && strings.ToLower(strings.TrimSpace(*d.Name)) != a.Name {
		return Agent{}, &fault.Error{Kind: fault.Invalid,
			Safe:   "A name cannot be changed, because others know the agent by it.",
			Fields: map[string]string{"name": "cannot be changed; register a new agent instead"}}
	}
	if d.BaseVersion != 0 && d.BaseVersion != a.Version {
		return Agent{}, errStale(d.BaseVersion, a.Version)
	}
	if err := s.mayStatus(actor, a, d); err != nil {
		return Agent{}, err
	}
	next := a
	if d.onlyStatus() {
		// A change of status alone skips the other checks, so that withdrawing works even if stored
		// content breaks newer rules.
		next.Status = *d.Status
		next.Status.Message, next.Status.Held = plaintext.Clean(next.Status.Message), a.Status.Held
		if err := checkStatus(next.Status); err != nil {
			return Agent{}, err
		}
	} else if err := s.ApplyDraft(ctx, d, &next); err != nil {
		return Agent{}, err
	}
	if err := s.tools.mayUse(ctx, actor, a, next); err != nil {
		return Agent{}, err
	}
	// Only the operator gets here with a changed status of a held agent. If an operator withdraws an
	// agent of another owner, the agent is held.
	next.Status.Held = next.Status.State == Withdrawn &&
		(a.Status.Held || a.Status.State != Withdrawn && !isOwner(actor, a))
	sealed := KeepSecret(a, &next)
	switch {
	case d.Secret != nil && *d.Secret == "" && a.HasSecret:
		sealed, next.HasSecret = []byte{}, false
	case d.Secret != nil && *d.Secret != "" && sealed == nil && s.knowsSecret(ctx, a, *d.Secret):
		// The same credential is no change, so no version is stored.
	case d.Secret != nil && *d.Secret != "":
		sealed, next.HasSecret = s.sealer.Seal(*d.Secret, a.ID), true
	}
	if sealed == nil && len(Diff(a, next)) == 0 && a.Status == next.Status {
		return a, nil
	}
	note := d.noteLine()
	if note == "" && a.Status.State != next.Status.State {
		note = map[string]string{Active: "Published", Deprecated: "Marked as deprecated",
			Withdrawn: "Withdrawn"}[next.Status.State]
	}
	published := a.Status.State == StatusDraft && next.Status.State == Active
	moved := a.Endpoint != next.Endpoint || a.Kind != next.Kind
	if next, err = s.saveVersion(ctx, actor, next, a.Version, sealed, note); err != nil {
		return Agent{}, err
	}
	if next.Status.Held && !a.Status.Held {
		s.dropConnections(next.ID)
		s.Notices.NotifyOwners(ctx, next, Notice{Kind: NoticeHeld,
			Text: "The operator of this portal withdrew " + next.Name + ". " + next.Status.Message})
	}
	if published {
		s.cfg.Log.Info("agent published", "agent", next.ID, "name", next.Name)
	}
	if sealed == nil && !moved && !published && string(a.Config) == string(next.Config) {
		return next, nil // The address is unchanged, so the known liveness stays valid.
	}
	return s.checkNow(ctx, next), nil
}

// knowsSecret reports whether secret is the stored credential of the agent; the comparison takes constant time.
func (s *Service) knowsSecret(ctx context.Context, a Agent, secret string) bool {
	if !a.HasSecret {
		return false
	}
	sealed, err := s.store.SealedSecret(ctx, a.ID)
	if err != nil {
		return false
	}
	stored, err := s.sealer.Open(sealed, a.ID)
	return err == nil && subtle.ConstantTimeCompare([]byte(stored), []byte(secret)) == 1
}

// mayStatus returns a fault if the draft changes the status in a way that the actor may not: a held
// agent is for the operator, and a published agent cannot become a draft again.
func (s *Service) mayStatus(actor ident.Actor, a Agent, d Draft) error {
	if d.Status == nil || d.Status.State == a.Status.State && d.Status.Message == a.Status.Message {
		return nil
	}
	if a.Status.Held && !(actor.IsOperator() && actor.May(ident.Admin)) {
		return fault.New(fault.Forbidden, "The operator of this portal withdrew %s; ask them to give it back.", a.Name)
	}
	if d.Status.State == StatusDraft && a.Status.State != StatusDraft {
		return fault.Field("status", "it was published already; withdraw it instead")
	}
	return nil
}

// Delete removes an agent; its owner or the operator may. The name stays taken for ever, so that it
// cannot be used to impersonate the agent.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, name string) error {
	a, err := s.givenAgent(ctx, actor, name)
	if err != nil {
		return err
	}
	if err := s.store.DeleteAgent(ctx, a.ID); err != nil {
		return err
	}
	s.unindexAgent(a.ID)
	s.dropConnections(a.ID)
	s.cfg.Log.Info("agent removed", "agent", a.ID, "name", a.Name)
	return nil
}

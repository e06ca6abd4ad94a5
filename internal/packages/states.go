package packages

import (
	"context"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// SetState changes the state of a version of the actor: Deprecated, Withdrawn or Killed, with a note for its users.
// Operators may change all versions of their portal.
func (s *Service) SetState(ctx context.Context, actor ident.Actor, name, version string, to State,
	note string) (Package, error) {
	if err := requireAuthor(actor); err != nil {
		return Package{}, err
	}
	note = record.CleanLine(note)
	if len(note) > maxNote {
		return Package{}, fault.Field("note", "use at most 300 characters")
	}
	if to == Killed && note == "" {
		return Package{}, fault.Field("note", "say why it must not run, for those who host it")
	}
	if err := s.beginChange(ctx); err != nil {
		return Package{}, err
	}
	defer s.endChange()
	p, ok := s.ownVersion(name, version)
	if !ok || p.AccountID != actor.ID && (!actor.IsOperator() || !actor.May(ident.Admin)) {
		return Package{}, errNoPackage(name)
	}
	switch {
	case p.State == to && p.Note == note:
		return p, nil
	case p.State == Killed, p.State == Withdrawn && to != Killed:
		return Package{}, fault.New(fault.Conflict, "Version %s of %s is %s, which is final.", version, name, p.State)
	}
	p.State, p.Note, p.UpdatedAt = to, note, clock.Now()
	if err := s.cfg.Store.SetState(ctx, actor, p); err != nil {
		return Package{}, err
	}
	s.mu.Lock()
	s.own[p.ID] = &p
	s.mu.Unlock()
	s.cfg.Changed()
	return p, nil
}

const maxNote = 300

func errNoPackage(name string) error {
	return fault.New(fault.NotFound, "There is no package %.80q here.", name)
}

// ownVersion returns a version of this portal; "latest" is the newest.
func (s *Service) ownVersion(name, version string) (Package, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found *Package
	for _, p := range s.own {
		if p.Name == name && (p.Version == version || version == Latest && (found == nil || isNewer(p, found))) {
			found = p
		}
	}
	if found == nil {
		return Package{}, false
	}
	return *found, true
}

func requireOperator(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in as an operator.")
	}
	if !actor.IsOperator() || !actor.May(ident.Admin) {
		return fault.New(fault.Forbidden, "Only operators may do that.")
	}
	return nil
}

// maxKills bounds the kill notices of operators.
const maxKills = 10_000

// PutKill stops a module on this portal. Programs that run it end at their next call.
func (s *Service) PutKill(ctx context.Context, actor ident.Actor, hash, reason string) (Kill, error) {
	if err := requireOperator(actor); err != nil {
		return Kill{}, err
	}
	hash, reason = strings.TrimPrefix(strings.TrimSpace(hash), "sha256:"), record.CleanLine(reason)
	var c fault.Check
	_, ok := record.HashFromHex(hash)
	c.Field(ok && hash == strings.ToLower(hash), "hash", "use the SHA-256 of the module, 64 hexadecimal digits")
	c.Field(reason != "" && len(reason) <= maxNote, "reason", "say why, in 1 to %d characters", maxNote)
	if err := c.Err(); err != nil {
		return Kill{}, err
	}
	if err := s.beginChange(ctx); err != nil {
		return Kill{}, err
	}
	defer s.endChange()
	k := Kill{hash, reason, clock.Now()}
	s.mu.RLock()
	full := len(s.kills) >= maxKills
	s.mu.RUnlock()
	if full {
		return Kill{}, fault.New(fault.Conflict, "There are %d notices, which is the most.", maxKills)
	}
	if err := s.cfg.Store.PutKill(ctx, actor, k); err != nil {
		return Kill{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kills[hash] = k
	return k, nil
}

// DeleteKill lets a module run again.
func (s *Service) DeleteKill(ctx context.Context, actor ident.Actor, hash string) error {
	if err := requireOperator(actor); err != nil {
		return err
	}
	if err := s.beginChange(ctx); err != nil {
		return err
	}
	defer s.endChange()
	if err := s.cfg.Store.DeleteKill(ctx, actor, hash); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kills, hash)
	return nil
}

// CheckRun returns a Forbidden fault if a module must not run: by an operator of this portal, or by the portal that
// publishes the package it came from. The word of any other portal stops nothing.
func (s *Service) CheckRun(hash, sourcePortal string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if k, ok := s.kills[hash]; ok {
		return fault.New(fault.Forbidden, "was stopped by the operator of this portal: %s", k.Reason)
	}
	if sourcePortal == "" {
		return nil
	}
	if reason, ok := s.noticeFrom(sourcePortal, hash); ok {
		return fault.New(fault.Forbidden, "was stopped by its author's portal: %s", reason)
	}
	return nil
}

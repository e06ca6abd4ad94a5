package packages

import (
	"context"
	"slices"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Run is an agent that runs a package.
type Run struct {
	Agent    string          // handle, without the portal for an agent of this one
	PortalID record.PortalID // of the agent
	Package  record.PackageRun
}

// recordOf returns the record of a package without its header.
func recordOf(p *Package) *record.Agent {
	module, _ := record.HashFromHex(p.Module)
	a := &record.Agent{ID: strings.ToLower(p.ID), Name: p.Name, Kind: record.KindPackage, Description: p.Summary,
		Languages: p.Languages, Created: clock.Milli(p.CreatedAt), Updated: clock.Milli(p.UpdatedAt), Owner: p.Author,
		Package: &record.Package{Version: p.Version, Licence: p.Licence, Entry: p.Entry, Module: module, Size: p.Size,
			MemoryMiB: p.Limits.MemoryMiB, Seconds: p.Limits.Seconds, Readme: p.Readme}}
	if len(a.Languages) == 0 {
		a.Languages = nil
	}
	for _, g := range p.Grants {
		a.Package.Grants = append(a.Package.Grants, record.PackageGrant(g))
	}
	switch p.State {
	case Deprecated:
		a.Status, a.StatusNote = record.StatusDeprecated, p.Note
	case Killed:
		a.Status, a.StatusNote, a.Package.State = record.StatusDeprecated, p.Note, record.PackageKilled
	}
	return a
}

// Record implements publish.Packages: the record of a package of this portal by its id there, nil if it has none.
func (s *Service) Record(local string) *record.Agent {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.own[strings.ToUpper(local)]
	if p == nil || p.State == Withdrawn {
		return nil
	}
	return recordOf(p)
}

// Records implements publish.Packages: the records of all packages of this portal.
func (s *Service) Records() []*record.Agent {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*record.Agent, 0, len(s.own))
	for _, p := range s.own {
		if p.State != Withdrawn {
			list = append(list, recordOf(p))
		}
	}
	return list
}

// RunOf implements publish.Packages: the package that an agent of this portal runs, nil for none.
func (s *Service) RunOf(ctx context.Context, agentID string) *record.PackageRun {
	program, err := s.cfg.Programs.ProgramOf(ctx, agentID)
	m, ok := s.cfg.Modules.Find(program.OwnerID, program.Module)
	hash, valid := record.HashFromHex(program.Module)
	if err != nil || !ok || !valid || m.Source.Name == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.runs[s.cfg.Self], agentID)
		return nil
	}
	r := record.PackageRun{Name: m.Source.Name, Version: m.Source.Version, Portal: record.PortalID(m.Source.Portal),
		Module: hash}
	s.mu.Lock()
	defer s.mu.Unlock()
	putEntry(s.runs, s.cfg.Self, agentID, Run{Agent: program.Name, PortalID: s.cfg.Self, Package: r})
	return &r
}

// Bounds of the records of one other portal, and of portals, that are kept here.
const (
	maxOfPortal = 1000
	maxPortals  = 10_000
)

// putEntry adds a value to those of a portal, within the bounds.
func putEntry[V any](to map[record.PortalID]map[string]V, portal record.PortalID, id string, v V) {
	of := to[portal]
	switch {
	case of == nil && len(to) >= maxPortals, len(of) >= maxOfPortal:
		return
	case of == nil:
		of = make(map[string]V)
		to[portal] = of
	}
	of[id] = v
}

// TakeRecord implements catalog.Packages: it takes a record of another portal that a gate admitted, of a package or of
// an agent, which may run one. The record replaces the earlier one of the same id. The notice in a killed package is
// kept, also after the record is gone.
func (s *Service) TakeRecord(host string, verified bool, a *record.Agent) {
	id := a.AgentID()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.remote[a.Portal], id)
	delete(s.runs[a.Portal], id)
	switch {
	case a.Package != nil:
		p := packageOf(host, verified, a)
		putEntry(s.remote, a.Portal, id, &p)
		s.takeNotice(&p)
	case a.Runs != nil:
		putEntry(s.runs, a.Portal, id, Run{Agent: a.Name + "@" + host, PortalID: a.Portal, Package: *a.Runs})
	}
}

// packageOf returns the package in a record. Its texts are checked by the record.
func packageOf(host string, verified bool, a *record.Agent) Package {
	r := a.Package
	p := Package{ID: a.AgentID(), Portal: host, PortalID: string(a.Portal), Verified: verified, Author: a.Owner,
		Module: r.Module.Hex(), Size: r.Size, Readme: r.Readme, State: Published, Note: a.StatusNote,
		CreatedAt: clock.FromMilli(a.Created), UpdatedAt: clock.FromMilli(a.Updated)}
	p.Manifest = Manifest{Name: a.Name, Version: r.Version, Summary: record.CleanLine(a.Description), Licence: r.Licence,
		Entry: r.Entry, Limits: Limits{r.MemoryMiB, r.Seconds}, Languages: slices.Clone(a.Languages)}
	for _, g := range r.Grants {
		p.Grants = append(p.Grants, Grant(g))
	}
	switch {
	case r.State == record.PackageKilled:
		p.State = Killed
	case a.Status == record.StatusDeprecated:
		p.State = Deprecated
	}
	return p
}

// DropRecords implements catalog.Packages: the records of a portal with these network ids are gone.
func (s *Service) DropRecords(portal record.PortalID, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.remote[portal], id)
		delete(s.runs[portal], id)
	}
}

// DropPortal implements catalog.Packages: a portal is not shown any more.
func (s *Service) DropPortal(portal record.PortalID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.remote, portal)
	delete(s.runs, portal)
}

// Runs returns the agents that are known to run a package of the portal, in order of their handles. Some may be gone
// since, or not be shown to everyone: the caller looks each up.
func (s *Service) Runs(p *Package) []Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []Run
	for _, of := range s.runs {
		for _, r := range of {
			if r.Package.Name == p.Name && string(r.Package.Portal) == p.PortalID {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(list, func(a, b Run) int { return strings.Compare(a.Agent, b.Agent) })
	return list
}

// PackageOf returns the package that an agent runs: one of this portal by its owner and module, another one by its
// network id. handle is empty if it runs none that is known.
func (s *Service) PackageOf(ownerID, module, networkID string) (handle, version string) {
	var r record.PackageRun
	if m, ok := s.cfg.Modules.Find(ownerID, module); ok {
		r = record.PackageRun{Name: m.Source.Name, Version: m.Source.Version, Portal: record.PortalID(m.Source.Portal)}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if portal, _, ok := strings.Cut(networkID, "/"); ok {
		r = s.runs[record.PortalID(portal)][networkID].Package
	}
	for _, p := range s.packagesOf(r.Portal) {
		if p.Name == r.Name && p.Version == r.Version && p.State != Withdrawn {
			return p.Handle(), p.Version
		}
	}
	return "", ""
}

package packages

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// Latest stands for the newest version that may be hosted.
const Latest = "latest"

// Ref names a package: name[@portal][/version].
type Ref struct{ Name, Portal, Version string }

// ParseRef reads a reference. A portal that is this one is left out.
func (s *Service) ParseRef(text string) (Ref, error) {
	text = strings.TrimSpace(text)
	rest, version, _ := strings.Cut(text, "/")
	name, portal, _ := strings.Cut(rest, "@")
	portal = strings.ToLower(portal)
	if portal == strings.ToLower(s.cfg.Host) {
		portal = ""
	}
	if ident.CheckForm(name) != nil || len(text) > 400 || version != "" && !validVersion(version) {
		return Ref{}, fault.Field("package", "use name, name@portal or name@portal/version")
	}
	return Ref{name, portal, version}, nil
}

// maxFound bounds the packages of one page.
const maxFound = 100

// Query selects packages.
type Query struct {
	Text  string
	After string // cursor of the page before
	Limit int
}

// List returns the newest version of each package that the actor may see and that has all words of the query, best
// first: those with the words in their name, then by name. next is the cursor of the next page.
func (s *Service) List(actor ident.Actor, q Query) (list []Package, next string, err error) {
	if !actor.May(ident.AgentsRead) {
		return nil, "", fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	words := strings.Fields(strings.ToLower(q.Text))
	newest := make(map[string]*Package)
	s.mu.RLock()
	for p := range s.allPackages() {
		key := p.Name + "@" + p.PortalID
		if have := newest[key]; p.State != Withdrawn && (have == nil || isNewer(p, have)) {
			newest[key] = p
		}
	}
	for _, p := range newest {
		if hasWords(p, words) {
			list = append(list, *p)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(list, func(a, b Package) int {
		return cmp.Or(rankMatch(&a, words)-rankMatch(&b, words), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Portal, b.Portal))
	})
	if q.After != "" {
		at := slices.IndexFunc(list, func(p Package) bool { return p.Handle() == q.After })
		if at < 0 {
			return nil, "", fault.Field("cursor", "is of another search; begin again")
		}
		list = list[at+1:]
	}
	if q.Limit > maxFound {
		return nil, "", fault.New(fault.Invalid, "limit is at most %d.", maxFound)
	}
	if q.Limit <= 0 {
		q.Limit = maxFound
	}
	if len(list) > q.Limit {
		list = list[:q.Limit]
		next = list[len(list)-1].Handle()
	}
	return list, next, nil
}

// allPackages yields the packages of this and of other portals. The caller holds mu.
func (s *Service) allPackages() iter.Seq[*Package] {
	return func(yield func(*Package) bool) {
		for _, p := range s.own {
			if !yield(p) {
				return
			}
		}
		for _, list := range s.remote {
			for _, p := range list {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// packagesOf returns the packages of one portal. The caller holds mu.
func (s *Service) packagesOf(portal record.PortalID) map[string]*Package {
	if portal == s.cfg.Self {
		return s.own
	}
	return s.remote[portal]
}

// isNewer reports whether p stands for its package rather than have: usable versions first, then releases, then the
// higher version.
func isNewer(p, have *Package) bool {
	pre := func(p *Package) bool { return semver.Prerelease("v"+p.Version) != "" }
	switch {
	case p.Usable() != have.Usable():
		return p.Usable()
	case pre(p) != pre(have):
		return !pre(p)
	}
	return compareVersions(p, have) < 0
}

func hasWords(p *Package, words []string) bool {
	text := strings.ToLower(p.Name + " " + p.Summary + " " + p.Readme + " " + p.Author + " " + p.Portal)
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func rankMatch(p *Package, words []string) int {
	for _, w := range words {
		if !strings.Contains(p.Name, w) {
			return 1
		}
	}
	return 0
}

// Versions returns the versions of a package, the newest first. Withdrawn ones are shown to their author only. It is a
// NotFound fault if there is none, and a Conflict fault if several portals claim the host; see claimants.
func (s *Service) Versions(actor ident.Actor, ref Ref) ([]Package, error) {
	if !actor.May(ident.AgentsRead) {
		return nil, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	var list []Package
	s.mu.RLock()
	portals := s.claimants(ref.Portal)
	for p := range s.allPackages() {
		if p.Name == ref.Name && p.Portal == ref.Portal && slices.Contains(portals, p.PortalID) &&
			(p.State != Withdrawn || p.AccountID == actor.ID) && (ref.Version == "" || p.Version == ref.Version) {
			list = append(list, *p)
		}
	}
	s.mu.RUnlock()
	if len(list) == 0 {
		return nil, errNoPackage(ref.Name)
	}
	if len(portals) > 1 {
		return nil, fault.New(fault.Conflict, "Several portals claim to be %.260s. One of them must be verified first.",
			ref.Portal)
	}
	slices.SortFunc(list, func(a, b Package) int { return compareVersions(&a, &b) })
	return list, nil
}

// claimants returns the ids of the portals with packages that are at a host: only verified ones if there are such.
// Of more than two it returns two. The caller holds mu.
func (s *Service) claimants(host string) []string {
	var verified, others []string
	for p := range s.allPackages() {
		to := &others
		if p.Verified {
			to = &verified
		}
		if p.Portal == host && len(*to) < 2 && !slices.Contains(*to, p.PortalID) {
			*to = append(*to, p.PortalID)
		}
	}
	if len(verified) > 0 {
		return verified
	}
	return others
}

// Find returns one version of a package: the newest that may be hosted if the reference names none.
func (s *Service) Find(actor ident.Actor, ref Ref) (Package, error) {
	list, err := s.Versions(actor, ref)
	if err != nil {
		return Package{}, err
	}
	best := &list[0]
	for i := range list {
		if isNewer(&list[i], best) {
			best = &list[i]
		}
	}
	return *best, nil
}

// ReadModule returns the module of a package if it is on this portal, and counts the download.
func (s *Service) ReadModule(ctx context.Context, actor ident.Actor, ref Ref) (Package, []byte, error) {
	p, err := s.Find(actor, ref)
	if err != nil {
		return Package{}, nil, err
	}
	if !p.Usable() && p.AccountID != actor.ID {
		return Package{}, nil, fault.New(fault.NotFound, "Version %s of %s is %s.", p.Version, p.Name, p.State)
	}
	data, err := s.readModule(ctx, &p)
	if fault.Is(err, fault.NotFound) && p.Portal != "" {
		err = fault.New(fault.NotFound, "This portal does not have the module of %s. Ask %s.", p.Handle(), p.Portal)
	}
	if err == nil && p.Portal == "" {
		err = s.countDownload(ctx, p.ID)
	}
	return p, data, err
}

// readModule returns the bytes of a package's module that are on this portal. Another portal can publish the hash of a
// private program here, so it is a NotFound fault unless the program is of that package, or is published here.
func (s *Service) readModule(ctx context.Context, p *Package) ([]byte, error) {
	if !s.isModuleOf(p) && !s.isPublished(p.Module) {
		return nil, fault.New(fault.NotFound, "This portal does not have the module of %s.", p.Handle())
	}
	return s.cfg.Modules.ReadModule(ctx, p.Module)
}

// isModuleOf reports whether the author of an own package has its module here, or an account has it from the package.
func (s *Service) isModuleOf(p *Package) bool {
	return s.cfg.Modules.HasModule(p.Module, func(m hosting.Module) bool {
		return p.AccountID != "" && m.AccountID == p.AccountID || m.Source.Portal == p.PortalID && m.Source.Name == p.Name
	})
}

// isPublished reports whether a package of this portal that may be hosted has the module.
func (s *Service) isPublished(hash string) bool {
	var found []*Package
	s.mu.RLock()
	for _, p := range s.own {
		if p.Module == hash && p.Usable() {
			found = append(found, p)
		}
	}
	s.mu.RUnlock()
	return slices.ContainsFunc(found, s.isModuleOf)
}

func (s *Service) countDownload(ctx context.Context, id string) error {
	if err := s.beginChange(ctx); err != nil {
		return err
	}
	defer s.endChange()
	if err := s.cfg.Store.CountDownload(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.own[id]; p != nil {
		next := *p
		next.Downloads++
		s.own[id] = &next
	}
	return nil
}

// ModuleFor returns a module for another portal: only one of a package that may be hosted; see readModule.
func (s *Service) ModuleFor(ctx context.Context, hash string) ([]byte, error) {
	var found []*Package // those of this portal first
	s.mu.RLock()
	_, killed := s.kills[hash]
	for p := range s.allPackages() {
		if p.Module == hash && p.Usable() {
			found = append(found, p)
		}
	}
	s.mu.RUnlock()
	i := slices.IndexFunc(found, s.isModuleOf)
	if i < 0 || killed {
		return nil, fault.New(fault.NotFound, "There is no package with this module here.")
	}
	data, err := s.cfg.Modules.ReadModule(ctx, hash)
	if err == nil && found[i].Portal == "" {
		err = s.countDownload(ctx, found[i].ID)
	}
	return data, err
}

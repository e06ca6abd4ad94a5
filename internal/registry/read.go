package registry

import (
	"context"
	"strings"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// Releases lists the MCP registry of this portal, by name and version: published releases, and the
// public agents of kind mcp that were registered instead. more is true when there is another page.
func (s *Service) Releases(ctx context.Context, actor ident.Actor, f Filter) (list []Release, more bool, err error) {
	if !actor.May(ident.AgentsRead) {
		return nil, false, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	var c fault.Check
	c.Field(f.Limit >= 1 && f.Limit <= maxReleasePage, "limit", "use 1 to %d", maxReleasePage)
	c.Field(f.Search == "" || utf8.RuneCountInString(strings.TrimSpace(f.Search)) >= 3, "search",
		"search must contain at least 3 characters after trimming surrounding whitespace")
	c.Field(len(f.Search) <= maxReleaseName, "search", "use at most %d characters", maxReleaseName)
	c.Field(len(f.Version) <= maxReleaseVersion, "version", "use at most %d characters", maxReleaseVersion)
	c.Field(len(f.AfterName) <= maxReleaseName && len(f.AfterVersion) <= maxReleaseVersion, "cursor",
		"is not a cursor of this list")
	if err := c.Err(); err != nil {
		return nil, false, err
	}
	f.Namespace = s.Namespace()
	most := f.Limit
	f.Limit++
	if list, err = s.store.Releases(ctx, f); err != nil {
		return nil, false, err
	}
	list, more = cutPage(list, most)
	return list, more, nil
}

// pageBytes bounds the documents on one page: it ends with the release that exceeds it.
const pageBytes = 512 << 10

// cutPage cuts a list to most releases and to pageBytes.
func cutPage(list []Release, most int) (page []Release, more bool) {
	size := 0
	for i, r := range list {
		if i == most || size > pageBytes {
			return list[:i], true
		}
		size += len(r.Document) + len(r.Description)
	}
	return list, false
}

// ReleasesOf lists the versions of one server, deleted ones only with deleted set; a NotFound fault
// if there are none.
func (s *Service) ReleasesOf(ctx context.Context, actor ident.Actor, name string, deleted bool) ([]Release, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) {
		return nil, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	list, err := s.store.Releases(ctx, Filter{Name: name, Deleted: deleted, Limit: maxReleases,
		Namespace: s.Namespace()})
	if err == nil && len(list) == 0 {
		err = errNoServer()
	}
	return list, err
}

// Release returns one version of a server, its latest one for "latest"; a NotFound fault if there
// is none. Deleted ones are found only with deleted set.
func (s *Service) Release(ctx context.Context, actor ident.Actor, name, version string, deleted bool) (Release, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) {
		return Release{}, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	f := Filter{Name: name, Version: version, Deleted: deleted}
	if version == "latest" {
		f.Version, f.Latest = "", true
	}
	return s.oneRelease(ctx, f)
}

func (s *Service) oneRelease(ctx context.Context, f Filter) (Release, error) {
	f.Limit, f.Namespace = 1, s.Namespace()
	list, err := s.store.Releases(ctx, f)
	if err == nil && len(list) == 0 {
		err = errNoServer()
	}
	if err != nil {
		return Release{}, err
	}
	return list[0], nil
}

// ServerName returns the name of an agent in the MCP registry, "" when the agent is not listed
// there.
func (s *Service) ServerName(ctx context.Context, a hub.Agent) (string, error) {
	if a.Kind != hub.MCP || !a.Listable() {
		return "", nil
	}
	r, err := s.oneRelease(ctx, Filter{Agent: a.Name, Latest: true})
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return r.Name, err
}

func errNoServer() error { return fault.New(fault.NotFound, "Server not found") }

// heads returns all versions of a published server without their documents, deleted ones included.
func (s *Service) heads(ctx context.Context, name string) ([]Release, error) {
	return s.store.Releases(ctx, Filter{Name: name, Deleted: true, Brief: true, Limit: maxReleases})
}

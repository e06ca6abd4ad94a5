package packages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// Installed is a package that an account may run now, and the settings of an agent that runs it.
type Installed struct {
	Package Package
	Module  string
	Tools   []string // of the grants find and ask
	Model   bool     // the grant model was given
	Hosts   []string
}

// Install fetches the module of a package if it is not here, verifies it, and puts it among the programs of the actor.
// given are the grants that the actor gives; nil if they were not asked, which is a fault if the package needs some.
func (s *Service) Install(ctx context.Context, actor ident.Actor, text string, given *[]string) (Installed, error) {
	if err := requireAuthor(actor); err != nil {
		return Installed{}, err
	}
	if err := s.cfg.Modules.MayUpload(ctx, actor); err != nil {
		return Installed{}, err
	}
	ref, err := s.ParseRef(text)
	if err != nil {
		return Installed{}, err
	}
	p, err := s.Find(actor, ref)
	if fault.Is(err, fault.NotFound) {
		return Installed{}, fault.Field("package", "is not known here; use name, name@portal or name@portal/version")
	}
	if err != nil {
		return Installed{}, err
	}
	out := Installed{Package: p, Module: p.Module}
	if err := s.checkInstall(&p); err != nil {
		return Installed{}, err
	}
	if err := out.giveGrants(given); err != nil {
		return Installed{}, err
	}
	data, err := s.readModule(ctx, &p)
	if fault.Is(err, fault.NotFound) {
		data, err = s.fetchModule(ctx, &p)
	}
	if err != nil {
		return Installed{}, err
	}
	if _, err := s.cfg.Modules.Upload(ctx, actor, p.Name+"-"+p.Version+".wasm", data); err != nil {
		return Installed{}, err
	}
	source := hosting.Source{Name: p.Name, Version: p.Version, Portal: p.PortalID}
	return out, s.cfg.Modules.NameSource(ctx, actor.ID, p.Module, source)
}

// checkInstall returns a fault if a version may not be hosted here.
func (s *Service) checkInstall(p *Package) error {
	if err := s.CheckRun(p.Module, p.PortalID); err != nil {
		return fault.Field("package", fault.As(err).Safe)
	}
	var c fault.Check
	c.Field(p.Usable(), "package", "version %s is %s", p.Version, p.State)
	c.Field(p.Entry == "run", "package", "has the entry %q, which this portal cannot call", p.Entry)
	c.Field(p.Limits.MemoryMiB <= s.cfg.Bounds.MemoryMiB && p.Limits.Seconds <= s.cfg.Bounds.Seconds, "package",
		"needs more memory or time than programs have here: %d MiB and %d s", s.cfg.Bounds.MemoryMiB, s.cfg.Bounds.Seconds)
	for _, g := range p.Grants {
		c.Field(knownGrant(g.Name), "package", "needs the grant %.80q, which this portal does not know", g.Name)
	}
	return c.Err()
}

// giveGrants sorts the given grants, each of which the manifest must name.
func (i *Installed) giveGrants(given *[]string) error {
	needs := i.Package.Grants
	if given == nil && len(needs) > 0 {
		list := make([]string, len(needs))
		for n, g := range needs {
			list[n] = g.Name + " (" + g.Why + ")"
		}
		return fault.Field("grants",
			"the package asks for "+strings.Join(list, "; ")+"; name those that you give, [] for none")
	}
	i.Tools, i.Hosts = []string{}, []string{}
	if given == nil {
		return nil
	}
	for _, name := range *given {
		name = readGrant(name)
		if !slices.ContainsFunc(needs, func(g Grant) bool { return g.Name == name }) {
			return fault.Field("grants", "the package does not ask for "+name)
		}
		host, isHost := strings.CutPrefix(name, HostGrant)
		switch {
		case isHost:
			i.Hosts = append(i.Hosts, host)
		case name == "model":
			i.Model = true
		default:
			i.Tools = append(i.Tools, name)
		}
	}
	return nil
}

// Config returns settings of an agent with the module and the granted functions. The settings keep the rest, and the
// name of a model if that is granted.
func (i *Installed) Config(have map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	model := ""
	if i.Model {
		model = "default"
		if raw, ok := have["model"]; ok && json.Unmarshal(raw, &model) != nil {
			return nil, fault.Field("config.model", "is no text")
		}
	}
	out := maps.Clone(have)
	if out == nil {
		out = make(map[string]json.RawMessage)
	}
	for name, v := range map[string]any{"module": i.Module, "tools": i.Tools, "hosts": i.Hosts, "model": model} {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out[name] = b
	}
	return out, nil
}

// ConfigOf returns the settings of an agent that runs a module with all grants of a manifest.
func ConfigOf(m *Manifest, module string) (map[string]json.RawMessage, error) {
	i := Installed{Package: Package{Manifest: *m}, Module: module}
	given := []string{}
	for _, g := range m.Grants {
		given = append(given, g.Name)
	}
	if err := i.giveGrants(&given); err != nil {
		return nil, err
	}
	return i.Config(nil)
}

// fetchTime bounds the time in which all portals that have a module are asked, and each of them.
const (
	fetchTime     = 2 * time.Minute
	fetchTimeEach = 30 * time.Second
	maxSources    = 8
)

// fetchModule gets a module by its hash from the portal of the author, or from another one that runs it.
func (s *Service) fetchModule(ctx context.Context, p *Package) ([]byte, error) {
	if s.cfg.Fetcher == nil {
		return nil, fault.New(fault.Unavailable, "This portal is in no network.")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	for _, portal := range s.sourcesOf(p) {
		each, stop := context.WithTimeout(ctx, fetchTimeEach)
		data, err := s.cfg.Fetcher.FetchModule(each, portal, p.Module, p.Size)
		stop()
		// A portal that sends anything else counts as one that does not have it.
		if sum := sha256.Sum256(data); err == nil && hex.EncodeToString(sum[:]) == p.Module {
			return data, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fault.New(fault.Unavailable, "No portal that has the module of %s could be reached. Try again later.",
		p.Handle())
}

// sourcesOf returns the portals that have the module of a package: that of the author first, then those that run it.
func (s *Service) sourcesOf(p *Package) []record.PortalID {
	list := []record.PortalID{record.PortalID(p.PortalID)}
	for _, r := range s.Runs(p) {
		if r.Package.Module.Hex() == p.Module && r.PortalID != s.cfg.Self && !slices.Contains(list, r.PortalID) &&
			len(list) < maxSources {
			list = append(list, r.PortalID)
		}
	}
	return list
}

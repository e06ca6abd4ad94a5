// Package packages keeps the packages of this portal, which are versions of hosted programs that others may run, and
// knows those of other portals from their records. It fetches a module by its hash from any portal that has it,
// verifies it, and puts it among the programs of the account that hosts it. It does not run programs, and does not
// sign or send records.
package packages

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/semver"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/plaintext"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
)

// Manifest describes a package. It is our own format.
type Manifest struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Summary   string   `json:"summary"`
	Licence   string   `json:"licence"`
	Entry     string   `json:"entry"`
	Grants    []Grant  `json:"grants"`
	Limits    Limits   `json:"limits"`
	Languages []string `json:"languages"`
}

// Grant is a function of the portal that a program needs, and the reason for operators. Name is find, ask, memory,
// library, model, or host: with a host, for example host:api.example.org.
type Grant struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// HostGrant begins the name of a grant for requests to a host.
const HostGrant = "host:"

// Limits bound the need of one run of a program; 0 leaves it open. A portal with lower bounds does not host it.
type Limits struct {
	MemoryMiB int64 `json:"memory_mib,omitempty"`
	Seconds   int64 `json:"seconds,omitempty"`
}

// State is the state of a version.
type State string

// The states. Killed and Withdrawn are final.
const (
	Published  State = "published"
	Deprecated State = "deprecated" // works, but something else should be used
	Withdrawn  State = "withdrawn"  // is offered no more; hosted copies may go on
	Killed     State = "killed"     // must not run any more
)

// Package is one version of a package.
type Package struct {
	Manifest
	ID        string // a ULID for those of this portal, else the network id of its record
	Portal    string // host of its portal; empty for this one
	PortalID  string
	Verified  bool   // the portal was verified at its host
	AccountID string // of the author; empty for other portals
	Author    string // name of the account
	Module    string // SHA-256 in lower-case hexadecimal
	Size      int64
	Readme    string
	State     State
	Note      string // on the state
	Downloads int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Handle returns the name, with the portal if it is another one.
func (p *Package) Handle() string {
	if p.Portal == "" {
		return p.Name
	}
	return p.Name + "@" + p.Portal
}

// Usable reports whether the version may be hosted anew.
func (p *Package) Usable() bool { return p.State == Published || p.State == Deprecated }

// Kill is an operator's order, or the word of another portal, that a module must not run.
type Kill struct {
	Hash      string
	Reason    string
	CreatedAt time.Time
}

// Store stores the packages of this portal, and the kill notices of its operators and of other portals.
type Store interface {
	AllPackages(ctx context.Context) ([]Package, error)
	// AddPackage adds a version. It is a Conflict fault if it is there, or if the name is another account's.
	AddPackage(ctx context.Context, p Package) error
	// SetState changes the state of a version.
	SetState(ctx context.Context, by ident.Actor, p Package) error
	CountDownload(ctx context.Context, id string) error
	Kills(ctx context.Context) ([]Kill, error)
	PutKill(ctx context.Context, by ident.Actor, k Kill) error
	DeleteKill(ctx context.Context, by ident.Actor, hash string) error
	// Notices returns the kill notices of other portals.
	Notices(ctx context.Context) ([]Notice, error)
	// SaveNotices adds or replaces notices of other portals by portal and hash, and removes others, in one transaction.
	SaveNotices(ctx context.Context, put, removed []Notice) error
}

// Modules holds the programs of accounts. hosting.Service implements it.
type Modules interface {
	MayUpload(ctx context.Context, actor ident.Actor) error
	Find(accountID, hash string) (hosting.Module, bool)
	HasModule(hash string, ok func(hosting.Module) bool) bool
	Upload(ctx context.Context, actor ident.Actor, name string, data []byte) (hosting.Module, error)
	ReadModule(ctx context.Context, hash string) ([]byte, error)
	// NameSource notes from which package a module of an account is.
	NameSource(ctx context.Context, accountID, hash string, source hosting.Source) error
}

// Fetcher asks other portals for modules.
type Fetcher interface {
	// FetchModule returns the module with that hash from a portal, at most size bytes. It need not verify it.
	FetchModule(ctx context.Context, portal record.PortalID, hash string, size int64) ([]byte, error)
}

// Program is an agent of this portal that is a hosted program.
type Program struct{ Name, OwnerID, Module string }

// Programs knows the hosted programs of this portal.
type Programs interface {
	ProgramOf(ctx context.Context, agentID string) (Program, error)
}

// Config holds the dependencies of a Service. Fetcher may be nil without a network.
type Config struct {
	Store   Store
	Modules Modules
	// Programs is not called before the portal serves.
	Programs Programs
	Fetcher  Fetcher
	Host     string // of this portal
	Self     record.PortalID
	// Bounds are those of the sandbox.
	Bounds Limits
	// Changed is called after a package of this portal changed. It must not block.
	Changed func()
	Log     *slog.Logger
}

// Service keeps packages. Create it with New, call Load and keep Run running; it is safe for concurrent use.
type Service struct {
	cfg     Config
	writes  *limit.Keyed
	changes chan struct{} // held while packages of this portal change
	noticed chan struct{} // wakes Run

	noticesLoaded bool // guarded by the turn of changes

	mu      sync.RWMutex // guards the fields below
	own     map[string]*Package
	remote  map[record.PortalID]map[string]*Package // by network id
	runs    map[record.PortalID]map[string]Run      // by the portal and the network id of the agent
	kills   map[string]Kill
	notices noticeBook // of other portals
}

// New returns a service without packages.
func New(cfg Config) *Service {
	return &Service{cfg: cfg, writes: limit.New(time.Second, 100, 10_000), changes: make(chan struct{}, 1),
		noticed: make(chan struct{}, 1), notices: newNoticeBook(), own: make(map[string]*Package),
		remote: make(map[record.PortalID]map[string]*Package), runs: make(map[record.PortalID]map[string]Run),
		kills: make(map[string]Kill)}
}

// Load reads the packages of this portal and the kill notices. It may be called again, after the erasure of an account.
func (s *Service) Load(ctx context.Context) error {
	if err := s.beginChange(ctx); err != nil {
		return err
	}
	defer s.endChange()
	list, err := s.cfg.Store.AllPackages(ctx)
	if err != nil {
		return err
	}
	kills, err := s.cfg.Store.Kills(ctx)
	if err != nil {
		return err
	}
	if err := s.loadNotices(ctx); err != nil {
		return err
	}
	if s.replaceOwn(list, kills) {
		s.cfg.Changed()
	}
	return nil
}

// replaceOwn replaces the packages of this portal and the kill notices, and reports whether packages changed.
func (s *Service) replaceOwn(list []Package, kills []Kill) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.own
	s.own, s.kills = make(map[string]*Package), make(map[string]Kill)
	for _, p := range list {
		p.PortalID, p.Verified = string(s.cfg.Self), true
		s.own[p.ID] = &p
		was := before[p.ID]
		changed = changed || was == nil || was.State != p.State || was.Note != p.Note || was.Author != p.Author
	}
	for _, k := range kills {
		s.kills[k.Hash] = k
	}
	return changed || len(s.own) != len(before)
}

func (s *Service) beginChange(ctx context.Context) error {
	select {
	case s.changes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Service) endChange() { <-s.changes }

// Bounds of a manifest.
const (
	maxSummary   = 250 // characters; records allow 1 KiB
	maxLanguages = 20
	// maxVersions bounds the versions of one account.
	maxVersions = 500
)

// CheckManifest cleans a manifest and reports its errors. The command line checks by it before it builds.
func CheckManifest(m *Manifest, bounds Limits) error {
	var c fault.Check
	// The page of a package with the name new would be the form.
	c.Field(ident.CheckForm(m.Name) == nil && m.Name != "new", "name",
		"use 2 to 40 of a–z, 0–9 and -, beginning with a letter")
	c.Field(validVersion(m.Version), "version", "use a version such as 1.0.0 or 1.1.0-rc.1")
	m.Summary, m.Licence = record.CleanLine(m.Summary), record.CleanLine(m.Licence)
	c.Field(m.Summary != "" && len([]rune(m.Summary)) <= maxSummary, "summary",
		"describe the program in 1 to %d characters", maxSummary)
	c.Field(m.Licence != "" && len(m.Licence) <= record.MaxLicence, "licence",
		"name the licence, for example MIT or Apache-2.0")
	if m.Entry == "" {
		m.Entry = "run"
	}
	c.Field(m.Entry == "run", "entry", "must be run: portals call no other function")
	c.Field(len(m.Grants) <= record.MaxGrants, "grants", "name at most %d", record.MaxGrants)
	seen := make(map[string]bool)
	for i := range m.Grants {
		g := &m.Grants[i]
		g.Name, g.Why = readGrant(strings.ToLower(record.CleanLine(g.Name))), record.CleanLine(g.Why)
		c.Field(knownGrant(g.Name) && !seen[g.Name], "grants",
			"%.80q is unknown or named twice; use find, ask, memory, library, model, or host: with a host", g.Name)
		c.Field(g.Why != "" && len(g.Why) <= record.MaxGrantReason, "grants",
			"say for operators why it needs %.80q, in at most %d bytes", g.Name, record.MaxGrantReason)
		seen[g.Name] = true
	}
	c.Field(m.Limits.MemoryMiB >= 0 && m.Limits.MemoryMiB <= bounds.MemoryMiB, "limits", "memory_mib is 0 to %d",
		bounds.MemoryMiB)
	c.Field(m.Limits.Seconds >= 0 && m.Limits.Seconds <= bounds.Seconds, "limits", "seconds is 0 to %d", bounds.Seconds)
	languages := plaintext.CleanList(m.Languages, true)
	c.Field(len(languages) <= maxLanguages, "languages", "name at most %d", maxLanguages)
	for i, l := range languages {
		languages[i] = strings.ToLower(l)
		c.Field(record.ValidTag(languages[i], record.MaxLanguage), "languages",
			"%.80q is no language; write for example en", l)
	}
	slices.Sort(languages)
	m.Languages = slices.Compact(languages)
	return c.Err()
}

func validVersion(v string) bool {
	return len(v) <= record.MaxVersion && strings.Count(v, ".") >= 2 && semver.IsValid("v"+v) &&
		semver.Build("v"+v) == "" && v == strings.ToLower(v)
}

// readGrant returns the name of a grant as manifests have it: a host in the form of DNS.
func readGrant(name string) string {
	if host, ok := strings.CutPrefix(name, HostGrant); ok {
		return HostGrant + weborigin.ReadHost(host)
	}
	return name
}

func knownGrant(name string) bool {
	if host, ok := strings.CutPrefix(name, HostGrant); ok {
		return len(name) <= record.MaxGrant && record.ValidOrigin("https://"+host)
	}
	return slices.Contains([]string{"find", "ask", "memory", "library", "model"}, name)
}

// compareVersions orders versions, the newest first.
func compareVersions(a, b *Package) int { return semver.Compare("v"+b.Version, "v"+a.Version) }

// requireAuthor returns a fault for an actor without the scope.
func requireAuthor(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in to publish packages.")
	}
	if !actor.May(ident.AgentsWrite) {
		return fault.New(fault.Forbidden, "%s", ident.AgentsWrite.DescribeMissing())
	}
	return nil
}

// Draft is a version to be published.
type Draft struct {
	Manifest
	Module string
	Readme string
}

// Publish adds a version with a module that the actor uploaded. Versions do not change afterwards.
func (s *Service) Publish(ctx context.Context, actor ident.Actor, d Draft) (Package, error) {
	if err := requireAuthor(actor); err != nil {
		return Package{}, err
	}
	if err := s.cfg.Modules.MayUpload(ctx, actor); err != nil {
		return Package{}, err
	}
	if err := s.CheckDraft(actor, &d); err != nil {
		return Package{}, err
	}
	if wait, ok := s.writes.Allow(actor.ID); !ok {
		return Package{}, fault.Limited(wait, "You publish packages too fast.")
	}
	m, _ := s.cfg.Modules.Find(actor.ID, d.Module) // was checked
	now := clock.Now()
	p := Package{Manifest: d.Manifest, ID: ident.NewID(), PortalID: string(s.cfg.Self), Verified: true,
		AccountID: actor.ID, Author: actor.Name, Module: m.Hash, Size: m.Size, Readme: d.Readme, State: Published,
		CreatedAt: now, UpdatedAt: now}
	if err := checkSize(&p); err != nil {
		return Package{}, err
	}
	if err := s.beginChange(ctx); err != nil {
		return Package{}, err
	}
	defer s.endChange()
	if err := s.checkNew(&p); err != nil {
		return Package{}, err
	}
	ctx = context.WithoutCancel(ctx) // a stored version is published
	if err := s.cfg.Store.AddPackage(ctx, p); err != nil {
		return Package{}, err
	}
	s.mu.Lock()
	s.own[p.ID] = &p
	s.mu.Unlock()
	s.cfg.Changed()
	source := hosting.Source{Name: p.Name, Version: p.Version, Portal: p.PortalID}
	return p, s.cfg.Modules.NameSource(ctx, actor.ID, m.Hash, source)
}

// CheckDraft cleans a version and reports all its errors, without publishing it.
func (s *Service) CheckDraft(actor ident.Actor, d *Draft) error {
	if err := requireAuthor(actor); err != nil {
		return err
	}
	merr := CheckManifest(&d.Manifest, s.cfg.Bounds)
	d.Readme, d.Module = record.CleanText(d.Readme), strings.TrimPrefix(d.Module, "sha256:")
	_, ok := s.cfg.Modules.Find(actor.ID, d.Module)
	var c fault.Check
	if merr != nil {
		for field, text := range fault.As(merr).Fields {
			c.Field(false, field, "%s", text)
		}
	}
	c.Field(ok, "module", "names no program that you uploaded; upload it first and give its hash")
	c.Field(len(d.Readme) <= record.MaxReadme, "readme", "use at most %d bytes", record.MaxReadme)
	return c.Err()
}

// checkNew returns a fault if a version cannot be added. The caller holds the turn of changes.
func (s *Service) checkNew(p *Package) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	mine := 0
	for _, have := range s.own {
		if have.AccountID == p.AccountID {
			mine++
		}
		switch {
		case have.Name == p.Name && have.AccountID != p.AccountID:
			return fault.New(fault.Conflict, "The package %s is of another account.", p.Name)
		case have.Name == p.Name && semver.Compare("v"+have.Version, "v"+p.Version) == 0:
			return fault.New(fault.Conflict, "Version %s of %s is published. Versions do not change; publish a new one.",
				p.Version, p.Name)
		}
	}
	if mine >= maxVersions {
		return fault.New(fault.Conflict, "You have published %d versions, which is the most.", mine)
	}
	if k, ok := s.kills[p.Module]; ok {
		return fault.New(fault.Conflict, "The operator stopped this module: %s", k.Reason)
	}
	return nil
}

// checkSize returns an Invalid fault if the record of a package would be too large.
func checkSize(p *Package) error {
	b, err := json.Marshal(recordOf(p))
	if err != nil {
		return err
	}
	if len(b) > record.MaxAgent-headerBytes {
		return fault.Field("readme", "manifest and readme are too long together; shorten the readme")
	}
	return nil
}

// headerBytes are kept free in a record for its header.
const headerBytes = 300

// Package hosting keeps the programs that accounts uploaded to run as agents, and decides which accounts may. Modules
// are known by their hash; the sandbox that runs them is in package agentruntime/wasm.
package hosting

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/plaintext"
	"agentsite/internal/quota"
)

// Policy says which accounts may host programs.
type Policy string

// The policies. Operators may always host, unless hosting is off.
const (
	Off  Policy = "off"
	Own  Policy = "own"  // operators
	List Policy = "list" // operators and the accounts of a list
	Any  Policy = "any"  // every account
)

// Rules are the operator's decisions about hosting. MaxModules and MaxBytes bound the modules of one account; the
// quota of its storage holds besides.
type Rules struct {
	Policy     Policy   `json:"policy"`
	Accounts   []string `json:"list"`
	MaxModules int      `json:"max_modules"`
	MaxBytes   int64    `json:"max_bytes"`
}

// DefaultRules hold until an operator decides: running a stranger's code is an operator's choice.
func DefaultRules() Rules {
	return Rules{Policy: Own, Accounts: []string{}, MaxModules: 20, MaxBytes: 128 << 20}
}

// The bounds of Rules.
const (
	maxAccounts = 1000
	mostModules = 1000
	mostBytes   = 4 << 30
	maxName     = 200
)

// Module is an uploaded module of an account.
type Module struct {
	Hash      string // SHA-256 in lower-case hexadecimal
	Name      string // of the file, for its owner
	AccountID string
	Size      int64
	CreatedAt time.Time
	Source    Source
}

// Source is the package that a module is from; zero for one that was only uploaded.
type Source struct {
	Name, Version string
	Portal        string // id of the portal that publishes the package
}

// Store stores modules and rules.
type Store interface {
	AllModules(ctx context.Context) ([]Module, error)
	// PutModule stores a module. It is a RateLimited fault if the account may not store more.
	PutModule(ctx context.Context, m Module, data []byte) error
	// NameSource notes from which package a module of an account is.
	NameSource(ctx context.Context, accountID, hash string, source Source) error
	// DeleteModule deletes a module of an account. It is a Conflict fault while an agent of the account uses it, or a
	// package that is not withdrawn.
	DeleteModule(ctx context.Context, accountID, hash string) error
	// ReadModule returns the bytes of a module, or a NotFound fault.
	ReadModule(ctx context.Context, hash string) ([]byte, error)
	// Rules returns the stored rules; ok is false if there are none.
	Rules(ctx context.Context) (r Rules, ok bool, err error)
	PutRules(ctx context.Context, by ident.Actor, r Rules) error
}

// Sandbox runs modules.
type Sandbox interface {
	// CheckModule compiles a module. An Invalid fault has the reason if it cannot be run.
	CheckModule(ctx context.Context, hash string, data []byte) error
	// DropModule ends the processes of a module and deletes its compiled code.
	DropModule(hash string) error
	// KeepModules deletes the compiled code of all modules but those with the hashes.
	KeepModules(hashes map[string]bool) error
	// MaxModule is the most bytes of a module.
	MaxModule() int
}

// People knows accounts.
type People interface {
	// Account returns the name of an account and whether it is an operator.
	Account(ctx context.Context, id string) (name string, operator bool, err error)
}

// Service keeps modules and rules. It holds all but the bytes in memory, because each call of an agent looks them up.
// Create it with New and call Load; it is safe for concurrent use.
type Service struct {
	store   Store
	sandbox Sandbox
	people  People
	uploads *limit.Keyed
	turn    chan struct{} // held while modules change: compiling one takes seconds of the processor

	mu      sync.RWMutex // guards the fields below
	rules   Rules
	modules map[string][]Module // by account
}

// New returns a service without modules.
func New(store Store, sandbox Sandbox, people People) *Service {
	return &Service{store: store, sandbox: sandbox, people: people, uploads: limit.New(5*time.Second, 20, 10_000),
		turn: make(chan struct{}, 1), rules: DefaultRules(), modules: make(map[string][]Module)}
}

// Load reads the modules and rules from the store, and deletes the compiled code of modules that are not there. It may
// be called again, after the store was changed by others: by the erasure of an account.
func (s *Service) Load(ctx context.Context) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
	list, err := s.store.AllModules(ctx)
	if err != nil {
		return err
	}
	r, ok, err := s.store.Rules(ctx)
	if err != nil {
		return err
	}
	modules, hashes := make(map[string][]Module), make(map[string]bool)
	for _, m := range list {
		modules[m.AccountID] = append(modules[m.AccountID], m)
		hashes[m.Hash] = true
	}
	s.mu.Lock()
	if s.modules = modules; ok {
		s.rules = r
	}
	s.mu.Unlock()
	return s.sandbox.KeepModules(hashes)
}

// takeTurn waits until no module is uploaded or deleted; endTurn lets the next one go on.
func (s *Service) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Service) endTurn() { <-s.turn }

// requireWriter returns a fault for an actor that cannot register agents.
func requireWriter(actor ident.Actor, scope ident.Scope) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in to host programs.")
	}
	if !actor.May(scope) {
		return fault.New(fault.Forbidden, "%s", scope.DescribeMissing())
	}
	return nil
}

// MayHost returns a Forbidden fault if an account may not host programs now.
func (s *Service) MayHost(ctx context.Context, accountID string) error {
	r := s.readRules()
	name, operator, err := s.people.Account(ctx, accountID)
	switch {
	case err != nil:
		return err
	case r.Policy == Off:
		return fault.New(fault.Forbidden, "This portal hosts no programs.")
	case operator, r.Policy == Any, r.Policy == List && slices.Contains(r.Accounts, name):
		return nil
	}
	return fault.New(fault.Forbidden, "This portal hosts no programs of %s. Its operator can allow it.", name)
}

func (s *Service) readRules() Rules {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rules
}

// Find returns a module of an account.
func (s *Service) Find(accountID, hash string) (Module, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := s.modules[accountID]
	if i := slices.IndexFunc(list, func(m Module) bool { return m.Hash == hash }); i >= 0 {
		return list[i], true
	}
	return Module{}, false
}

// HasModule reports whether an account has a module with a hash for which ok is true. ok must not call the service.
func (s *Service) HasModule(hash string, ok func(Module) bool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, list := range s.modules {
		if slices.ContainsFunc(list, func(m Module) bool { return m.Hash == hash && ok(m) }) {
			return true
		}
	}
	return false
}

// ListModules returns the modules of the actor, the newest first.
func (s *Service) ListModules(actor ident.Actor) ([]Module, error) {
	if err := requireWriter(actor, ident.AgentsRead); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := slices.Clone(s.modules[actor.ID])
	slices.SortFunc(list, func(a, b Module) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list, nil
}

// MaxModule is the most bytes of a module.
func (s *Service) MaxModule() int { return s.sandbox.MaxModule() }

// MayUpload returns a fault if the actor may not upload a module. A nil Service hosts nothing.
func (s *Service) MayUpload(ctx context.Context, actor ident.Actor) error {
	if s == nil {
		return fault.New(fault.Forbidden, "This portal hosts no programs.")
	}
	if err := requireWriter(actor, ident.AgentsWrite); err != nil {
		return err
	}
	return s.MayHost(ctx, actor.ID)
}

// Upload checks, compiles and stores a module. Uploading a module again changes nothing.
func (s *Service) Upload(ctx context.Context, actor ident.Actor, name string, data []byte) (Module, error) {
	if err := s.MayUpload(ctx, actor); err != nil {
		return Module{}, err
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	if m, ok := s.Find(actor.ID, hash); ok {
		return m, nil
	}
	if len(data) > s.sandbox.MaxModule() {
		return Module{}, fault.Field("module", "is larger than "+quota.Text(int64(s.sandbox.MaxModule())))
	}
	if wait, ok := s.uploads.Allow(actor.ID); !ok {
		return Module{}, fault.Limited(wait, "You upload programs too fast.")
	}
	if err := s.checkRoom(actor.ID, int64(len(data))); err != nil {
		return Module{}, err
	}
	if err := s.takeTurn(ctx); err != nil {
		return Module{}, err
	}
	defer s.endTurn()
	if err := s.sandbox.CheckModule(ctx, hash, data); err != nil {
		return Module{}, err
	}
	name = plaintext.OneLine(name)
	m := Module{Hash: hash, Name: strings.ToValidUTF8(name[:min(len(name), maxName)], ""), AccountID: actor.ID,
		Size: int64(len(data)), CreatedAt: clock.Now()}
	// Two uploads of one account cannot pass each other, because turn is held.
	if err := s.checkRoom(actor.ID, m.Size); err != nil {
		return Module{}, err
	}
	if have, ok := s.Find(actor.ID, hash); ok {
		return have, nil
	}
	if err := s.store.PutModule(ctx, m, data); err != nil {
		return Module{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modules[actor.ID] = append(s.modules[actor.ID], m)
	return m, nil
}

// checkRoom returns a Conflict fault if an account has as many modules or bytes as it may.
func (s *Service) checkRoom(accountID string, size int64) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := s.modules[accountID]
	for _, m := range list {
		size += m.Size
	}
	if len(list) >= s.rules.MaxModules || size > s.rules.MaxBytes {
		return fault.New(fault.Conflict, "You may keep %d programs here, of %s together. Delete one that no agent uses.",
			s.rules.MaxModules, quota.Text(s.rules.MaxBytes))
	}
	return nil
}

// DeleteModule deletes a module of the actor that no agent uses.
func (s *Service) DeleteModule(ctx context.Context, actor ident.Actor, hash string) error {
	if err := requireWriter(actor, ident.AgentsWrite); err != nil {
		return err
	}
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
	if _, ok := s.Find(actor.ID, hash); !ok {
		return fault.New(fault.NotFound, "You have no such program.")
	}
	if err := s.store.DeleteModule(ctx, actor.ID, hash); err != nil {
		return err
	}
	s.mu.Lock()
	s.modules[actor.ID] = slices.DeleteFunc(slices.Clone(s.modules[actor.ID]), func(m Module) bool {
		return m.Hash == hash
	})
	shared := false // by another account
	for _, list := range s.modules {
		shared = shared || slices.ContainsFunc(list, func(m Module) bool { return m.Hash == hash })
	}
	s.mu.Unlock()
	if shared {
		return nil
	}
	return s.sandbox.DropModule(hash)
}

// NameSource notes from which package a module of an account is.
func (s *Service) NameSource(ctx context.Context, accountID, hash string, source Source) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.endTurn()
	if m, ok := s.Find(accountID, hash); ok && m.Source == source {
		return nil
	}
	if err := s.store.NameSource(ctx, accountID, hash, source); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.modules[accountID])
	for i := range list {
		if list[i].Hash == hash {
			list[i].Source = source
		}
	}
	s.modules[accountID] = list
	return nil
}

// ReadModule returns the bytes of a module that an account has and may host; see MayHost.
func (s *Service) ReadModule(ctx context.Context, hash string) ([]byte, error) {
	data, err := s.store.ReadModule(ctx, hash)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return nil, fault.New(fault.Unavailable, "The program is damaged on this portal's disk.")
	}
	return data, nil
}

// Rules returns the rules. Only operators may read them.
func (s *Service) Rules(actor ident.Actor) (Rules, error) {
	if err := requireOperator(actor); err != nil {
		return Rules{}, err
	}
	return s.readRules(), nil
}

// PublicPolicy returns the policy for readers that look for a portal that hosts their program.
func (s *Service) PublicPolicy(actor ident.Actor) (Policy, error) {
	if actor.IsPerson() && !actor.May(ident.AgentsRead) {
		return "", fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	return s.readRules().Policy, nil
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

// PutRules replaces the rules. Programs that may no longer be hosted stop at their next call.
func (s *Service) PutRules(ctx context.Context, actor ident.Actor, r Rules) (Rules, error) {
	if err := requireOperator(actor); err != nil {
		return Rules{}, err
	}
	var c fault.Check
	c.Field(slices.Contains([]Policy{Off, Own, List, Any}, r.Policy), "policy", "use off, own, list or any")
	r.Accounts = plaintext.CleanList(r.Accounts, true)
	c.Field(len(r.Accounts) <= maxAccounts, "list", "name at most %d accounts", maxAccounts)
	for _, name := range r.Accounts {
		c.Field(ident.CheckForm(name) == nil, "list", "%.80q is no name of an account", name)
	}
	if r.Accounts == nil {
		r.Accounts = []string{}
	}
	c.Field(r.MaxModules >= 1 && r.MaxModules <= mostModules, "max_modules", "use 1 to %d", mostModules)
	c.Field(r.MaxBytes >= 1<<16 && r.MaxBytes <= mostBytes, "max_bytes", "use 65536 to %d", int64(mostBytes))
	if err := c.Err(); err != nil {
		return Rules{}, err
	}
	if err := s.store.PutRules(ctx, actor, r); err != nil {
		return Rules{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = r
	return r, nil
}

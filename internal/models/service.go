package models

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Stored is a model as it is stored, with the sealed key, nil for none.
type Stored struct {
	Model
	Sealed []byte
}

// Store stores models. A missing model is a NotFound fault, a name that the owner uses already a Conflict fault.
type Store interface {
	// AllModels returns the models of the portal and of all accounts.
	AllModels(ctx context.Context) ([]Stored, error)
	// CreateModel stores a new model. More than MaxModels of an owner are a Conflict fault.
	CreateModel(ctx context.Context, m Stored) error
	UpdateModel(ctx context.Context, m Stored) error
	DeleteModel(ctx context.Context, id string) error
}

// Sealer encrypts keys; bound is the model's id.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
}

// AddressPolicy decides which addresses the portal may call for an account.
type AddressPolicy interface {
	// CheckURL returns an error, worded for a form, if an address may not be called.
	CheckURL(address string) error
}

// Watcher reacts to changes of the portal's models. It must not change models itself.
type Watcher interface {
	// PortalModelsChanged is called after a model of the portal was created, changed or deleted. Calls do not overlap.
	PortalModelsChanged(ctx context.Context)
}

// Config holds the dependencies of a Service.
type Config struct {
	Store  Store
	Sealer Sealer
	// Set is the model in the portal's settings, nil for none, and SetKey its key. It is the portal's Default.
	Set    *Model
	SetKey string
	// Addresses decides which addresses accounts may use. Those of the portal's models are not checked, because the
	// operator chose them.
	Addresses AddressPolicy
	// Watcher may be nil.
	Watcher Watcher
}

// Service keeps models. It holds all of them in memory, because each call of an agent looks one up. Create it with New
// and call Load; it is safe for concurrent use.
type Service struct {
	cfg Config

	changes sync.Mutex // held during a change, so that list and store agree
	mu      sync.RWMutex
	list    map[key]Stored
}

type key struct{ ownerID, name string }

// New returns a service without models.
func New(cfg Config) *Service { return &Service{cfg: cfg, list: make(map[key]Stored)} }

// Load reads all models from the store.
func (s *Service) Load(ctx context.Context) error {
	all, err := s.cfg.Store.AllModels(ctx)
	if err != nil {
		return err
	}
	list := make(map[key]Stored, len(all))
	for _, m := range all {
		list[key{m.OwnerID, m.Name}] = m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	return nil
}

// Find returns the model with a name for the agents of an owner: one of the owner's or of the portal's, and the
// portal's default for "". ok is false if there is none.
func (s *Service) Find(ownerID, name string) (m Model, ok bool) {
	found, ok := s.find(ownerID, name)
	return found.Model, ok
}

func (s *Service) find(ownerID, name string) (Stored, bool) {
	if name == "" {
		ownerID, name = "", Default
	}
	if m, ok := s.lookup(ownerID, name); ok {
		return m, true
	}
	if m, ok := s.lookup("", name); ok {
		return m, true
	}
	// Agents may name the model in the settings as its server does.
	if set := s.cfg.Set; set != nil && (name == Default || name == set.Model) {
		return Stored{Model: *set}, true
	}
	return Stored{}, false
}

func (s *Service) lookup(ownerID, name string) (Stored, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m, ok := s.list[key{ownerID, name}]
	return m, ok
}

// Chain returns the model with a name as Find does, and after it the model that it falls back to, if there is one.
func (s *Service) Chain(ownerID, name string) []Model {
	m, ok := s.Find(ownerID, name)
	if !ok {
		return nil
	}
	out := []Model{m}
	if m.Fallback == "" {
		return out
	}
	// The portal's models fall back to the portal's only.
	if next, ok := s.Find(m.OwnerID, m.Fallback); ok && next.ID != m.ID {
		out = append(out, next)
	}
	return out
}

// ServerOf returns the server of a model with its key.
func (s *Service) ServerOf(m Model) (Server, error) {
	out := Server{Provider: m.Provider, URL: m.URL}
	if m.Fixed {
		out.Key = s.cfg.SetKey
		return out, nil
	}
	stored, ok := s.lookup(m.OwnerID, m.Name)
	if !ok || stored.ID != m.ID || len(stored.Sealed) == 0 {
		return out, nil
	}
	var err error
	out.Key, err = s.cfg.Sealer.Open(stored.Sealed, m.ID)
	return out, err
}

// List returns the models that the actor may use: the portal's, and own ones, by name. Only operators get the addresses
// of the portal's.
func (s *Service) List(_ context.Context, actor ident.Actor) ([]Model, error) {
	if err := checkActor(actor, false); err != nil {
		return nil, err
	}
	var out []Model
	if s.cfg.Set != nil {
		out = append(out, *s.cfg.Set)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k, m := range s.list {
		if k.ownerID == "" || k.ownerID == actor.ID {
			out = append(out, m.Model)
		}
	}
	for i := range out {
		if out[i].IsPortal() && !actor.IsOperator() {
			out[i].URL = "" // only operators know the addresses
		}
	}
	slices.SortFunc(out, func(a, b Model) int {
		return cmp.Or(strings.Compare(a.OwnerID, b.OwnerID), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

// Create stores a new model of the actor, or of the portal, which only an operator may.
func (s *Service) Create(ctx context.Context, actor ident.Actor, d Draft, portal bool) (Model, error) {
	m, err := newModel(actor, portal)
	if err != nil {
		return Model{}, err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	created, err := s.save(ctx, &m, d, s.cfg.Store.CreateModel)
	if err == nil {
		s.notify(ctx, created)
	}
	return created, err
}

// Check returns the model that Create would store, or the error for which Create would refuse the draft. It stores
// nothing.
func (s *Service) Check(actor ident.Actor, d Draft, portal bool) (Model, error) {
	m, err := newModel(actor, portal)
	if err == nil {
		err = s.apply(&m, d)
	}
	if err != nil {
		return Model{}, err
	}
	if _, taken := s.lookup(m.OwnerID, m.Name); taken {
		return Model{}, fault.New(fault.Conflict, "There is a model with the name %s already.", m.Name)
	}
	return m.Model, nil
}

// newModel returns an empty model of the actor or of the portal, which only an operator may create.
func newModel(actor ident.Actor, portal bool) (Stored, error) {
	if err := checkActor(actor, portal); err != nil {
		return Stored{}, err
	}
	m := Stored{Model: Model{ID: ident.NewID(), OwnerID: actor.ID, CreatedAt: clock.Now()}}
	if portal {
		m.OwnerID = ""
	}
	return m, nil
}

// Update changes a model that the actor may change: an own one with that name or id or, for an operator, the portal's.
func (s *Service) Update(ctx context.Context, actor ident.Actor, name string, d Draft) (Model, error) {
	s.changes.Lock()
	defer s.changes.Unlock()
	m, err := s.changeable(actor, name)
	if err != nil {
		return Model{}, err
	}
	before := key{m.OwnerID, m.Name}
	changed, err := s.save(ctx, &m, d, s.cfg.Store.UpdateModel)
	if err != nil {
		return Model{}, err
	}
	if before.name != changed.Name {
		s.mu.Lock()
		delete(s.list, before)
		s.mu.Unlock()
	}
	s.notify(ctx, changed)
	return changed, nil
}

// apply changes m as the draft says, all but the key, and checks the result.
func (s *Service) apply(m *Stored, d Draft) error {
	before := m.Model
	addresses := s.cfg.Addresses
	if m.IsPortal() {
		addresses = nil
	}
	if err := d.apply(&m.Model, addresses); err != nil {
		return err
	}
	var c fault.Check
	c.Field(s.cfg.Set == nil || !m.IsPortal() || m.Name != Default, "name",
		"%s is the model that the portal was started with; use another name", Default)
	if m.Fallback != "" {
		_, ok := s.find(m.OwnerID, m.Fallback)
		c.Field(ok, "fallback", "there is no model %q", m.Fallback)
	}
	moved := before.URL != "" && originOf(before.URL) != originOf(m.URL)
	c.Field(!m.HasKey || d.Key != nil || !moved, "key", "give the key again, as the address is another")
	return c.Err()
}

// save applies a draft to m and stores it. The caller holds changes.
func (s *Service) save(ctx context.Context, m *Stored, d Draft,
	store func(context.Context, Stored) error) (Model, error) {
	if err := s.apply(m, d); err != nil {
		return Model{}, err
	}
	if d.Key != nil {
		m.Sealed, m.HasKey = nil, *d.Key != ""
		if m.HasKey {
			m.Sealed = s.cfg.Sealer.Seal(*d.Key, m.ID)
		}
	}
	m.UpdatedAt = clock.Now()
	if err := store(ctx, *m); err != nil {
		return Model{}, err
	}
	s.mu.Lock()
	s.list[key{m.OwnerID, m.Name}] = *m
	s.mu.Unlock()
	return m.Model, nil
}

// notify calls the watcher after a change of a model. The caller holds changes.
func (s *Service) notify(ctx context.Context, m Model) {
	if s.cfg.Watcher != nil && m.IsPortal() {
		s.cfg.Watcher.PortalModelsChanged(ctx)
	}
}

// Delete deletes a model that the actor may change. Agents that name it fail until their owners choose another.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, name string) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	m, err := s.changeable(actor, name)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.DeleteModel(ctx, m.ID); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.list, key{m.OwnerID, m.Name})
	s.mu.Unlock()
	s.notify(ctx, m.Model)
	return nil
}

// changeable returns the model with that name or id that the actor may change.
func (s *Service) changeable(actor ident.Actor, name string) (Stored, error) {
	if err := checkActor(actor, false); err != nil {
		return Stored{}, err
	}
	m, ok := s.visible(actor.ID, name)
	fixed := !ok && s.cfg.Set != nil && name == Default
	switch {
	case !ok && !fixed:
		return Stored{}, fault.New(fault.NotFound, "There is no model %.80q.", name)
	case ok && m.OwnerID == actor.ID:
		return m, nil
	case !actor.IsOperator() || !actor.May(ident.Admin):
		return Stored{}, fault.New(fault.Forbidden, "Only an operator changes the portal's models.")
	case fixed:
		return Stored{}, fault.New(fault.Conflict, "The portal was started with this model. Change it with --llm-url, "+
			"--llm-model and --llm-key.")
	}
	return m, nil
}

// visible returns the model with that name or id among those of the account and of the portal.
func (s *Service) visible(accountID, name string) (Stored, bool) {
	if m, ok := s.lookup(accountID, name); ok {
		return m, true
	}
	if m, ok := s.lookup("", name); ok {
		return m, true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, m := range s.list {
		if m.ID == name && (m.IsPortal() || m.OwnerID == accountID) {
			return m, true
		}
	}
	return Stored{}, false
}

// checkActor returns a fault unless the actor has an account and full rights to it or, for the portal's models, is an
// operator.
func checkActor(actor ident.Actor, portal bool) error {
	switch {
	case !actor.IsPerson():
		return fault.New(fault.Unauthenticated, "Sign in to see and change models.")
	case portal && !(actor.IsOperator() && actor.May(ident.Admin)):
		return fault.New(fault.Forbidden, "Only an operator adds models to the portal.")
	case !actor.May(ident.AccountAll):
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}

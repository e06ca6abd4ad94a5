// Package halt keeps which agents take no work: those that their owners paused, and agents, owners and providers that
// an operator stopped. Tasks of a halted agent that run are stopped, and others are rejected with the reason.
package halt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
	"agentsite/internal/weborigin"
)

// Kind is the kind of a subject.
type Kind string

// The kinds.
const (
	Agent    Kind = "agent"
	Owner    Kind = "owner"
	Provider Kind = "provider"
)

// Subject is an agent, an owner or a provider. Key is the id of an agent or account, or the host of a provider.
type Subject struct {
	Kind Kind
	Key  string
	// Operator is true for a stop by an operator, which the owner of an agent cannot end.
	Operator bool
}

// Halt is a subject that takes no work.
type Halt struct {
	Subject
	// Name is the name at the time of the halt, for lists: the handle of an agent, the name of an owner, the
	// host of a provider.
	Name      string
	Reason    string // as its author wrote it, "" for none
	CreatedAt time.Time
}

// Store stores halts, at most one for each subject.
type Store interface {
	AllHalts(ctx context.Context) ([]Halt, error)
	// PutHalt stores a halt, and adds a stop by an operator to the log of decisions.
	PutHalt(ctx context.Context, by ident.Actor, h Halt) error
	DeleteHalt(ctx context.Context, by ident.Actor, h Halt) error
}

// Agents finds agents; hub.Service implements it.
type Agents interface {
	Get(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
}

// People finds accounts by name. An unknown name is a NotFound fault.
type People interface {
	OwnerByName(ctx context.Context, name string) (id string, err error)
}

// Tasks stops the running tasks of a subject.
type Tasks interface {
	StopTasks(s Subject)
}

// Service keeps halts. It holds them in memory, because each task looks for one. Create it with New and call Load; it
// is safe for concurrent use.
type Service struct {
	store  Store
	agents Agents
	people People
	tasks  Tasks

	changes sync.Mutex   // held during a change, so that list and store agree
	mu      sync.RWMutex // guards list
	list    map[Subject]Halt
}

// New returns a service without halts.
func New(store Store, agents Agents, people People, tasks Tasks) *Service {
	return &Service{store: store, agents: agents, people: people, tasks: tasks, list: make(map[Subject]Halt)}
}

// Load reads all halts from the store.
func (s *Service) Load(ctx context.Context) error {
	all, err := s.store.AllHalts(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range all {
		s.list[h.Subject] = h
	}
	return nil
}

// ReasonOf returns why an agent takes no work, as a sentence for callers; "" if it does. provider is the host that runs
// it, "" for this portal.
func (s *Service) ReasonOf(a hub.Agent, provider string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.list) == 0 {
		return ""
	}
	for _, one := range []struct {
		subject Subject
		says    string
	}{
		{Subject{Agent, a.ID, true}, "The operator of this portal has stopped " + a.Handle() + "."},
		{Subject{Owner, a.OwnerID, true}, "The operator of this portal has stopped the agents of " + a.OwnerName + "."},
		{Subject{Provider, provider, true}, "The operator of this portal has stopped calls to " + provider + "."},
		{Subject{Agent, a.ID, false}, "The owner of " + a.Handle() + " has paused it."},
	} {
		if h, ok := s.list[one.subject]; ok && h.Key != "" {
			return strings.TrimSpace(one.says + " " + h.Reason)
		}
	}
	return ""
}

// Pause stops an agent. An owner may resume it, unless an operator paused it who does not own it.
// Running tasks of the agent end.
func (s *Service) Pause(ctx context.Context, actor ident.Actor, name, reason string) error {
	h, err := s.ofAgent(ctx, actor, name)
	if err != nil {
		return err
	}
	return s.put(ctx, actor, h, reason)
}

// Resume lets an agent work again. An owner cannot resume an agent that an operator stopped.
func (s *Service) Resume(ctx context.Context, actor ident.Actor, name string) error {
	h, err := s.ofAgent(ctx, actor, name)
	if err != nil {
		return err
	}
	if err := s.remove(ctx, actor, h); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, ok := s.list[Subject{Agent, h.Key, true}]; ok && !h.Operator {
		return fault.New(fault.Conflict, "The operator of this portal has stopped %s; ask them to let it run.", h.Name)
	}
	return nil
}

// ofAgent returns the halt that the actor may begin or end for an agent.
func (s *Service) ofAgent(ctx context.Context, actor ident.Actor, name string) (Halt, error) {
	if err := hub.RequireWriter(actor); err != nil {
		return Halt{}, err
	}
	a, err := s.agents.Get(ctx, actor, name)
	if err != nil {
		return Halt{}, err
	}
	owner := a.OwnerID == actor.ID || slices.Contains(a.CoOwnerIDs, actor.ID)
	if !owner {
		if err := hub.RequireOperator(actor); err != nil {
			return Halt{}, fault.New(fault.Forbidden, "Only an owner of %s or the operator of this portal may do that.",
				a.Handle())
		}
	}
	return Halt{Subject: Subject{Agent, a.ID, !owner}, Name: a.Handle()}, nil
}

// Stop stops all agents of an owner, or all calls to a provider, for an operator. name is that of the owner or the host
// of the provider.
func (s *Service) Stop(ctx context.Context, actor ident.Actor, kind Kind, name, reason string) error {
	h, err := s.named(ctx, actor, kind, name)
	if err != nil {
		return err
	}
	return s.put(ctx, actor, h, reason)
}

// Continue lets an owner or a provider work again.
func (s *Service) Continue(ctx context.Context, actor ident.Actor, kind Kind, name string) error {
	h, err := s.named(ctx, actor, kind, name)
	if err != nil {
		return err
	}
	return s.remove(ctx, actor, h)
}

// maxHost bounds the host of a provider in bytes, and maxReason a reason in characters.
const (
	maxHost   = 300
	maxReason = 500
)

func (s *Service) named(ctx context.Context, actor ident.Actor, kind Kind, name string) (Halt, error) {
	if err := requireOperator(actor); err != nil {
		return Halt{}, err
	}
	h := Halt{Subject: Subject{kind, name, true}, Name: name}
	switch kind {
	case Owner:
		id, err := s.people.OwnerByName(ctx, name)
		if err != nil {
			return Halt{}, err
		}
		h.Key = id
	case Provider:
		h.Key = weborigin.ReadHost(name)
		h.Name = h.Key
		if name == "" || len(name) > maxHost || name != plaintext.OneLine(name) {
			return Halt{}, fault.Field("host", "name a host as the page of the queue does")
		}
	default:
		return Halt{}, fault.Field("kind", "use agent, owner or provider")
	}
	return h, nil
}

// List returns all halts for an operator, the newest first. It reads the store, because the halts of a deleted agent
// are deleted there only.
func (s *Service) List(ctx context.Context, actor ident.Actor) ([]Halt, error) {
	if err := requireOperator(actor); err != nil {
		return nil, err
	}
	out, err := s.store.AllHalts(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Halt) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(fmt.Sprint(a.Subject), fmt.Sprint(b.Subject))
	})
	return out, nil
}

func requireOperator(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in as the operator.")
	}
	return hub.RequireOperator(actor)
}

func (s *Service) put(ctx context.Context, actor ident.Actor, h Halt, reason string) error {
	h.Reason, h.CreatedAt = plaintext.OneLine(reason), clock.Now()
	if len([]rune(h.Reason)) > maxReason {
		return fault.Field("reason", fmt.Sprintf("use at most %d characters", maxReason))
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	if err := s.store.PutHalt(ctx, actor, h); err != nil {
		return err
	}
	s.mu.Lock()
	s.list[h.Subject] = h
	s.mu.Unlock()
	// A task that starts now sees the entry in list, so that none escapes between.
	s.tasks.StopTasks(h.Subject)
	return nil
}

func (s *Service) remove(ctx context.Context, actor ident.Actor, h Halt) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	s.mu.RLock()
	_, ok := s.list[h.Subject]
	s.mu.RUnlock()
	if !ok {
		return nil
	}
	if err := s.store.DeleteHalt(ctx, actor, h); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.list, h.Subject)
	return nil
}

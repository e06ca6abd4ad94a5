package grant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Store stores grants. A grant that is missing or of another person is a NotFound fault.
type Store interface {
	// GrantsOf returns the grants of a person about an agent, "" for all agents, the newest first.
	GrantsOf(ctx context.Context, p Person, agentID string) ([]Grant, error)
	// PutGrant stores a grant in place of the person's grant with the same id, or about the same agent, tool, target
	// and conversation. More than MaxGrants of a person are a Conflict fault.
	PutGrant(ctx context.Context, g Grant) error
	DeleteGrant(ctx context.Context, p Person, id string) error
	// SpendCall counts one call of a grant. It is false if the grant is gone or allows no more.
	SpendCall(ctx context.Context, p Person, id string) (bool, error)
}

// Agents finds the agents that grants are about.
type Agents interface {
	// AgentBinding returns an agent's id, handle and present facts. An agent that the actor may not see is a NotFound
	// fault.
	AgentBinding(ctx context.Context, actor ident.Actor, handle string) (id, name string, b Binding, err error)
	// BindingOf is AgentBinding by the agent's id, without a check of rights.
	BindingOf(ctx context.Context, agentID string) (Binding, error)
}

// Service keeps grants and decides by them. Create it with NewService; it is safe for concurrent use.
type Service struct {
	store  Store
	agents Agents

	mu      sync.Mutex // guards running
	running map[*call]struct{}
}

// call is a call of a tool that runs by a grant.
type call struct {
	person  Person
	grantID string
	cancel  context.CancelCauseFunc
}

// NewService returns a service over the given storage and directory.
func NewService(store Store, agents Agents) *Service {
	return &Service{store: store, agents: agents, running: make(map[*call]struct{})}
}

// ErrRevoked is the cause of the end of a call after its grant was revoked.
var ErrRevoked = fault.New(fault.Forbidden, "The person has just taken back the permission for this call.")

// Begin decides about a use now. For an allowed one it counts the call, and returns a context that ends with cause
// ErrRevoked when the person revokes the grant; the caller must call done when the call has ended.
func (s *Service) Begin(ctx context.Context, u Use) (d Decision, within context.Context, done func(), err error) {
	for {
		list, err := s.store.GrantsOf(ctx, u.Person, u.AgentID)
		if err != nil {
			return Undecided, ctx, func() {}, err
		}
		d, g := Decide(list, u, clock.Now())
		if d != Allowed {
			return d, ctx, func() {}, nil
		}
		within, cancel := context.WithCancelCause(ctx)
		c := &call{g.Person, g.ID, cancel}
		s.mu.Lock()
		s.running[c] = struct{}{}
		s.mu.Unlock()
		done := func() {
			s.mu.Lock()
			delete(s.running, c)
			s.mu.Unlock()
			cancel(nil)
		}
		// Counting after the entry in running means that a revocation finds the call or the call finds it revoked.
		if ok, err := s.store.SpendCall(ctx, g.Person, g.ID); err != nil || !ok {
			done()
			if err != nil {
				return Undecided, ctx, func() {}, err
			}
			continue // The grant was revoked or used up meanwhile.
		}
		return Allowed, within, done, nil
	}
}

// Look returns the decision about a use now, without counting a call.
func (s *Service) Look(ctx context.Context, u Use) (Decision, error) {
	list, err := s.store.GrantsOf(ctx, u.Person, u.AgentID)
	if err != nil {
		return Undecided, err
	}
	d, _ := Decide(list, u, clock.Now())
	return d, nil
}

// Denials returns a function that reports whether the person denies the use of another target now.
func (s *Service) Denials(ctx context.Context, u Use) (func(target string) bool, error) {
	list, err := s.store.GrantsOf(ctx, u.Person, u.AgentID)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(g Grant) bool { return g.Allow })
	now := clock.Now()
	return func(target string) bool {
		u.Target = target
		d, _ := Decide(list, u, now)
		return d == Denied
	}, nil
}

// Remember stores a decision that the person made in a conversation. conversationOnly restricts it to that one.
func (s *Service) Remember(ctx context.Context, u Use, allow, conversationOnly bool) error {
	if !fits(u.Target) {
		return fault.Field("scope", fmt.Sprintf("is longer than %d characters", maxTarget))
	}
	g := Grant{ID: ident.NewID(), Person: u.Person, AgentID: u.AgentID, Agent: u.Agent, Tool: u.Tool, Target: u.Target,
		Allow: allow, Binds: u.Binds, CreatedAt: clock.Now()}
	if conversationOnly {
		g.ConversationID = u.ConversationID
	}
	return s.store.PutGrant(ctx, g)
}

// Listed is a grant in a list, with the reason why it lapsed, "" if it counts.
type Listed struct {
	Grant
	Lapsed string
}

// List returns the actor's grants, newest first.
func (s *Service) List(ctx context.Context, actor ident.Actor) ([]Listed, error) {
	if err := checkAccount(actor); err != nil {
		return nil, err
	}
	list, err := s.store.GrantsOf(ctx, personOf(actor), "")
	if err != nil {
		return nil, err
	}
	now := make(map[string]Binding)
	out := make([]Listed, len(list))
	for i, g := range list {
		b, ok := now[g.AgentID]
		if !ok {
			if b, err = s.agents.BindingOf(ctx, g.AgentID); err != nil && !fault.Is(err, fault.NotFound) {
				return nil, err
			}
			now[g.AgentID] = b
		}
		out[i] = Listed{g, g.Lapsed(b)}
	}
	return out, nil
}

// Draft is a grant as a person gives it on a page or by the API.
type Draft struct {
	Agent          string // handle
	Tool, Target   string
	ConversationID string
	Allow          bool
	Calls          int // 0 for any number
	Until          time.Time
}

// Put stores a grant of the actor under an id that the actor chose, a ULID. An unknown agent is a NotFound fault.
func (s *Service) Put(ctx context.Context, actor ident.Actor, id string, d Draft) (Grant, error) {
	if err := checkAccount(actor); err != nil {
		return Grant{}, err
	}
	var c fault.Check
	c.Field(ident.ValidID(id), "id", "use a ULID, 26 characters")
	c.Field(d.Agent != "", "agent", "name the agent that gets the permission")
	c.Field(d.Tool != "" && len(d.Tool) <= 200 && utf8.ValidString(d.Tool), "tool",
		"use %s, %s, %s, %s, %s or the name of a tool", Find, Ask, Memory, LibraryRead, LibraryWrite)
	d.Target = checkTarget(&c, d.Tool, d.Target)
	c.Field(d.ConversationID == "" || ident.ValidID(d.ConversationID), "conversation", "is no conversation")
	c.Field(d.Calls >= 0 && d.Calls <= 1_000_000, "budget", "use 0 to 1000000 calls")
	c.Field(d.Until.IsZero() || d.Until.After(clock.Now()), "until", "is in the past")
	if err := c.Err(); err != nil {
		return Grant{}, err
	}
	g := Grant{ID: id, Person: personOf(actor), Tool: d.Tool, Target: d.Target, ConversationID: d.ConversationID,
		Allow: d.Allow, Calls: d.Calls, Until: d.Until, CreatedAt: clock.Now()}
	var err error
	// The right to decide includes the name of the agent, whatever else a token may read.
	whole := ident.Actor{Kind: ident.Person, ID: actor.ID, Name: actor.Name}
	if g.AgentID, g.Agent, g.Binds, err = s.agents.AgentBinding(ctx, whole, d.Agent); err != nil {
		return Grant{}, err
	}
	return g, s.store.PutGrant(ctx, g)
}

// checkTarget returns the target of a grant as it is stored, and reports one that does not fit the tool to c.
func checkTarget(c *fault.Check, tool, target string) string {
	switch tool {
	case Find, Memory:
		c.Field(target == "", "scope", "leave it out for %s and %s", Find, Memory)
	case LibraryRead, LibraryWrite:
		target = norm.NFC.String(target)
		ok := target == WholeLibrary || target != "" && target[0] != '/' && !strings.Contains(target, "//")
		c.Field(ok, "scope",
			"name a folder with a slash at its end, such as notes/, a file, or / for the whole library")
	default:
		c.Field(target != "", "scope", "name the agent that is asked or has the tool; for %s also %s", Ask, AnyPublic)
	}
	c.Field(fits(target), "scope", "is longer than %d characters", maxTarget)
	return target
}

// maxTarget is the number of characters of a target, as in the table.
const maxTarget = 300

func fits(target string) bool {
	return utf8.ValidString(target) && utf8.RuneCountInString(target) <= maxTarget
}

// Delete revokes a grant of the actor. Calls that run by it end at once.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, id string) error {
	if err := checkAccount(actor); err != nil {
		return err
	}
	if !ident.ValidID(id) {
		return errNone(id)
	}
	return s.revoke(ctx, personOf(actor), id)
}

// revoke deletes a grant and ends the calls that run by it.
func (s *Service) revoke(ctx context.Context, p Person, id string) error {
	if err := s.store.DeleteGrant(ctx, p, id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.running {
		if c.person == p && c.grantID == id {
			c.cancel(ErrRevoked)
		}
	}
	return nil
}

// Here returns the actor's grants that hold in one conversation only, newest first. Callers without an account have
// none.
func (s *Service) Here(ctx context.Context, actor ident.Actor, conversationID string) ([]Grant, error) {
	if checkAccount(actor) != nil {
		return []Grant{}, nil
	}
	list, err := s.store.GrantsOf(ctx, personOf(actor), "")
	return slices.DeleteFunc(list, func(g Grant) bool { return g.ConversationID != conversationID }), err
}

// AskAgain revokes the grants that Here returns, so that agents ask the actor again.
func (s *Service) AskAgain(ctx context.Context, actor ident.Actor, conversationID string) error {
	if err := checkAccount(actor); err != nil {
		return err
	}
	return s.Forget(ctx, personOf(actor), "", conversationID)
}

// Forget revokes the grants of a person about an agent, "" for all, that hold in one conversation only.
func (s *Service) Forget(ctx context.Context, p Person, agentID, conversationID string) error {
	list, err := s.store.GrantsOf(ctx, p, agentID)
	if err != nil || conversationID == "" {
		return err
	}
	for _, g := range list {
		if g.ConversationID != conversationID {
			continue
		}
		if err := s.revoke(ctx, p, g.ID); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

func errNone(id string) error {
	return fault.New(fault.NotFound, "You have no grant %.80q.", id)
}

// checkAccount returns a fault unless the actor has an account and full rights to it.
func checkAccount(actor ident.Actor) error {
	switch {
	case !actor.IsPerson():
		return fault.New(fault.Unauthenticated, "Sign in to decide what agents may do for you.")
	case !actor.May(ident.AccountAll):
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}

// personOf returns the person of an account. An operator has the grants of the person that they are.
func personOf(actor ident.Actor) Person { return Person{string(ident.Person), actor.ID} }

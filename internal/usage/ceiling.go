package usage

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Ceiling bounds the cost of models on one day (UTC). At most one of an owner is about each agent, and one about all
// agents of the owner together.
type Ceiling struct {
	OwnerID string
	AgentID string // "" for all agents of the owner
	Agent   string // name of the agent
	Tokens  int64  // 0 for any number
	Cost    int64  // millionths of the currency; 0 for any
}

// Amount is a number of tokens and its price in millionths of the currency.
type Amount struct{ Tokens, Cost int64 }

// CeilingStore stores ceilings.
type CeilingStore interface {
	CeilingsOf(ctx context.Context, ownerID string) ([]Ceiling, error)
	// PutCeiling stores a ceiling in place of that about the same agent, and deletes it if it bounds nothing.
	PutCeiling(ctx context.Context, c Ceiling) error
	// SpentOn returns the cost of a day: of the models that the owner pays or, with an agentID, all models of that
	// agent.
	SpentOn(ctx context.Context, day int64, ownerID, agentID string) (Amount, error)
}

// OwnedAgents finds agents by name for their owners.
type OwnedAgents interface {
	// OwnedAgent returns the id of an agent that the actor owns; else a NotFound or Forbidden fault.
	OwnedAgent(ctx context.Context, actor ident.Actor, name string) (id string, err error)
}

// Guard refuses calls of models beyond the ceilings.
type Guard interface {
	// Reserve sets the most that a call can cost aside, or refuses with a RateLimited fault. The caller must call
	// settle after the call was counted.
	Reserve(ctx context.Context, c Call) (settle func(), err error)
}

// Ceilings keeps ceilings and checks calls against them. Create it with NewCeilings; it is safe for concurrent use.
type Ceilings struct {
	store  CeilingStore
	agents OwnedAgents
	prices *Prices

	mu       sync.Mutex // guards reserved; not held while the store reads
	reserved map[ceilingKey]Amount
}

type ceilingKey struct{ ownerID, agentID string }

// NewCeilings returns a guard over the given storage.
func NewCeilings(s CeilingStore, agents OwnedAgents, prices *Prices) *Ceilings {
	return &Ceilings{store: s, agents: agents, prices: prices, reserved: make(map[ceilingKey]Amount)}
}

var _ Guard = (*Ceilings)(nil)

// Reserve implements Guard. Input and Output of the call are the most that it can use. The ceiling of an owner counts
// calls that the owner pays, that of an agent all.
func (g *Ceilings) Reserve(ctx context.Context, c Call) (settle func(), err error) {
	list, err := g.store.CeilingsOf(ctx, c.OwnerID)
	if err != nil || len(list) == 0 {
		return func() {}, err
	}
	want := Amount{c.Input + c.Output, g.prices.Cost(c.Model, c.Price, c.Input, c.Output)}
	var taken []ceilingKey
	settle = func() {
		for _, k := range taken {
			g.add(k, Amount{-want.Tokens, -want.Cost})
		}
	}
	now := clock.Now()
	for _, one := range list {
		if one.AgentID == "" && c.Portal || one.AgentID != "" && one.AgentID != c.AgentID {
			continue
		}
		k := ceilingKey{one.OwnerID, one.AgentID}
		taken = append(taken, k)
		// The reservation counts before the spent amount is read, so that a call which is settled meanwhile counts
		// twice, but never not at all.
		aside := g.add(k, want)
		spent, err := g.store.SpentOn(ctx, DayOf(now), one.OwnerID, one.AgentID)
		if err != nil {
			settle()
			return nil, err
		}
		if one.Tokens > 0 && spent.Tokens+aside.Tokens > one.Tokens ||
			one.Cost > 0 && spent.Cost+aside.Cost > one.Cost {
			settle()
			return nil, one.refusal(now)
		}
	}
	return settle, nil
}

// refusal returns the RateLimited fault of a ceiling that is reached, as a sentence for the caller.
func (c Ceiling) refusal(now time.Time) error {
	wait := TimeOf(DayOf(now) + 1).Sub(now)
	what := "its owner's models"
	if c.AgentID != "" {
		what = "it"
	}
	return fault.Limited(wait, "The agent may use no more of a model today: its owner set a ceiling for %s. It "+
		"opens again at 00:00 UTC.", what)
}

// add adds an amount to the reservations of a ceiling and returns the sum.
func (g *Ceilings) add(k ceilingKey, a Amount) Amount {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := g.reserved[k]
	sum.Tokens += a.Tokens
	sum.Cost += a.Cost
	if sum == (Amount{}) {
		delete(g.reserved, k)
	} else {
		g.reserved[k] = sum
	}
	return sum
}

// CeilingState is a ceiling with the amount spent today.
type CeilingState struct {
	Ceiling
	Spent Amount
}

// List returns the ceilings of the actor, that about all agents first.
func (g *Ceilings) List(ctx context.Context, actor ident.Actor) ([]CeilingState, error) {
	if err := checkPayer(actor); err != nil {
		return nil, err
	}
	list, err := g.store.CeilingsOf(ctx, actor.ID)
	if err != nil {
		return nil, err
	}
	out := make([]CeilingState, len(list))
	for i, c := range list {
		out[i].Ceiling = c
		if out[i].Spent, err = g.store.SpentOn(ctx, DayOf(clock.Now()), c.OwnerID, c.AgentID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxCeiling bounds a ceiling, so that sums fit.
const maxCeiling = 1e15

// Put sets the ceiling about an agent that the actor owns, "" for all, in tokens and in millionths of the currency; 0
// for none.
func (g *Ceilings) Put(ctx context.Context, actor ident.Actor, agent string, most Amount) error {
	if err := checkPayer(actor); err != nil {
		return err
	}
	var c fault.Check
	c.Field(most.Tokens >= 0 && most.Tokens <= maxCeiling, "tokens", "use 0 to %.0f", float64(maxCeiling))
	c.Field(most.Cost >= 0 && most.Cost <= maxCeiling, "cost", "use 0 or more")
	if err := c.Err(); err != nil {
		return err
	}
	one := Ceiling{OwnerID: actor.ID, Agent: agent, Tokens: most.Tokens, Cost: most.Cost}
	if agent != "" {
		id, err := g.agents.OwnedAgent(ctx, actor, agent)
		if err != nil {
			return err
		}
		one.AgentID = id
	}
	return g.store.PutCeiling(ctx, one)
}

func checkPayer(actor ident.Actor) error {
	switch {
	case !actor.IsPerson():
		return fault.New(fault.Unauthenticated, "Sign in to set ceilings.")
	case !actor.May(ident.AccountAll):
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}

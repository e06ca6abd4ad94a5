// Package usage counts the calls, tokens and money that models cost: by agent, owner, person, model and day. A sum is
// always that of the counted calls, each of which is counted once.
package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Purpose is the part of the work that a call belongs to.
type Purpose string

// Work is the answer itself, Talk the conversation of agents about the division of the work.
const (
	Work Purpose = "work"
	Talk Purpose = "talk"
)

// Call is one answer of a model.
type Call struct {
	// TaskID is the durable task in which the model was asked, "" for none. It is not stored.
	TaskID  string
	AgentID string
	OwnerID string // of the agent; only Guard reads it, because the store finds it by the agent
	// Caller is the person behind the call. Guests and people of other portals are counted by kind only.
	CallerKind, CallerID string
	Model                string
	Price                Price // zero for that of the operator's file
	Purpose              Purpose
	// Portal is true for the portal's own model, for which the operator pays; else the owner of the agent pays.
	Portal        bool
	Input, Output int64 // tokens
	// Estimated is true if the provider reported no usage, so that the tokens are computed from the size of the texts.
	Estimated bool
}

// Budget is the most that the models of the portal may use in a day: tokens or, with a currency, millionths of it. Most
// 0 is no bound.
type Budget struct {
	Most     int64
	Currency string
}

// Meter counts calls of models.
type Meter interface {
	Count(ctx context.Context, c Call)
}

// Entry is a call as it is stored.
type Entry struct {
	Call
	Day  int64 // days since 1970, UTC
	Cost int64 // millionths of the currency
}

// Sum is the sum of calls.
type Sum struct {
	Key string
	// Calls includes those in Estimated.
	Calls, Estimated int64
	Input, Output    int64 // tokens
	// TalkCost and WorkCost are millionths of the currency.
	TalkCost, WorkCost int64
}

// add adds another sum.
func (s *Sum) add(o Sum) {
	s.Calls += o.Calls
	s.Estimated += o.Estimated
	s.Input += o.Input
	s.Output += o.Output
	s.TalkCost += o.TalkCost
	s.WorkCost += o.WorkCost
}

// Scope selects the usage that a report has.
type Scope string

// OfMe is the usage that the actor caused, OfAgents that of the agents the actor owns, and OfPortal all, which only an
// operator sees.
const (
	OfMe     Scope = "me"
	OfAgents Scope = "agents"
	OfPortal Scope = "portal"
)

// By is the key of the sums of a report.
type By string

// The keys. ByPerson gives the kinds of callers to an owner, and names only to an operator.
const (
	ByDay    By = "day"
	ByAgent  By = "agent"
	ByOwner  By = "owner"
	ByModel  By = "model"
	ByPerson By = "person"
)

// Query selects a report. From and To are days, both included.
type Query struct {
	Of       Scope
	By       By
	AgentID  string // of one agent; "" for all
	From, To time.Time
}

// MaxRows is the number of sums of a report; MaxDays the number of days.
const (
	MaxRows = 1000
	MaxDays = 366
)

// Report is the answer to a query. Rows are at most MaxRows, the most expensive first, or days in their order. Total
// includes rows that were left out.
type Report struct {
	Query
	Currency string
	Rows     []Sum
	Total    Sum
}

// Store stores usage by day.
type Store interface {
	AddUsage(ctx context.Context, list []Entry) error
	// SumUsage returns the sums for a query. accountID is the actor's, for OfMe and OfAgents.
	SumUsage(ctx context.Context, q Query, accountID string) ([]Sum, error)
}

// defaultCurrency is the currency of the prices of named models if the operator's file names none.
const defaultCurrency = "USD"

// Service counts usage and reports it. Create it with NewService; it is safe for concurrent use.
type Service struct {
	store  Store
	prices *Prices
	log    *slog.Logger
	tasks  taskSums

	mu   sync.Mutex // guards owed; not held while the store writes
	owed []Entry    // counted, but not stored because the store failed
}

// maxOwed bounds the entries that wait for a store that fails.
const maxOwed = 10_000

// NewService returns a service with the prices of models.
func NewService(s Store, prices *Prices, log *slog.Logger) *Service {
	return &Service{store: s, prices: prices, log: log}
}

var _ Meter = (*Service)(nil)

// Count implements Meter. A call that cannot be stored is stored with a later one.
func (s *Service) Count(ctx context.Context, c Call) {
	now := clock.Now()
	e := Entry{Call: c, Day: DayOf(now), Cost: s.prices.Cost(c.Model, c.Price, c.Input, c.Output)}
	if c.TaskID != "" {
		sum := Sum{Calls: 1, Input: c.Input, Output: c.Output, WorkCost: e.Cost}
		s.tasks.add(c.TaskID, sum)
	}
	s.mu.Lock()
	list := append(s.owed, e)
	s.owed = nil
	s.mu.Unlock()
	// The call was made, whatever becomes of the task.
	err := s.store.AddUsage(context.WithoutCancel(ctx), list)
	if err == nil {
		return
	}
	s.log.Error("store the usage of a model", "calls", len(list), "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed = append(list, s.owed...)
	s.owed = s.owed[max(len(s.owed)-maxOwed, 0):]
}

// DayOf returns the number of a time's day.
func DayOf(t time.Time) int64 { return t.UTC().Unix() / (24 * 60 * 60) }

// TimeOf returns the beginning of a day.
func TimeOf(day int64) time.Time { return time.Unix(day*24*60*60, 0).UTC() }

// Report returns sums of usage that the actor may see: own usage, that of own agents, and all for an operator. A zero
// From is 29 days before To, a zero To today.
func (s *Service) Report(ctx context.Context, actor ident.Actor, q Query) (Report, error) {
	switch {
	case !actor.IsPerson():
		return Report{}, fault.New(fault.Unauthenticated, "Sign in to see usage.")
	case !actor.May(ident.AccountAll):
		return Report{}, fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	case q.Of == OfPortal && !(actor.IsOperator() && actor.May(ident.Admin)):
		return Report{}, fault.New(fault.Forbidden, "Only an operator sees the usage of all.")
	}
	if q.To.IsZero() {
		q.To = clock.Now()
	}
	q.To = TimeOf(DayOf(q.To))
	if q.From.IsZero() {
		q.From = q.To.AddDate(0, 0, -29)
	}
	q.From = TimeOf(DayOf(q.From))
	var c fault.Check
	c.Field(q.Of == OfMe || q.Of == OfAgents || q.Of == OfPortal, "of", "use %s, %s or %s", OfMe, OfAgents, OfPortal)
	switch q.By {
	case ByDay, ByAgent, ByOwner, ByModel, ByPerson:
	default:
		c.Field(false, "by", "use %s, %s, %s, %s or %s", ByDay, ByAgent, ByOwner, ByModel, ByPerson)
	}
	c.Field(!q.To.Before(q.From), "to", "is before from")
	c.Field(q.To.Sub(q.From) <= MaxDays*24*time.Hour, "from", "ask for at most %d days", MaxDays)
	if err := c.Err(); err != nil {
		return Report{}, err
	}
	list, err := s.store.SumUsage(ctx, q, actor.ID)
	if err != nil {
		return Report{}, err
	}
	r := Report{Query: q, Currency: s.prices.Currency(), Rows: list[:min(len(list), MaxRows)]}
	for _, row := range list {
		r.Total.add(row)
	}
	if r.Currency == "" && r.Total.TalkCost+r.Total.WorkCost > 0 {
		r.Currency = defaultCurrency
	}
	return r, nil
}

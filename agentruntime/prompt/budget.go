package prompt

import (
	"context"
	"strings"
	"sync"
	"time"

	"agentsite/agentruntime/model"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
	"agentsite/internal/usage"
)

// Budget bounds the use of the portal's own model.
type Budget interface {
	// Reserve sets the most that a question of caller to a model can use aside. It refuses with a RateLimited fault
	// beyond the bound and, if the bound is in money and the model has no price, with an Unavailable one. settle is
	// called once, with the used tokens.
	Reserve(ctx context.Context, caller task.Caller, t model.Terms, most model.Used) (settle func(model.Used),
		err error)
}

// Ledger stores the spent amounts so that they survive a restart. It is called without a lock held.
type Ledger interface {
	// Spent returns the amounts spent on a day (2006-01-02, UTC) by spender.
	Spent(ctx context.Context, day string) (map[string]int64, error)
	// Add records a further spent amount.
	Add(ctx context.Context, day, who string, amount int64) error
}

// The shares of a day's budget, as divisors: guests together, one account, one guest.
const (
	guestsShare  = 10
	accountShare = 4
	guestShare   = 50
	// openGuests is the daily number of tokens for all guests together if accounts have no ceiling.
	openGuests = 200_000
	// maxSpenders bounds the separately counted spenders of a day; later ones share one entry.
	maxSpenders = 20_000
	// maxSpender bounds an id in bytes; the ledger takes keys of 100.
	maxSpender = 80
	ledgerTime = 5 * time.Second
)

// Daily is a Budget of tokens or money a day (UTC), with shares. It is safe for concurrent use.
type Daily struct {
	usage.Budget
	prices *usage.Prices
	now    clock.Clock
	ledger Ledger

	mu     sync.Mutex // guards all below; not held during calls of the ledger
	day    string
	spent  map[string]int64 // spent and reserved amounts of the day, by spender
	all    int64
	guests int64
	owed   map[string]int64 // amounts that the ledger has failed to store, by spender
}

// NewBudget returns a budget for a day: guests together get a tenth, one account a quarter, one guest a fiftieth.
// Without a bound accounts have no ceiling and guests together 200,000 tokens. A budget in money needs prices.
func NewBudget(most usage.Budget, prices *usage.Prices, now clock.Clock, ledger Ledger) *Daily {
	return &Daily{Budget: most, prices: prices, now: now, ledger: ledger}
}

var _ Budget = (*Daily)(nil)

// Reserve implements Budget. An amount that is set aside counts as spent until settled. An error of the
// ledger is returned as it is.
func (b *Daily) Reserve(ctx context.Context, caller task.Caller, t model.Terms, most model.Used) (func(model.Used),
	error) {
	now := b.now().UTC()
	amount, err := b.measure(t)
	if err == nil {
		err = b.openDay(ctx, now.Format(time.DateOnly))
	}
	if err != nil {
		return nil, err
	}
	n := amount(most)
	b.mu.Lock()
	defer b.mu.Unlock()
	day, guest := b.day, isGuest(caller)
	who := b.spenderKey(caller, guest)
	if why := b.refuseReason(who, guest, n); why != "" {
		y, m, d := now.Date()
		wait := time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC).Sub(now)
		return nil, fault.Limited(wait, "%s; it opens again at 00:00 UTC.", why)
	}
	b.countAmount(who, guest, n)
	var once sync.Once
	return func(used model.Used) {
		once.Do(func() { b.settleAmount(ctx, day, who, guest, n, amount(used)) })
	}, nil
}

// measure returns the function that measures tokens of a model in the unit of the budget, at the present price.
func (b *Daily) measure(t model.Terms) (func(model.Used) int64, error) {
	if b.Currency == "" {
		return func(u model.Used) int64 { return int64(max(u.Total(), 0)) }, nil
	}
	price, currency, known := b.prices.Find(t.Name, t.Price)
	switch {
	case !known:
		return nil, fault.New(fault.Unavailable, "The portal's budget is in %s and the price of its model is not "+
			"known. Its operator should add the model to %s.", b.Currency, usage.PricesFile)
	case currency != b.Currency:
		return nil, fault.New(fault.Unavailable, "The portal's budget is in %s and the price of its model in %s. Its "+
			"operator should use one currency.", b.Currency, currency)
	}
	return func(u model.Used) int64 { return price.Cost(int64(u.Input), int64(u.Output)) }, nil
}

// openDay starts the budget of a day (2006-01-02) with the amounts in the ledger. It does nothing if that
// day, or a later one, has begun.
func (b *Daily) openDay(ctx context.Context, day string) error {
	b.mu.Lock()
	same := b.day >= day // A clock that goes back must not open a second budget for the same day.
	b.mu.Unlock()
	if same {
		return nil
	}
	spent, err := b.ledger.Spent(ctx, day)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.day >= day {
		return nil // another call was faster, and may have spent since
	}
	b.day, b.all, b.guests = day, 0, 0
	b.spent, b.owed = make(map[string]int64), make(map[string]int64)
	for who, n := range spent {
		if _, unit, _ := strings.Cut(who, " "); unit == b.Currency {
			b.countAmount(who, strings.HasPrefix(who, guestKey), n)
		}
	}
	return nil
}

const (
	guestKey   = "guest:"
	accountKey = "account:"
	others     = "*"
)

// isGuest reports whether a caller spends from the guests' share: all callers without an account of
// this portal.
func isGuest(c task.Caller) bool {
	switch c.Kind {
	case "person", "operator", "agent":
		return strings.Contains(c.Handle, "@")
	}
	return true
}

// spenderKey returns the key under which a caller's use is counted: the id, or a shared key for callers without one and
// beyond maxSpenders, and the currency of a budget in money. The caller holds mu.
func (b *Daily) spenderKey(c task.Caller, guest bool) string {
	key, id := accountKey, c.ID
	if guest {
		key = guestKey
	}
	if id == "" {
		id = c.Handle
	}
	if id == "" || len(id) > maxSpender || strings.Contains(id, " ") {
		id = others
	}
	unit := ""
	if b.Currency != "" {
		unit = " " + b.Currency
	}
	if _, known := b.spent[key+id+unit]; !known && len(b.spent) >= maxSpenders {
		id = others
	}
	return key + id + unit
}

// refuseReason returns the reason for users why n more exceed a share, "" when they do not; the
// caller holds mu.
func (b *Daily) refuseReason(who string, guest bool, n int64) string {
	const (
		used  = "The portal's model has used up today's budget"
		yours = "You have used up your share of today's budget of the portal's model"
	)
	daily := b.Most
	switch {
	case daily > 0 && b.all+n > daily:
		return used
	case !guest && daily > 0 && b.spent[who]+n > daily/accountShare:
		return yours
	case !guest:
		return ""
	case daily == 0:
		daily = openGuests * guestsShare
	}
	switch {
	case b.guests+n > daily/guestsShare:
		return "Visitors have used up their share of today's budget of the portal's model; people with an " +
			"account have more"
	case b.spent[who]+n > daily/guestShare:
		return yours
	}
	return ""
}

// countAmount adds n, negative to take some back, to the spender, the guests and the whole; the
// caller holds mu.
func (b *Daily) countAmount(who string, guest bool, n int64) {
	b.spent[who] += n
	b.all += n
	if guest {
		b.guests += n
	}
}

// settleAmount replaces the amount that was set aside by the used one and stores it. If the ledger fails, it is added
// to the spender's next settlement.
func (b *Daily) settleAmount(ctx context.Context, day, who string, guest bool, aside, used int64) {
	b.mu.Lock()
	write := used
	if b.day == day {
		b.countAmount(who, guest, used-aside)
		write += b.owed[who]
		delete(b.owed, who)
	}
	b.mu.Unlock()
	if write == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTime)
	defer cancel()
	if b.ledger.Add(ctx, day, who, write) == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.day == day {
		b.owed[who] += write
	}
}

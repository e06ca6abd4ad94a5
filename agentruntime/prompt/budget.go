package prompt

import (
	"context"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// Budget bounds the use of the portal's own model.
type Budget interface {
	// Reserve sets tokens aside for a question of caller, or refuses with a RateLimited fault. settle
	// is called once, with the number of used tokens.
	Reserve(ctx context.Context, caller task.Caller, tokens int) (settle func(used int), err error)
}

// Ledger stores the spent tokens so that they survive a restart. It is called without a lock held.
type Ledger interface {
	// Spent returns the tokens spent on a day (2006-01-02, UTC) by spender.
	Spent(ctx context.Context, day string) (map[string]int64, error)
	// Add records further spent tokens.
	Add(ctx context.Context, day, who string, tokens int64) error
}

// The shares of a day's tokens, as divisors: guests together, one account, one guest.
const (
	guestsShare  = 10
	accountShare = 4
	guestShare   = 50
	// openGuests is the daily number of tokens for all guests together if accounts have no ceiling.
	openGuests = 200_000
	// maxSpenders bounds the separately counted spenders of a day; later ones share one entry.
	maxSpenders = 20_000
	ledgerTime  = 5 * time.Second
)

// Daily is a Budget of tokens a day (UTC), with shares. It is safe for
// concurrent use.
type Daily struct {
	daily  int64
	now    clock.Clock
	ledger Ledger

	mu     sync.Mutex // guards all below; not held during calls of the ledger
	day    string
	spent  map[string]int64 // spent and reserved tokens of the day, by spender
	all    int64
	guests int64
	owed   map[string]int64 // tokens that the ledger has failed to store, by spender
}

// NewBudget returns a budget of daily tokens: guests together get a tenth, one account a quarter, one
// guest a fiftieth. With daily 0 accounts have no ceiling and guests together 200,000.
func NewBudget(daily int64, now clock.Clock, ledger Ledger) *Daily {
	return &Daily{daily: max(daily, 0), now: now, ledger: ledger}
}

var _ Budget = (*Daily)(nil)

// Reserve implements Budget. Tokens that are set aside count as spent until settled. An error of the
// ledger is returned as it is.
func (b *Daily) Reserve(ctx context.Context, caller task.Caller, tokens int) (func(used int), error) {
	now := b.now().UTC()
	if err := b.openDay(ctx, now.Format(time.DateOnly)); err != nil {
		return nil, err
	}
	n := int64(max(tokens, 0))
	b.mu.Lock()
	defer b.mu.Unlock()
	day, guest := b.day, isGuest(caller)
	who := b.spenderKey(caller, guest)
	if why := b.refuseReason(who, guest, n); why != "" {
		y, m, d := now.Date()
		wait := time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC).Sub(now)
		return nil, fault.Limited(wait, "%s; it opens again at 00:00 UTC.", why)
	}
	b.countTokens(who, guest, n)
	var once sync.Once
	return func(used int) {
		once.Do(func() { b.settleTokens(ctx, day, who, guest, n, int64(max(used, 0))) })
	}, nil
}

// openDay starts the budget of a day (2006-01-02) with the tokens in the ledger. It does nothing if that
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
		b.countTokens(who, strings.HasPrefix(who, guestKey), n)
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

// spenderKey returns the key under which a caller's tokens are counted: the id, or a shared key for
// callers without one and beyond maxSpenders. The caller holds mu.
func (b *Daily) spenderKey(c task.Caller, guest bool) string {
	key, id := accountKey, c.ID
	if guest {
		key = guestKey
	}
	if id == "" {
		id = c.Handle
	}
	if id == "" || len(id) > 200 {
		id = others
	}
	if _, known := b.spent[key+id]; !known && len(b.spent) >= maxSpenders {
		id = others
	}
	return key + id
}

// refuseReason returns the reason for users why n more tokens exceed a share, "" when they do not; the
// caller holds mu.
func (b *Daily) refuseReason(who string, guest bool, n int64) string {
	const (
		used  = "The portal's model has used up today's budget"
		yours = "You have used up your share of today's budget of the portal's model"
	)
	daily := b.daily
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

// countTokens adds n tokens, negative to take some back, to the spender, the guests and the whole; the
// caller holds mu.
func (b *Daily) countTokens(who string, guest bool, n int64) {
	b.spent[who] += n
	b.all += n
	if guest {
		b.guests += n
	}
}

// settleTokens replaces the tokens that were set aside by the used ones and stores them. If the ledger
// fails, they are added to the spender's next settlement.
func (b *Daily) settleTokens(ctx context.Context, day, who string, guest bool, aside, used int64) {
	b.mu.Lock()
	write := used
	if b.day == day {
		b.countTokens(who, guest, used-aside)
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

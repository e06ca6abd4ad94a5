package hub

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
	"agentsite/internal/weborigin"
)

// The values of Limits.Callers besides "".
const (
	AnyCaller      = ""
	AccountCallers = "accounts"
	ListedCallers  = "listed"
)

const (
	maxListed    = 50
	maxPerMinute = 10_000
	maxPerDay    = 10_000_000
	maxBytes     = 1 << 20
	// portalCallers is how many callers' limits all people of one other portal share, because that
	// portal can invent any number of people.
	portalCallers = 10
)

// String describes the limits for people; empty for the zero value.
func (l Limits) String() string {
	var out []string
	switch l.Callers {
	case AccountCallers:
		out = append(out, "only people with an account")
	case ListedCallers:
		out = append(out, "only "+strings.Join(l.Listed, ", "))
	}
	if l.PerMinute > 0 {
		out = append(out, fmt.Sprintf("%d calls a minute each", l.PerMinute))
	}
	if l.PerDay > 0 {
		out = append(out, fmt.Sprintf("%d calls a day in all", l.PerDay))
	}
	if l.MaxBytes > 0 {
		out = append(out, fmt.Sprintf("messages of at most %d bytes", l.MaxBytes))
	}
	return strings.Join(out, "; ")
}

func (l *Limits) checkLimits(c *fault.Check) {
	c.Field(slices.Contains([]string{AnyCaller, AccountCallers, ListedCallers}, l.Callers), "limits.callers",
		"choose everybody, accounts or listed")
	l.Listed = plaintext.CleanList(l.Listed, true)
	for i, name := range l.Listed {
		caller, ok := ofPortal(name)
		if !ok {
			caller = strings.TrimPrefix(name, "@")
			c.Field(ident.CheckName(caller) == nil, "limits.listed",
				"%.80q is neither a name of an account, nor name@portal.example, nor @portal.example", name)
		}
		l.Listed[i] = caller
	}
	c.Field(len(l.Listed) <= maxListed, "limits.listed", "list at most %d accounts", maxListed)
	c.Field(l.Callers != ListedCallers || len(l.Listed) > 0, "limits.listed", "name at least one account")
	if l.Callers != ListedCallers {
		l.Listed = nil
	}
	c.Field(l.PerMinute >= 0 && l.PerMinute <= maxPerMinute, "limits.per_minute", "use 0 (no limit) to %d",
		maxPerMinute)
	c.Field(l.PerDay >= 0 && l.PerDay <= maxPerDay, "limits.per_day", "use 0 (no limit) to %d", maxPerDay)
	c.Field(l.MaxBytes >= 0 && l.MaxBytes <= maxBytes, "limits.max_bytes", "use 0 (no limit) to %d", maxBytes)
}

// MayCall returns a Forbidden fault that says why the agent's owner refuses calls of the actor; nil if
// calls are allowed. It does not count a call.
func (a Agent) MayCall(actor ident.Actor) error {
	if isOwner(actor, a) {
		return nil
	}
	switch {
	case a.Limits.Callers == AccountCallers && !actor.IsPerson():
		return fault.New(fault.Forbidden, "The owner of %s takes calls only from people with an account. Log in first.",
			a.Name)
	case a.Limits.Callers == ListedCallers && !a.listsCaller(actor):
		return fault.New(fault.Forbidden, "The owner of %s takes calls only from some people. Ask to be added.", a.Name)
	}
	return nil
}

// listsCaller reports whether Limits.Listed contains the actor: the account name or, for a person of
// another portal, the handle or @host.
func (a Agent) listsCaller(actor ident.Actor) bool {
	if actor.Kind == ident.Portal {
		_, host, ok := strings.Cut(actor.Name, "@")
		return ok && (slices.Contains(a.Limits.Listed, actor.Name) || slices.Contains(a.Limits.Listed, "@"+host))
	}
	return actor.IsPerson() && slices.Contains(a.Limits.Listed, actor.Name)
}

// ofPortal parses name@host, or @host for all accounts of a portal. A host is recognized by its dot or
// port, because account names have neither.
func ofPortal(s string) (string, bool) {
	name, host, ok := strings.Cut(weborigin.ReadName(s), "@")
	if !ok || !strings.ContainsAny(host, ".:") || len(host) > 255 || name != "" && ident.CheckForm(name) != nil {
		return "", false
	}
	u, err := url.Parse("https://" + host)
	return name + "@" + host, err == nil && u.Host == host && u.User == nil
}

// Admit checks one call of size bytes against the limits of the agent's owner and counts it; a
// Forbidden, Invalid or RateLimited fault if the call is refused. Calls of owners are not limited.
func (s *Service) Admit(ctx context.Context, actor ident.Actor, name string, size int) error {
	a, err := s.Callable(ctx, actor, name)
	if err != nil || isOwner(actor, a) {
		return err
	}
	if err := a.MayCall(actor); err != nil {
		return err
	}
	if l := a.Limits.MaxBytes; l > 0 && size > l {
		return fault.Field("text", fmt.Sprintf("is %d bytes long; the owner of %s allows %d", size, a.Name, l))
	}
	if l := a.Limits.PerMinute; l > 0 {
		who := actor.ID
		if actor.Kind == ident.Guest {
			who = actor.Addr
		}
		wait, ok := s.callsBy.AllowRate(a.ID+" "+who, time.Minute/time.Duration(l), l)
		// A portal can invent any number of people, so all of them share a limit too.
		if ok && actor.Kind == ident.Portal {
			all := min(l*portalCallers, maxPerMinute)
			wait, ok = s.callsBy.AllowRate(a.ID+" "+actor.Addr, time.Minute/time.Duration(all), all)
		}
		if !ok {
			return fault.Limited(wait, "The owner of %s allows %d calls a minute. Try again in %s.", a.Name, l,
				max(wait.Round(time.Second), time.Second))
		}
	}
	if l := a.Limits.PerDay; l > 0 {
		today := clock.Now().UTC().Truncate(24 * time.Hour)
		days, err := s.store.Days(ctx, a.ID, today)
		if err != nil {
			return err
		}
		used := 0
		for _, d := range days {
			used += d.Calls
		}
		if !s.callsOn.Count(a.ID, today, used, l) {
			return fault.Limited(today.Add(24*time.Hour).Sub(clock.Now()),
				"The owner of %s allows %d calls a day, and they are used up. Try again after midnight UTC.", a.Name, l)
		}
	}
	return nil
}

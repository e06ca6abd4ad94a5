package notify

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Draft is what somebody wants a webhook to be. Of a change, nil leaves a
// field as it is.
type Draft struct {
	URL, Label *string
	Events     *[]Type
	// Active false pauses it; true lets it go on, also when it had failed.
	Active *bool
}

// owner demands a person who may manage their account.
func owner(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to manage webhooks.")
	}
	if !actor.May(ident.AccountAll) {
		return fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.AccountAll)
	}
	return nil
}

func errNoWebhook() error { return fault.New(fault.NotFound, "You have no such webhook.") }

// bound is what a hook's secret is sealed with. That of a push hook is a
// credential: it opens for no other origin than the one it was given for.
func (h Hook) bound() string {
	if h.Kind == Push {
		return "push/" + h.TaskID + "/" + h.Name + " " + origin(h.URL)
	}
	return "webhook/" + h.ID
}

// origin is scheme and host of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// hostOf is the site that an address is called at: all names below one that can
// be registered are one, because whoever has it makes as many as they like.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return site
	}
	return host
}

// apply puts a draft onto a hook.
func (s *Service) apply(h *Hook, d Draft, actor ident.Actor) error {
	var c fault.Check
	if d.URL != nil {
		h.URL = strings.TrimSpace(*d.URL)
		c.Field(h.URL != "", "url", "give the address that is to be told, such as https://example.org/hook")
		if h.URL != "" {
			err := s.cfg.CheckURL(h.URL)
			c.Field(err == nil, "url", "%v", err)
		}
		h.Host = hostOf(h.URL)
	}
	if d.Label != nil {
		h.Label = strings.Join(strings.Fields(*d.Label), " ")
		c.Field(utf8.RuneCountInString(h.Label) <= maxLabel && strings.IndexFunc(h.Label, unicode.IsControl) < 0 &&
			utf8.ValidString(h.Label), "label", "use at most %d characters", maxLabel)
	}
	if d.Events != nil {
		h.Events = nil
		for _, t := range Types { // once each, in our order
			if slices.Contains(*d.Events, t) {
				h.Events = append(h.Events, t)
			}
		}
		for _, t := range *d.Events {
			c.Field(slices.Contains(Types, t), "events", "%.40q is no event; choose from %s", t,
				strings.TrimSpace(JoinTypes(Types)))
			c.Field(t != AgentReported || actor.IsOperator(), "events", "only operators are told of reports")
		}
		c.Field(len(h.Events) > 0, "events", "choose at least one event")
	}
	if d.Active != nil {
		h.State, h.Reason = Paused, ""
		if *d.Active {
			h.State = Active
		}
	}
	return c.Err()
}

// AddWebhook makes a webhook of the actor's and returns its secret, which is
// not shown again.
func (s *Service) AddWebhook(ctx context.Context, actor ident.Actor, d Draft) (Hook, string, error) {
	if err := owner(actor); err != nil {
		return Hook{}, "", err
	}
	now := clock.Now()
	h := Hook{ID: ident.NewID(), Kind: Webhook, OwnerKind: string(ident.Person), OwnerID: actor.ID, State: Active,
		CreatedAt: now, UpdatedAt: now}
	if d.URL == nil {
		d.URL = new("")
	}
	if d.Events == nil {
		d.Events = &[]Type{}
	}
	if err := s.apply(&h, d, actor); err != nil {
		return Hook{}, "", err
	}
	secret := newSecret()
	h.Sealed = s.Sealer.Seal(secret, h.bound())
	if err := s.Store.AddWebhook(ctx, h, MaxWebhooks); err != nil {
		return Hook{}, "", err
	}
	return h, secret, nil
}

// Webhooks lists the actor's, oldest first.
func (s *Service) Webhooks(ctx context.Context, actor ident.Actor) ([]Hook, error) {
	if err := owner(actor); err != nil {
		return nil, err
	}
	return s.Store.Webhooks(ctx, actor.ID)
}

// Webhook returns one of the actor's.
func (s *Service) Webhook(ctx context.Context, actor ident.Actor, id string) (Hook, error) {
	if err := owner(actor); err != nil {
		return Hook{}, err
	}
	h, err := s.Store.Webhook(ctx, actor.ID, id)
	if fault.Is(err, fault.NotFound) {
		err = errNoWebhook()
	}
	return h, err
}

// SetWebhook changes one of the actor's.
func (s *Service) SetWebhook(ctx context.Context, actor ident.Actor, id string, d Draft) (Hook, error) {
	h, err := s.Webhook(ctx, actor, id)
	if err != nil {
		return Hook{}, err
	}
	if err := s.apply(&h, d, actor); err != nil {
		return Hook{}, err
	}
	h.UpdatedAt = clock.Now()
	if err := s.Store.SetWebhook(ctx, h); err != nil {
		return Hook{}, err
	}
	return s.Webhook(ctx, actor, id)
}

// DropWebhook deletes one of the actor's with what waits for it.
func (s *Service) DropWebhook(ctx context.Context, actor ident.Actor, id string) error {
	if err := owner(actor); err != nil {
		return err
	}
	err := s.Store.DropWebhook(ctx, actor.ID, id)
	if fault.Is(err, fault.NotFound) {
		err = errNoWebhook()
	}
	return err
}

// Deliveries returns the last attempts to tell a webhook of the actor's, newest
// first.
func (s *Service) Deliveries(ctx context.Context, actor ident.Actor, id string, limit int) ([]Attempt, error) {
	var c fault.Check
	c.Field(limit >= 1 && limit <= MaxAttempts, "limit", "use 1 to %d", MaxAttempts)
	h, err := s.Webhook(ctx, actor, id)
	if err == nil {
		err = c.Err()
	}
	if err != nil {
		return nil, err
	}
	return s.Store.Attempts(ctx, h.ID, limit)
}

// Test tells a webhook of the actor's something at once, whatever its state,
// and returns what came of it.
func (s *Service) Test(ctx context.Context, actor ident.Actor, id string) (Attempt, error) {
	h, err := s.Webhook(ctx, actor, id)
	if err != nil {
		return Attempt{}, err
	}
	if wait, ok := s.tests.Allow(actor.ID); !ok {
		return Attempt{}, fault.Limited(wait, "You tested much in a short time. Wait a moment.")
	}
	e := Event{ID: newEventID(), Type: Tested, At: clock.Now()}
	r, err := s.try(ctx, h, e, tested(h))
	if err != nil {
		return Attempt{}, err
	}
	return r.Attempt, s.Store.AddAttempt(context.WithoutCancel(ctx), h.ID, r.Attempt)
}

// tested is the body of a test.
func tested(h Hook) []any {
	return []any{message{Tested, stamp(clock.Now()), map[string]any{"webhook_id": h.ID, "text": "This is a test."}}}
}

// newEventID names an event for its receivers.
func newEventID() string { return "evt_" + ident.NewID() }

// stamp formats a time as the API does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

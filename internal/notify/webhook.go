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
	"agentsite/internal/weborigin"
)

// Draft holds the requested fields of a webhook. nil leaves a field as it is in a change, and unset
// in a new webhook.
type Draft struct {
	URL, Label *string
	Events     *[]Type
	// Active set to false pauses the webhook. Set to true it continues the webhook, also one that
	// the portal stopped.
	Active *bool
}

// checkOwner returns a fault unless the actor is a person, with a login or with a token for the
// whole account.
func checkOwner(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to manage webhooks.")
	}
	if !actor.May(ident.AccountAll) {
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}

func errNoWebhook() error { return fault.New(fault.NotFound, "You have no such webhook.") }

// sealContext returns the context that a hook's secret is sealed with: it opens with the same
// context only. The secret of a push hook is a credential for one receiver, so its context has the
// origin of the URL.
func (h Hook) sealContext() string {
	if h.Kind == Push {
		return "push/" + h.TaskID + "/" + h.Name + " " + originOf(h.URL)
	}
	return "webhook/" + h.ID
}

// originOf returns scheme and host of an address in lower case, "" for an invalid one.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// hostOf returns the site of an address. All names below one registrable domain count as one site,
// because its holder can create any number of names.
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

// applyDraft checks a draft and writes its fields to a hook. After an error h is partly changed and
// must not be stored.
func (s *Service) applyDraft(h *Hook, d Draft, actor ident.Actor) error {
	var c fault.Check
	if d.URL != nil {
		h.URL = weborigin.ASCIIAddress(weborigin.CompleteAddress(strings.TrimSpace(*d.URL)))
		c.Field(h.URL != "", "url", "give the address for the requests, such as https://example.org/hook")
		if h.URL != "" {
			err := s.cfg.Addresses.CheckURL(h.URL)
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
		for _, t := range Types { // removes repeated types and gives all hooks the same order
			if slices.Contains(*d.Events, t) {
				h.Events = append(h.Events, t)
			}
		}
		for _, t := range *d.Events {
			c.Field(slices.Contains(Types, t), "events", "%.40q is no event; choose from %s", t,
				strings.TrimSpace(JoinTypes(Types)))
			c.Field(t != AgentReported || actor.IsOperator(), "events", "only operators can choose reports")
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

// AddWebhook creates a webhook for the actor. It also returns the signing secret, which cannot be
// read again.
func (s *Service) AddWebhook(ctx context.Context, actor ident.Actor, d Draft) (Hook, string, error) {
	if err := checkOwner(actor); err != nil {
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
	if err := s.applyDraft(&h, d, actor); err != nil {
		return Hook{}, "", err
	}
	secret := newSecret()
	h.Sealed = s.Sealer.Seal(secret, h.sealContext())
	if err := s.Store.AddWebhook(ctx, h, MaxWebhooks); err != nil {
		return Hook{}, "", err
	}
	return h, secret, nil
}

// Webhooks lists the actor's webhooks, oldest first. The actor needs the scope of the whole
// account.
func (s *Service) Webhooks(ctx context.Context, actor ident.Actor) ([]Hook, error) {
	if err := checkOwner(actor); err != nil {
		return nil, err
	}
	return s.Store.Webhooks(ctx, actor.ID)
}

// Webhook returns one of the actor's webhooks, a NotFound fault for one of another account.
func (s *Service) Webhook(ctx context.Context, actor ident.Actor, id string) (Hook, error) {
	if err := checkOwner(actor); err != nil {
		return Hook{}, err
	}
	h, err := s.Store.Webhook(ctx, actor.ID, id)
	if fault.Is(err, fault.NotFound) {
		err = errNoWebhook()
	}
	return h, err
}

// SetWebhook changes the fields that are set in d and returns the webhook as it is stored then.
func (s *Service) SetWebhook(ctx context.Context, actor ident.Actor, id string, d Draft) (Hook, error) {
	h, err := s.Webhook(ctx, actor, id)
	if err != nil {
		return Hook{}, err
	}
	if err := s.applyDraft(&h, d, actor); err != nil {
		return Hook{}, err
	}
	h.UpdatedAt = clock.Now()
	if err := s.Store.SetWebhook(ctx, h); err != nil {
		return Hook{}, err
	}
	return s.Webhook(ctx, actor, id)
}

// DropWebhook deletes one of the actor's webhooks with its waiting events; a NotFound fault if the
// actor has no such webhook.
func (s *Service) DropWebhook(ctx context.Context, actor ident.Actor, id string) error {
	if err := checkOwner(actor); err != nil {
		return err
	}
	err := s.Store.DropWebhook(ctx, actor.ID, id)
	if fault.Is(err, fault.NotFound) {
		err = errNoWebhook()
	}
	return err
}

// Deliveries returns the last attempts to send events to one of the actor's webhooks, newest first.
// limit is 1 to MaxAttempts.
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

// SendTest sends a test event to one of the actor's webhooks at once, also to one that is paused or
// stopped, and returns the result. Tests are limited per account.
func (s *Service) SendTest(ctx context.Context, actor ident.Actor, id string) (Attempt, error) {
	h, err := s.Webhook(ctx, actor, id)
	if err != nil {
		return Attempt{}, err
	}
	if wait, ok := s.tests.Allow(actor.ID); !ok {
		return Attempt{}, fault.Limited(wait, "You tested much in a short time. Wait a moment.")
	}
	e := Event{ID: newEventID(), Type: Tested, At: clock.Now()}
	r, err := s.sendBodies(ctx, h, e, testBody(h))
	if err != nil {
		return Attempt{}, err
	}
	return r.Attempt, s.Store.AddAttempt(context.WithoutCancel(ctx), h.ID, r.Attempt)
}

// testBody returns the body of a test event, in the same form as other bodies.
func testBody(h Hook) []any {
	return []any{message{Tested, formatTime(clock.Now()),
		map[string]any{"webhook_id": h.ID, "text": "This is a test."}}}
}

// newEventID returns a random id by which receivers detect a repeated event.
func newEventID() string { return "evt_" + ident.NewID() }

// formatTime formats a time in the notation of the API, UTC with milliseconds.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

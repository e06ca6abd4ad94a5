package hub

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Notice is a notification of an account. The store keeps a limited number of the newest ones of each
// account.
type Notice struct {
	ID        string
	AccountID string
	Kind      string // one of the Notice constants below
	Subject   string // name of the agent or other subject
	Text      string // one or two sentences for people
	Href      string // path of a page of this portal
	CreatedAt time.Time
	ReadAt    time.Time // zero if unread
}

// The values of Notice.Kind.
const (
	NoticeDown     = "down"     // an agent stopped answering probes
	NoticeUp       = "up"       // an agent answers again
	NoticeOffer    = "offer"    // an owner offers an agent
	NoticeTaken    = "taken"    // an offer was accepted or declined
	NoticeShared   = "shared"   // the account became a co-owner
	NoticeUnshared = "unshared" // the account is no longer a co-owner
	NoticeReport   = "report"   // a report about an agent arrived or was closed
	NoticeHeld     = "held"     // the operator withdrew or released an agent
	NoticeProof    = "proof"    // a proof of an address or domain ended
	NoticePeer     = "peer"     // another portal misbehaved, moved, or many vanished
	NoticeWebhook  = "webhook"  // a webhook was stopped after failing for long
	NoticeInvited  = "invited"  // a person invited the account to a conversation
	NoticeAdded    = "added"    // a person added the account to one, as the account allowed before
	NoticeMention  = "mention"  // a person named the account in a conversation
	NoticeGuesses  = "guesses"  // many wrong passwords were tried for the account
)

// maxNotices is how many notices a list returns.
const maxNotices = 100

// Notifier stores notices for accounts and passes them to a NoticeQueue.
type Notifier struct {
	store noticeStore
	queue NoticeQueue
	log   *slog.Logger
}

// NoticeQueue delivers notices outside the pages, for example by mail.
type NoticeQueue interface {
	// QueueNotice takes a notice that was stored for the accounts. It must not block.
	QueueNotice(n Notice, accounts []string)
}

type noticeStore interface {
	Notices
	CoOwners(ctx context.Context, agentID string) ([]Owner, error)
}

// List returns the actor's newest notices, newest first, at most maxNotices.
func (s *Notifier) List(ctx context.Context, actor ident.Actor) ([]Notice, error) {
	if err := requireAccount(actor, ident.AgentsRead); err != nil {
		return nil, err
	}
	return s.store.Notices(ctx, actor.ID, maxNotices)
}

// CountUnread returns the number of unread notices; 0 for actors that have none or may not read them.
func (s *Notifier) CountUnread(ctx context.Context, actor ident.Actor) (int, error) {
	if !actor.IsPerson() || !actor.May(ident.AgentsRead) {
		return 0, nil
	}
	return s.store.Unread(ctx, actor.ID)
}

// MarkRead marks the actor's notices up to and including upTo, a notice id, as read.
func (s *Notifier) MarkRead(ctx context.Context, actor ident.Actor, upTo string) error {
	if err := requireAccount(actor, ident.AgentsWrite); err != nil {
		return err
	}
	if !ident.ValidID(upTo) {
		return fault.New(fault.Invalid, "There is no such notice.")
	}
	return s.store.MarkNotices(ctx, actor.ID, upTo)
}

// requireAccount returns a fault unless the actor has an account and a credential with the scope.
func requireAccount(actor ident.Actor, scope ident.Scope) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in first.")
	}
	if !actor.May(scope) {
		return fault.New(fault.Forbidden, "%s", scope.DescribeMissing())
	}
	return nil
}

// Notify stores a notice for each account and queues it for delivery. Errors are only logged, because a
// notice must not fail the action that caused it.
func (s *Notifier) Notify(ctx context.Context, accounts []string, n Notice) {
	n.CreatedAt = clock.Now()
	// Agents published by a domain alone have no owner account.
	if accounts = slices.DeleteFunc(accounts, func(id string) bool { return id == "" }); len(accounts) == 0 {
		return
	}
	for _, id := range accounts {
		n.ID, n.AccountID = ident.NewID(), id
		if err := s.store.AddNotice(ctx, n); err != nil {
			s.log.Warn("store a notice", "account", id, "kind", n.Kind, "error", err)
		}
	}
	if s.queue != nil {
		s.queue.QueueNotice(n, accounts)
	}
}

// NotifyOwners is Notify for the owner and the co-owners of an agent.
func (s *Notifier) NotifyOwners(ctx context.Context, a Agent, n Notice) {
	to := []string{a.OwnerID}
	list, err := s.store.CoOwners(ctx, a.ID)
	if err != nil {
		s.log.Warn("list co-owners", "agent", a.ID, "error", err)
	}
	for _, o := range list {
		to = append(to, o.ID)
	}
	n.Subject = a.Name
	if n.Href == "" {
		n.Href = "/agents/" + a.Name
	}
	s.Notify(ctx, to, n)
}

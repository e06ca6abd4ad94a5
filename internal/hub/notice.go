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

// Notice is a notification of an account, shown on its pages.
type Notice struct {
	ID        string
	AccountID string
	Kind      string // one of the constants below
	Subject   string // the agent's name
	Text      string // one or two sentences
	Href      string // a path of this portal
	CreatedAt time.Time
	ReadAt    time.Time // zero: unread
}

// The kinds of notices.
const (
	NoticeDown     = "down"     // an agent stopped answering
	NoticeUp       = "up"       // and answers again
	NoticeOffer    = "offer"    // an owner offers an agent
	NoticeTaken    = "taken"    // an offer was accepted
	NoticeShared   = "shared"   // the account became a co-owner
	NoticeUnshared = "unshared" // and took it back
	NoticeReport   = "report"   // a complaint arrived
	NoticeHeld     = "held"     // the operator withdrew an agent, or gave it back
	NoticeProof    = "proof"    // a proof ended
	NoticePeer     = "peer"     // another portal lies, moved, or many vanished
	NoticeWebhook  = "webhook"  // a webhook was stopped, because it took nothing for long
)

// maxNotices is how many notices a page shows.
const maxNotices = 100

// Notifier stores notifications of accounts.
type Notifier struct {
	store noticeStore
	queue NoticeQueue
	log   *slog.Logger
}

// NoticeQueue mails notices or shows them in another way.
type NoticeQueue interface {
	// QueueNotice takes a notice that was stored for accounts. It must not block.
	QueueNotice(n Notice, accounts []string)
}

type noticeStore interface {
	Notices
	CoOwners(ctx context.Context, agentID string) ([]Owner, error)
}

// List lists the actor's notifications, newest first.
func (s *Notifier) List(ctx context.Context, actor ident.Actor) ([]Notice, error) {
	if err := requireAccount(actor, ident.AgentsRead); err != nil {
		return nil, err
	}
	return s.store.Notices(ctx, actor.ID, maxNotices)
}

// CountUnread counts the notices the actor has not seen.
func (s *Notifier) CountUnread(ctx context.Context, actor ident.Actor) (int, error) {
	if !actor.IsPerson() || !actor.May(ident.AgentsRead) {
		return 0, nil
	}
	return s.store.Unread(ctx, actor.ID)
}

// MarkRead marks the actor's notices up to one of them as seen.
func (s *Notifier) MarkRead(ctx context.Context, actor ident.Actor, upTo string) error {
	if err := requireAccount(actor, ident.AgentsWrite); err != nil {
		return err
	}
	if !ident.ValidID(upTo) {
		return fault.New(fault.Invalid, "There is no such notice.")
	}
	return s.store.MarkNotices(ctx, actor.ID, upTo)
}

// requireAccount demands a person with a credential that covers the scope.
func requireAccount(actor ident.Actor, scope ident.Scope) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in first.")
	}
	if !actor.May(scope) {
		return fault.New(fault.Forbidden, "This token lacks the scope %q.", scope)
	}
	return nil
}

// Notify stores a notice for accounts. Errors are logged, because no caller waits for it.
func (s *Notifier) Notify(ctx context.Context, accounts []string, n Notice) {
	n.CreatedAt = clock.Now()
	// Agents published by a domain alone belong to no account.
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

// NotifyOwners stores a notice for the owner and co-owners of an agent.
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

package app

import (
	"context"
	"log/slog"
	"slices"

	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/store"
)

// notifier mails urgent notices to accounts that gave an address. A mail that cannot be sent is only logged,
// because the notice itself is stored.
type notifier struct {
	mail account.Mailer // nil if the operator configured none
	db   *store.DB
	url  string
	log  *slog.Logger

	queue chan mailNotice
}

// mailNotice is one notice for some accounts.
type mailNotice struct {
	notice   hub.Notice
	accounts []string
}

// urgent are the kinds of notices that are also mailed.
var urgent = []string{hub.NoticeDown, hub.NoticeUp, hub.NoticeOffer, hub.NoticeHeld, hub.NoticeReport, hub.NoticePeer,
	hub.NoticeWebhook}

func newNotifier(mail account.Mailer, db *store.DB, url string, log *slog.Logger) *notifier {
	return &notifier{mail: mail, db: db, url: url, log: log, queue: make(chan mailNotice, 256)}
}

// QueueNotice implements hub.NoticeQueue: it queues a notice for mailing.
func (t *notifier) QueueNotice(n hub.Notice, accounts []string) {
	if t.mail == nil || !slices.Contains(urgent, n.Kind) {
		return
	}
	select {
	case t.queue <- mailNotice{n, accounts}:
	default:
		t.log.Warn("too many notices wait to be mailed; one is only on the page", "kind", n.Kind)
	}
}

// run mails notices until ctx ends.
func (t *notifier) run(ctx context.Context) error {
	for {
		select {
		case l := <-t.queue:
			for _, id := range l.accounts {
				t.sendMail(ctx, id, l.notice)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (t *notifier) sendMail(ctx context.Context, accountID string, n hub.Notice) {
	if accountID == "" {
		return
	}
	a, err := t.db.Accounts.AccountByID(ctx, accountID)
	if err != nil || a.Email == "" || a.Disabled() {
		return
	}
	text := n.Text + "\n\n" + t.url + n.Href + "\n\nYou get this because an agent or a webhook of yours on " + t.url +
		" is concerned. To get no such mails, take the address off your account page.\n"
	if err := t.mail.Send(ctx, a.Email, "AgentSite: "+n.Subject, text); err != nil && ctx.Err() == nil {
		t.log.Warn("mail a notice", "account", accountID, "error", err)
	}
}

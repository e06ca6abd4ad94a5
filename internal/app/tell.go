package app

import (
	"context"
	"log/slog"
	"slices"

	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/store"
)

// notifier mails urgent notices to accounts with a mail address. If a mail cannot be sent, that is only
// logged, because the notice itself is stored.
type notifier struct {
	mail account.Mailer // nil if the operator configured no mail server
	db   *store.DB
	url  string
	log  *slog.Logger

	queue chan mailNotice
}

// mailNotice is a notice that waits to be mailed to some accounts, given by id.
type mailNotice struct {
	notice   hub.Notice
	accounts []string
}

// urgent lists the kinds of notices that are also mailed, because they need a reaction or end an outage.
var urgent = []string{hub.NoticeDown, hub.NoticeUp, hub.NoticeOffer, hub.NoticeHeld, hub.NoticeReport, hub.NoticePeer,
	hub.NoticeWebhook}

func newNotifier(mail account.Mailer, db *store.DB, url string, log *slog.Logger) *notifier {
	return &notifier{mail: mail, db: db, url: url, log: log, queue: make(chan mailNotice, 256)}
}

// QueueNotice implements hub.NoticeQueue. It does not block: a notice that is not urgent, or that finds
// the queue full, is not mailed.
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

// run mails the queued notices until ctx ends.
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
	if p, err := t.db.Profiles.Profile(ctx, accountID, ""); err != nil || slices.Contains(p.Muted, n.Kind) {
		return
	}
	text := n.Text + "\n\n" + t.url + n.Href + "\n\nYou get this because an agent or a webhook of yours on " + t.url +
		" is concerned. To get no such mails, take the address off your account page.\n"
	if err := t.mail.Send(ctx, a.Email, "AgentSite: "+n.Subject, text); err != nil && ctx.Err() == nil {
		t.log.Warn("mail a notice", "account", accountID, "error", err)
	}
}

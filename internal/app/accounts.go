package app

import (
	"context"
	"log/slog"

	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/settings"
)

// openAccounts builds the accounts and the mail of notices.
func (p *Portal) openAccounts(policy account.Policy, loopback bool) error {
	p.live = adjust.NewSnapshot(withPolicy(p.set.Adjustable(), policy))
	bounds := p.set.Bounds.Credentials
	cfg := account.Config{Policy: policy, Guests: p.set.GuestsAllowed, Live: p.live, URL: p.url.String(), Log: p.log,
		CheapHashes: p.set.CheapHashes, MaxTokens: int(bounds.TokensPerAccount),
		MaxSessions: int(bounds.SessionsPerAccount), MaxWaiting: int(bounds.SignInQueue),
		Notices: guessNotices{p.db.Hub, p.log}}
	if p.set.SMTP != "" {
		m, err := settings.ParseMail(p.set.SMTP, p.set.MailFrom)
		if err != nil {
			return err
		}
		cfg.Mailer = m
	}
	p.notifier = newNotifier(cfg.Mailer, p.db, p.url.String(), p.log)
	p.accounts = account.New(p.db.Accounts, cfg)
	p.settings = newSettings(p, defaultPolicy(loopback), policy)
	return nil
}

// guessNotices implements account.Notices.
type guessNotices struct {
	store hub.Notices
	log   *slog.Logger
}

// NotifyGuesses implements account.Notices. It is not mailed, because an attacker could cause mails to any
// person.
func (n guessNotices) NotifyGuesses(ctx context.Context, accountID string) {
	err := n.store.AddNotice(ctx, hub.Notice{ID: ident.NewID(), AccountID: accountID, Kind: hub.NoticeGuesses,
		Subject: "Sign-in", Href: "/account", CreatedAt: clock.Now(), Text: "Many wrong passwords were tried for your account. " +
			"It stays open: your password works. If you did not try them, make sure that it is long and used nowhere else."})
	if err != nil {
		n.log.Warn("store a notice", "account", accountID, "kind", hub.NoticeGuesses, "error", err)
	}
}

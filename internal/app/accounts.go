package app

import (
	"agentsite/internal/account"
	"agentsite/internal/settings"
)

// openAccounts builds the accounts and the mail of notices.
func (p *Portal) openAccounts(policy account.Policy) error {
	bounds := p.set.Bounds.Credentials
	cfg := account.Config{Policy: policy, Guests: p.set.GuestsAllowed, URL: p.url.String(), Log: p.log,
		CheapHashes: p.set.CheapHashes, MaxTokens: int(bounds.TokensPerAccount),
		MaxSessions: int(bounds.SessionsPerAccount)}
	if p.set.SMTP != "" {
		m, err := settings.ParseMail(p.set.SMTP, p.set.MailFrom)
		if err != nil {
			return err
		}
		cfg.Mailer = m
	}
	p.notifier = newNotifier(cfg.Mailer, p.db, p.url.String(), p.log)
	p.accounts = account.New(p.db.Accounts, cfg)
	return nil
}

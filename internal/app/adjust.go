package app

import (
	"context"
	"fmt"
	"maps"

	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/store"
)

// applyStored makes the settings that operators stored in the browser apply, where no flag or variable is given. Those
// that are no longer valid are logged and left out, so that the portal starts.
func applyStored(ctx context.Context, p *Portal, cfg Config) error {
	stored, err := p.db.Adjusted.Settings(ctx)
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	p.given = cfg.Adjustable()
	for _, s := range stored {
		if cfg.Given[s.Name] != "" {
			continue
		}
		next, err := cfg.With(s.Name, s.Value)
		if err != nil {
			p.log.Warn("a stored setting is not valid and does not apply", "setting", s.Name, "error", err)
			continue
		}
		cfg = next
	}
	before := p.set.Bounds.Disk
	if p.set, err = cfg.Parse(); err != nil || p.set.Bounds.Disk == before {
		return err
	}
	// The database was opened with other bounds, because it holds the settings.
	if err := p.db.Close(); err != nil {
		return err
	}
	p.db, err = store.OpenWith(ctx, cfg.Data, storeConfig(cfg, p.set.Bounds.Disk), p.log)
	return err
}

// newSettings returns the service by which operators change settings in the browser.
func newSettings(p *Portal, usual, policy account.Policy) *adjust.Service {
	return adjust.New(adjust.Config{Store: p.db.Adjusted, Snapshot: p.live, Given: p.set.Given,
		Started: withPolicy(p.set.Adjustable(), policy), Defaults: withPolicy(p.given, usual),
		Check: func(name, value string) error {
			_, err := p.set.With(name, value)
			return err
		},
		Passwords: p.accounts})
}

// withPolicy returns values in which the settings that have a default are spelled out.
func withPolicy(values adjust.Values, policy account.Policy) adjust.Values {
	out := maps.Clone(values)
	if out[adjust.Accounts] == "" {
		out[adjust.Accounts] = string(policy)
	}
	if out[adjust.Guests] == "" {
		out[adjust.Guests] = adjust.On
	}
	return out
}

// defaultPolicy returns the policy for sign-up of a portal without the setting.
func defaultPolicy(loopback bool) account.Policy {
	if loopback {
		return account.Open
	}
	return account.Invite
}

package app

import (
	"agentsite/internal/quota"
	"agentsite/internal/settings"
	"agentsite/store"
	"agentsite/store/space"
)

// storeConfig passes the operator's bounds on to the database.
func storeConfig(cfg Config, l settings.DiskLimits) store.Config {
	return store.Config{
		Database: cfg.Database,
		KeyFile:  cfg.KeyFile,
		Quota: quota.Limits{
			quota.Account: {Total: l.Account, Daily: l.AccountDaily},
			quota.Address: {Total: l.Guests, Daily: l.GuestsDaily},
			quota.Agent:   {Total: l.Agent, Daily: l.AgentDaily},
			quota.Portal:  {Total: l.Portal, Daily: l.PortalDaily},
		},
		Space: space.Config{Floor: l.Floor, ShortText: l.ShortText, Reserve: l.Reserve},
	}
}

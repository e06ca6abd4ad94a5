package settings

// DiskLimits bound the bytes that one account, network of guests, agent or portal may store: all, and
// those added on one day (UTC).
type DiskLimits struct {
	Account, AccountDaily int64
	Guests, GuestsDaily   int64
	Agent, AgentDaily     int64
	Portal, PortalDaily   int64
	// Floor is the free space of the disk below which only ShortText bytes of an account are stored at
	// once. Reserve is the size of the file that is given up when the disk is full.
	Floor, ShortText, Reserve int64
}

func defaultDisk() DiskLimits {
	return DiskLimits{
		// An account may keep a year of long conversations and a few hundred files.
		Account: 2 << 30, AccountDaily: 1 << 30,
		Guests: 256 << 20, GuestsDaily: 128 << 20,
		Agent: 1 << 30, AgentDaily: 512 << 20,
		Portal: 1 << 30, PortalDaily: 512 << 20,
		Floor: 256 << 20, ShortText: 16 << 10, Reserve: 64 << 20,
	}
}

// maxStored is the greatest size of a bound in bytes, beyond any disk.
const maxStored = 1 << 50

func (d *DiskLimits) list() []Limit {
	return []Limit{
		{"stored-per-account", UnitBytes, 1 << 20, maxStored, &d.Account},
		{"stored-per-account-daily", UnitBytes, 1 << 20, maxStored, &d.AccountDaily},
		{"stored-per-guest-network", UnitBytes, 1 << 20, maxStored, &d.Guests},
		{"stored-per-guest-network-daily", UnitBytes, 1 << 20, maxStored, &d.GuestsDaily},
		{"stored-per-agent", UnitBytes, 1 << 20, maxStored, &d.Agent},
		{"stored-per-agent-daily", UnitBytes, 1 << 20, maxStored, &d.AgentDaily},
		{"stored-per-portal", UnitBytes, 1 << 20, maxStored, &d.Portal},
		{"stored-per-portal-daily", UnitBytes, 1 << 20, maxStored, &d.PortalDaily},
		{"disk-free", UnitBytes, 0, maxStored, &d.Floor},
		{"disk-short-text", UnitBytes, 0, 1 << 20, &d.ShortText},
		{"disk-reserve", UnitBytes, 0, 1 << 40, &d.Reserve},
	}
}

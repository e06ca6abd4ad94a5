package quota_test

import (
	"strings"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/quota"
)

func TestUsage_Check(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 21, 0, 0, 0, time.UTC)
	bound := quota.Bound{Total: 10 << 20, Daily: 4 << 20}
	for name, c := range map[string]struct {
		used  quota.Usage
		add   int64
		says  string // "" if it fits
		retry time.Duration
	}{
		"fits":          {quota.Usage{Total: 1 << 20, Today: 1 << 20, Bound: bound}, 3 << 20, "", 0},
		"fits exactly":  {quota.Usage{Total: 9 << 20, Bound: bound}, 1 << 20, "", 0},
		"total":         {quota.Usage{Total: 9 << 20, Bound: bound}, 1<<20 + 1, "You have stored 9 MiB of 10 MiB on this portal, and this needs 1 MiB. Delete some.", time.Hour},
		"day":           {quota.Usage{Total: 5 << 20, Today: 4 << 20, Bound: bound}, 1, "You have stored 4 MiB today, of 4 MiB a day, and this needs 1 bytes. Try again after 2026-11-26 00:00 UTC.", 3 * time.Hour},
		"above, adding": {quota.Usage{Total: 11 << 20, Bound: bound}, 1, "11 MiB of 10 MiB", time.Hour},
		"no bound":      {quota.Usage{Total: 1 << 50, Today: 1 << 50}, 1 << 50, "", 0},
	} {
		err := c.used.Check(c.add, now, "You have", "Delete some.")
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		f := fault.As(err)
		if f == nil || f.Kind != fault.RateLimited || !strings.Contains(f.Safe, c.says) || f.RetryAfter != c.retry {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.77": "192.0.2.0/24", "::ffff:192.0.2.77": "192.0.2.0/24", "2001:db8:1:2:3::4": "2001:db8:1:2::/64",
		"2001:db8:1:2::/64": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "": "", "a name": "",
	} {
		if got := quota.Network(addr); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}

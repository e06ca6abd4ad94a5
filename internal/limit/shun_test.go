package limit_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/limit"
)

func TestShun_WhoGoesOnThoughRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := limit.NewPenaltyBox()
		bad, near, calm := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("192.0.2.1")
		for range 100 {
			s.Penalize(bad)
			for _, proxy := range []string{"127.0.0.1", "::1", "10.0.0.1", "::ffff:192.168.0.1"} {
				s.Penalize(netip.MustParseAddr(proxy))
			}
		}
		for range 20 {
			s.Penalize(calm)
		}
		if !s.Contains(bad) || !s.Contains(near) {
			t.Error("who was refused a hundred times is not shunned")
		}
		for _, a := range []string{"192.0.2.1", "2001:db8:0:1::1", "127.0.0.1", "::1", "10.0.0.1", "192.168.0.1"} {
			if s.Contains(netip.MustParseAddr(a)) {
				t.Error(a, "is shunned")
			}
		}
		time.Sleep(11 * time.Second)
		if s.Contains(bad) {
			t.Error("it is shunned for ever")
		}
		for range 12 { // a minute of being told to wait
			for range 20 {
				s.Penalize(calm)
			}
			time.Sleep(5 * time.Second)
		}
		if s.Contains(calm) {
			t.Error("who is refused now and then is shunned")
		}
	})
}

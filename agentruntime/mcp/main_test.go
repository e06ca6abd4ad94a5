package mcp

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// twoMoods is the real guarded client, allowed to call itself: it gives far
// sides that will never answer a moment, and the others time even on a busy
// machine.
type twoMoods struct{ patient, impatient http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (m twoMoods) RoundTrip(r *http.Request) (*http.Response, error) {
	if p := r.URL.Path; strings.HasPrefix(p, "/hang") || strings.HasPrefix(p, "/stall") {
		return m.impatient.RoundTrip(r)
	}
	return m.patient.RoundTrip(r)
}

func transport(t testing.TB) http.RoundTripper {
	open := func(wait time.Duration) http.RoundTripper {
		c := egress.New(egress.Config{
			AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			FirstByte: wait, Idle: wait, PerHost: 64,
		})
		t.Cleanup(c.CloseIdle)
		return c.RoundTripper()
	}
	return twoMoods{patient: open(20 * time.Second), impatient: open(400 * time.Millisecond)}
}

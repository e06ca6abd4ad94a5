package mcp

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transport is the real guarded client, allowed to call itself.
func transport(t testing.TB) http.RoundTripper {
	c := egress.New(egress.Config{
		AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		FirstByte: time.Minute, PerHost: 64,
	})
	t.Cleanup(c.CloseIdle)
	return c.RoundTripper()
}

package remote

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// impatience is how long the client waits for a far side in these tests; it
// must leave a busy machine time to answer.
const impatience = 400 * time.Millisecond

// transport is the real guarded client, impatient and allowed to call itself.
func transport(t testing.TB) http.RoundTripper {
	c := egress.New(egress.Config{
		AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		FirstByte: impatience, Idle: impatience, PerHost: 64,
	})
	t.Cleanup(c.CloseIdle)
	return c.RoundTripper()
}

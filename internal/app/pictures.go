package app

import (
	"net/http"
	"net/netip"

	"agentsite/handlers/pages/pictures"
	"agentsite/internal/egress"
)

// pictureClient returns the client that fetches pictures from addresses that messages name. It signs nothing and keeps
// no cookies, because the servers of pictures shall learn nothing of readers.
func pictureClient(allow []netip.Prefix) http.RoundTripper {
	return egress.New(egress.Config{AllowCIDR: allow, UserAgent: "agentsite/" + Release(), PerHost: 2, MaxIdle: 4,
		MaxBody: pictures.MaxBytes, Total: pictures.Total}).RoundTripper()
}

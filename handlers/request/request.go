// Package request reads requests: the address and the actor of a caller, bodies,
// parameters, and the chain and budget of calls between agents. It knows no
// protocol; each protocol has a package beside it.
package request

import (
	"net"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// ClientAddr returns the client's address for rate limits. The router's middleware determines it, because
// it knows the trusted proxies. An IPv6 address is reduced to its /64, which one client can use entirely.
func ClientAddr(r *http.Request) string {
	ip := net.ParseIP(middleware.GetClientIP(r.Context()))
	switch {
	case ip == nil:
		return "unknown"
	case ip.To4() != nil:
		return ip.String()
	}
	return ip.Mask(net.CIDRMask(64, 128)).String() + "/64"
}

// ClientIP returns the client's full address, for rules about networks of any size. The same middleware
// as for ClientAddr determines it.
func ClientIP(r *http.Request) string {
	if ip := net.ParseIP(middleware.GetClientIP(r.Context())); ip != nil {
		return ip.String()
	}
	return "unknown"
}

// PathParam returns a parameter of the path, decoded once. The router returns the raw path only if it differs from
// the default encoding of the decoded one.
func PathParam(r *http.Request, key string) string {
	raw := chi.URLParam(r, key)
	if r.URL.RawPath == "" {
		return raw
	}
	if decoded, err := url.PathUnescape(raw); err == nil {
		return decoded
	}
	return raw
}

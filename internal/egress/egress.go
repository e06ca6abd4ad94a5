// Package egress is the only HTTP client that may connect to an address from outside: an agent's
// endpoint, a card, a webhook, another portal. It refuses addresses that are not globally routable
// unless the operator allowed them, follows no redirects, ignores proxy variables, keeps no cookies,
// and bounds every size, wait and number. It does not depend on agents, protocols or credentials;
// protocol code uses its RoundTripper.
//
// The decisive check of the address is in Dialer.Control, after every name was looked up and just
// before the kernel connects. Earlier checks only give better error messages; security does not rely on
// them.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"time"
)

// Resolver looks host names up. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Signer adds a signature to requests.
type Signer interface {
	// SignRequest may set headers and may replace the body by an equal one. An error cancels the
	// request. It must not block.
	SignRequest(r *http.Request) error
}

// Config holds the settings of a Client. The zero value is valid; each field states its default.
type Config struct {
	// AllowCIDR are networks that the client may connect to although they are not globally routable.
	// Addresses that embed another one (NAT64, 6to4, Teredo) stay refused, because their target cannot
	// be checked.
	AllowCIDR []netip.Prefix
	// Resolver defaults to Go's own, because that of the C library reads "127.1" and "0x7f000001" as
	// addresses.
	Resolver Resolver
	// UserAgent is sent when the request has none; default "agentsite".
	UserAgent string
	// RootCAs replaces the system's trusted certificates; nil keeps them.
	RootCAs *x509.CertPool
	// Signer signs each request just before it is sent, after the wait for a slot; nil signs none.
	Signer Signer
	// HTTP2 lets hosts choose HTTP/2, which has many requests on one connection. It is for callers that
	// know the called service and read whole answers.
	HTTP2 bool
	// Public is for traffic that needs no secrecy for decades: keys are agreed on by elliptic curves
	// alone. ML-KEM doubles the size of a short request on a new connection.
	Public bool
	// Encoded returns compressed answers as they are if the request asked for them in its
	// Accept-Encoding. The caller must bound the decompressed size.
	Encoded bool
	// Deny returns the reason why the client may not connect to a globally routable address, or "" if it
	// may. It must not block. nil denies no address.
	Deny func(netip.Addr) string
	// Dial connects to an address that was looked up and is allowed. The default is a net.Dialer, which
	// checks the address again as the kernel connects. Tests use networks in memory.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// PerHost is the maximum number of concurrent requests to one host and port; default 8. Further
	// requests wait until a slot is free or their context ends.
	PerHost int
	// MaxIdle is the maximum number of idle connections; default 64. A caller with many hosts and
	// little traffic should keep few, and for a short time, because both ends of an open connection
	// send keep-alive probes.
	MaxIdle int
	// KeepIdle is the time after which an idle connection is closed; default a minute.
	KeepIdle time.Duration
	// MaxBody is the maximum size of a response body in bytes; default 8 MiB. Reading more is a TooLarge
	// error.
	MaxBody int64
	// ConnectTimeout covers lookup, TCP and TLS; default 10 s.
	ConnectTimeout time.Duration
	// FirstByte is the maximum wait for the response headers after the connection is made; default 30 s.
	// Patient overrides it for single callers.
	FirstByte time.Duration
	// Idle is the maximum pause while a body is read; default 60 s.
	Idle time.Duration
	// Total is the maximum time of a request including its body; default 15 min.
	Total time.Duration
}

// maxHeaderBytes is the maximum size of the response header.
const maxHeaderBytes = 64 << 10

func (c Config) withDefaults() Config {
	if c.Resolver == nil {
		c.Resolver = &net.Resolver{PreferGo: true}
	}
	if c.UserAgent == "" {
		c.UserAgent = "agentsite"
	}
	if c.PerHost <= 0 {
		c.PerHost = 8
	}
	if c.MaxIdle <= 0 {
		c.MaxIdle = 64
	}
	if c.MaxBody <= 0 {
		c.MaxBody = 8 << 20
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.ConnectTimeout, 10 * time.Second}, {&c.FirstByte, 30 * time.Second},
		{&c.Idle, time.Minute}, {&c.KeepIdle, time.Minute}, {&c.Total, 15 * time.Minute},
	} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	return c
}

// idlePerHost is the number of idle connections that are kept per host; more if the client often calls
// the same host.
func idlePerHost(often bool) int {
	if often {
		return 8
	}
	return 2
}

// Client makes guarded requests. It is safe for concurrent use, starts no
// goroutine of its own and holds only idle connections between requests.
type Client struct {
	cfg       Config
	policy    policy
	gate      *gate
	transport *http.Transport
	open      connSet
	sessions  tls.ClientSessionCache // nil without HTTP/2, where hosts are rarely called again
}

// maxSessions is the maximum number of TLS sessions kept for resumption; each takes about 2 KB.
const maxSessions = 256

// New returns a Client with a connection pool of its own. CloseIdle frees its connections.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg.withDefaults()}
	c.policy = newPolicy(c.cfg.AllowCIDR)
	c.gate = newGate(c.cfg.PerHost)
	if c.cfg.HTTP2 {
		c.sessions = tls.NewLRUClientSessionCache(maxSessions)
	}
	c.transport = &http.Transport{
		Proxy:              nil, // ignore proxies from the environment
		DialContext:        c.dialPlain,
		DialTLSContext:     c.dialTLS,
		DisableCompression: true, // a small compressed answer must not become a large one
		// HTTP/1.1 unless HTTP2 is set, because DialTLSContext is set: canceling closes the connection
		// at once, and a connection serves one request at a time.
		MaxIdleConns:           c.cfg.MaxIdle,
		MaxIdleConnsPerHost:    idlePerHost(c.cfg.HTTP2),
		ForceAttemptHTTP2:      c.cfg.HTTP2,
		IdleConnTimeout:        c.cfg.KeepIdle,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ExpectContinueTimeout:  time.Second,
		// The header tables would fill up with signatures and dates, which never repeat, and use about
		// 24 KB at both ends. Size 1 disables them.
		HTTP2: &http.HTTP2Config{MaxEncoderHeaderTableSize: 1, MaxDecoderHeaderTableSize: 1},
	}
	return c
}

// Do sends req under ctx. Errors are *Error, possibly wrapped; Reason makes a sentence of them. The
// caller must close the response body.
func (c *Client) Do(ctx context.Context, req *http.Request) (*http.Response, error) {
	return c.roundTrip(req.WithContext(ctx), c.cfg.FirstByte)
}

// RoundTripper returns the client for use as http.Client.Transport. A redirect is an error of the
// RoundTripper itself, so no library follows one.
func (c *Client) RoundTripper() http.RoundTripper { return tripper{c, c.cfg.FirstByte} }

// Patient returns RoundTripper with another FirstByte, for calls that take long to answer. Config.Total
// still applies.
func (c *Client) Patient(firstByte time.Duration) http.RoundTripper {
	return tripper{c, min(firstByte, c.cfg.Total)}
}

// CloseIdle closes the idle connections. The client stays usable.
func (c *Client) CloseIdle() { c.transport.CloseIdleConnections() }

type tripper struct {
	c         *Client
	firstByte time.Duration
}

func (t tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.c.roundTrip(req, t.firstByte)
}

func (c *Client) roundTrip(req *http.Request, firstByte time.Duration) (*http.Response, error) {
	closeBody := func() {
		if req.Body != nil {
			req.Body.Close()
		}
	}
	key, err := c.checkRequest(req)
	if err != nil {
		closeBody()
		return nil, err
	}
	ticket, err := c.gate.enterHost(req.Context(), key)
	if err != nil {
		closeBody()
		return nil, err
	}

	call := newCall(req.Context(), ticket, c.cfg.Total)
	first := call.startTimer(firstByte, "waiting for an answer")
	first.Stop()
	ctx := httptrace.WithClientTrace(call.ctx, &httptrace.ClientTrace{
		// GotConn runs in the goroutine of RoundTrip, so it cannot restart the timer after RoundTrip has
		// returned.
		GotConn: func(got httptrace.GotConnInfo) {
			ticket.markConnected()
			call.setConnection(c.open.markBusy(got.Conn, c.cfg.MaxIdle))
			first.Reset(firstByte)
		},
	})
	out := req.WithContext(ctx)
	out.Header = req.Header.Clone()
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", c.cfg.UserAgent)
	}
	if c.cfg.Signer != nil {
		if err := c.cfg.Signer.SignRequest(out); err != nil {
			closeBody()
			err = newError(Unprepared, req.URL.Hostname(), err, "the request could not be prepared")
			call.finishCall(err)
			return nil, err
		}
	}
	resp, err := c.transport.RoundTrip(out)
	first.Stop()
	if err != nil {
		err = call.explainError(err, req.URL.Hostname())
		call.finishCall(err)
		return nil, err
	}
	if err := c.checkResponse(resp); err != nil {
		resp.Body.Close()
		call.finishCall(err)
		return nil, err
	}
	resp.Request = req
	if resp.Body == http.NoBody {
		call.finishCall(nil)
		return resp, nil
	}
	resp.Body = call.wrapBody(resp.Body, c.cfg.MaxBody, c.cfg.Idle)
	return resp, nil
}

// checkResponse returns an error for answers that must not reach the caller: redirects, protocol
// switches, unrequested compression and bodies that are declared too large.
func (c *Client) checkResponse(resp *http.Response) error {
	host := resp.Request.URL.Hostname()
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		return newError(Protocol, host, nil, "the answer switches to another protocol")
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		target := "another address"
		if loc, err := resp.Location(); err == nil && loc.Host != "" {
			target = makePrintable(loc.Host)
		}
		code, so := Redirect, ""
		switch {
		case resp.Request.Method == http.MethodGet:
		case resp.StatusCode == http.StatusSeeOther: // It answers a request that was carried out (RFC 9110, 15.4.4).
			code = Protocol
		default:
			so = "so nothing was done; "
		}
		return newError(code, host, nil, "the answer redirects to %s; redirects are not followed, %suse the final address",
			target, so)
	}
	// The request did not ask for compression. Decompressing could turn 8 MiB into many gigabytes.
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") &&
		!(c.cfg.Encoded && acceptsEncoding(resp.Request, enc)) {
		return newError(Encoded, host, nil, "the answer is compressed although the request did not ask for it")
	}
	if resp.ContentLength > c.cfg.MaxBody {
		return tooLarge(host, c.cfg.MaxBody)
	}
	return nil
}

// acceptsEncoding reports whether the request's Accept-Encoding lists an encoding.
func acceptsEncoding(r *http.Request, encoding string) bool {
	for _, e := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.EqualFold(strings.TrimSpace(e), encoding) {
			return true
		}
	}
	return false
}

// Package egress is the only HTTP client that may dial an address somebody
// else named: an agent's endpoint, a card, a webhook, another portal. It
// refuses whatever is not globally routable unless the operator allowed it,
// follows no redirects, believes no proxy variables, keeps no cookies, and
// bounds every size, wait and number. It knows nothing of agents, protocols or
// credentials; callers hand its RoundTripper to whatever speaks a protocol.
//
// The address is checked where it counts, in Dialer.Control, after every name
// was looked up and just before the kernel connects; checks made earlier exist
// to give a better sentence, not to be relied on.
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

// Resolver looks names up. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config sets the bounds of a Client; the zero value gives the defaults named
// at each field.
type Config struct {
	// AllowCIDR are networks that may be dialled although they are not
	// globally routable. Addresses that embed another one (NAT64, 6to4,
	// Teredo) stay refused: what they lead to cannot be checked.
	AllowCIDR []netip.Prefix
	// Resolver defaults to Go's own: the C library's reads "127.1" and
	// "0x7f000001" as addresses.
	Resolver Resolver
	// UserAgent is sent when the request has none; default "agentsite".
	UserAgent string
	// RootCAs are trusted instead of the system's when set.
	RootCAs *x509.CertPool
	// Before, when set, is called with each request just before it is sent, its
	// wait for a place over: it may set headers, and replace the body by one of
	// the same bytes. An error ends the request unsent. It must not block.
	Before func(*http.Request) error
	// HTTP2 lets hosts choose HTTP/2, which has many requests on one connection.
	// It is for callers that know what they call and read whole answers.
	HTTP2 bool
	// Public is for hosts that are told nothing that has to stay secret for
	// decades: keys are agreed on by elliptic curves alone. ML-KEM beside them
	// makes a short request on a new connection twice as long.
	Public bool
	// Encoded hands answers on that are compressed as the request asked for, in
	// its Accept-Encoding. Who asks bounds what comes of it.
	Encoded bool
	// Deny, when set, says why an address may not be dialled although it is
	// globally routable; "" when it may. It must not block.
	Deny func(netip.Addr) string
	// Dial connects to an address that was looked up and is permitted; default
	// a net.Dialer, which checks the address again as the kernel connects. Tests
	// give networks in memory.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// PerHost is how many requests to one host and port may be in flight;
	// default 8. Others wait for as long as their context lives.
	PerHost int
	// Idle connections are kept, so many at most; default 64. Who has many hosts
	// and talks little to each keeps few, and not for long: while one is open both
	// ends ask each other now and then whether the other is there.
	MaxIdle int
	// KeepIdle is for how long; default a minute.
	KeepIdle time.Duration
	// MaxBody is the most bytes read of one response; default 8 MiB.
	MaxBody int64
	// ConnectTimeout covers lookup, TCP and TLS; default 10 s.
	ConnectTimeout time.Duration
	// FirstByte is the wait for response headers on a connection; default
	// 30 s. Patient gives single callers more.
	FirstByte time.Duration
	// Idle is the longest silence while a body is read; default 60 s.
	Idle time.Duration
	// Total ends a request with its body whatever happens; default 15 min.
	Total time.Duration
}

// maxHeaderBytes bounds the response header.
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

// idlePerHost is how many connections are kept: of those who may have many
// requests at once on one, and of those who ask the same host often.
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
	open      open
	sessions  tls.ClientSessionCache // of TLS; nil where hosts are rarely called again
}

// maxSessions bounds the TLS sessions that are kept to go on with, at some 2 KB
// each.
const maxSessions = 256

// New returns a Client with its own connection pool.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg.withDefaults()}
	c.policy = newPolicy(c.cfg.AllowCIDR)
	c.gate = newGate(c.cfg.PerHost)
	if c.cfg.HTTP2 {
		c.sessions = tls.NewLRUClientSessionCache(maxSessions)
	}
	c.transport = &http.Transport{
		Proxy:              nil, // no proxies from the environment
		DialContext:        c.dial,
		DialTLSContext:     c.dialTLS,
		DisableCompression: true, // a small answer must not become a large one
		// HTTP/1.1 only unless it is asked for, by giving DialTLSContext:
		// cancelling closes the connection at once, and one connection serves
		// one request.
		MaxIdleConns:           c.cfg.MaxIdle,
		MaxIdleConnsPerHost:    idlePerHost(c.cfg.HTTP2),
		ForceAttemptHTTP2:      c.cfg.HTTP2,
		IdleConnTimeout:        c.cfg.KeepIdle,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ExpectContinueTimeout:  time.Second,
		// The tables would fill up with signatures and dates, which never come
		// again: some 24 KB of both ends for nothing. 1 is as good as none.
		HTTP2: &http.HTTP2Config{MaxEncoderHeaderTableSize: 1, MaxDecoderHeaderTableSize: 1},
	}
	return c
}

// Do sends req under ctx. Errors are *Error, possibly wrapped; Reason makes a
// sentence of them. The caller closes the response body.
func (c *Client) Do(ctx context.Context, req *http.Request) (*http.Response, error) {
	return c.roundTrip(req.WithContext(ctx), c.cfg.FirstByte)
}

// RoundTripper lets libraries use the client, as http.Client{Transport: rt}.
// A redirect is an error of the RoundTripper itself, so no library follows one.
func (c *Client) RoundTripper() http.RoundTripper { return tripper{c, c.cfg.FirstByte} }

// Patient is RoundTripper with another wait for the first byte, for callers
// whose far side thinks before it answers; never more than Config.Total.
func (c *Client) Patient(firstByte time.Duration) http.RoundTripper {
	return tripper{c, min(firstByte, c.cfg.Total)}
}

// CloseIdle closes the connections nobody uses.
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
	ticket, err := c.gate.enter(req.Context(), key)
	if err != nil {
		closeBody()
		return nil, err
	}

	call := newCall(req.Context(), ticket, c.cfg.Total)
	first := call.timer(firstByte, "waiting for an answer")
	first.Stop()
	ctx := httptrace.WithClientTrace(call.ctx, &httptrace.ClientTrace{
		// Called by the goroutine that runs RoundTrip, so it cannot restart
		// the timer after RoundTrip has returned.
		GotConn: func(got httptrace.GotConnInfo) {
			ticket.connected()
			call.on(c.open.busy(got.Conn, c.cfg.MaxIdle))
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
	if c.cfg.Before != nil {
		if err := c.cfg.Before(out); err != nil {
			closeBody()
			err = newError(Unprepared, req.URL.Hostname(), err, "the request could not be prepared")
			call.finish(err)
			return nil, err
		}
	}
	resp, err := c.transport.RoundTrip(out)
	first.Stop()
	if err != nil {
		err = call.explain(err, req.URL.Hostname())
		call.finish(err)
		return nil, err
	}
	if err := c.acceptable(resp); err != nil {
		resp.Body.Close()
		call.finish(err)
		return nil, err
	}
	resp.Request = req
	if resp.Body == http.NoBody {
		call.finish(nil)
		return resp, nil
	}
	resp.Body = call.wrap(resp.Body, c.cfg.MaxBody, c.cfg.Idle)
	return resp, nil
}

// acceptable refuses answers that this client must not hand on.
func (c *Client) acceptable(resp *http.Response) error {
	host := resp.Request.URL.Hostname()
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		return newError(Protocol, host, nil, "the answer switches to another protocol")
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		target := "another address"
		if loc, err := resp.Location(); err == nil && loc.Host != "" {
			target = printable(loc.Host)
		}
		return newError(Redirect, host, nil, "the answer redirects to %s; redirects are not followed, use the final address", target)
	}
	// Nothing was asked to be compressed; expanding it here could make 8 MiB
	// of many gigabytes.
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") && !(c.cfg.Encoded && asked(resp.Request, enc)) {
		return newError(Encoded, host, nil, "the answer is compressed although that was not asked for")
	}
	if resp.ContentLength > c.cfg.MaxBody {
		return tooLarge(host, c.cfg.MaxBody)
	}
	return nil
}

// asked reports whether a request names an encoding among those it takes.
func asked(r *http.Request, encoding string) bool {
	for _, e := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.EqualFold(strings.TrimSpace(e), encoding) {
			return true
		}
	}
	return false
}

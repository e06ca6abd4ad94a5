package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// maxAddresses is the maximum number of addresses of one host name that are tried.
const maxAddresses = 6

// dialPlain looks the host up, drops addresses that are not allowed and tries the others in order. It
// connects to the checked address itself and does not look the name up again, because a second lookup
// could give another address.
func (c *Client) dialPlain(ctx context.Context, network, hostport string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.ConnectTimeout, timedOut("", c.cfg.ConnectTimeout, "connecting"))
	defer cancel()
	return c.dialHost(ctx, hostport)
}

func (c *Client) dialTLS(ctx context.Context, network, hostport string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.ConnectTimeout, timedOut("", c.cfg.ConnectTimeout, "connecting"))
	defer cancel()
	conn, err := c.dialHost(ctx, hostport)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(hostport)
	protos := []string{"http/1.1"}
	if c.cfg.HTTP2 {
		protos = []string{"h2", "http/1.1"}
	}
	tc := tls.Client(conn, &tls.Config{
		ServerName: host,
		RootCAs:    c.cfg.RootCAs,
		MinVersion: tls.VersionTLS12,
		NextProtos: protos,
		// A resumed session saves the transfer of certificates. nil disables resumption.
		ClientSessionCache: c.sessions,
		CurvePreferences:   c.keyCurves(),
	})
	if err := tc.HandshakeContext(ctx); err != nil {
		conn.Close()
		e := connectError(ctx, err, host)
		if e.Code == Cut || e.Code == Protocol {
			e = newError(TLS, host, err, "the TLS handshake failed")
			e.connecting = true
		}
		return nil, e
	}
	if tc.ConnectionState().NegotiatedProtocol == "h2" {
		c.open.speaksHTTP2(conn)
	}
	return tc, nil
}

// keyCurves returns the key exchange methods for TLS; nil means Go's defaults, which include ML-KEM with
// X25519.
func (c *Client) keyCurves() []tls.CurveID {
	if c.cfg.Public {
		return []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}
	}
	return nil
}

func (c *Client) dialHost(ctx context.Context, hostport string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, newError(BadURL, "", err, "the address names no host")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, newError(BadURL, host, err, "the address has no valid port")
	}
	addrs, err := c.lookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	dial := c.cfg.Dial
	if dial == nil {
		dialer := net.Dialer{Control: c.checkControl, KeepAlive: 30 * time.Second}
		dial = dialer.DialContext
	}
	var first error
	for i, a := range addrs {
		// Leave time for the remaining addresses if this one does not answer.
		one, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok && i < len(addrs)-1 {
			one, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addrs)-i))
		}
		conn, err := dial(one, "tcp", netip.AddrPortFrom(a, uint16(port)).String())
		cancel()
		if err == nil && (c.cfg.Deny != nil || c.cfg.HTTP2) {
			return c.open.trackConn(conn, a), nil
		}
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, connectError(ctx, first, host)
}

// lookupHost returns at least one allowed address of host, or an error: Private if all addresses are
// refused.
func (c *Client) lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	addr, literal, err := parseHost(host)
	if err != nil {
		return nil, err
	}
	found := []netip.Addr{addr}
	if !literal {
		if found, err = c.cfg.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
			return nil, connectError(ctx, err, host)
		}
		if len(found) == 0 {
			e := newError(NoSuchHost, host, nil, "no such host")
			e.connecting = true
			return nil, e
		}
	}
	var permitted []netip.Addr
	for _, a := range found {
		if a = a.Unmap(); c.policy.allowsAddr(a) && len(permitted) < maxAddresses {
			permitted = append(permitted, a)
		}
	}
	if len(permitted) == 0 {
		return nil, refusalError(host, found[0])
	}
	return permitted, nil
}

// checkControl is the decisive check of the address: it runs for every connection, with the address to
// which the kernel is about to connect.
func (c *Client) checkControl(network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return newError(BadURL, "", err, "the address cannot be read")
	}
	if !c.policy.allowsAddr(ap.Addr()) {
		return refusalError("", ap.Addr())
	}
	if c.cfg.Deny != nil {
		if why := c.cfg.Deny(ap.Addr().Unmap()); why != "" {
			return newError(Denied, "", nil, "%s", why)
		}
	}
	return nil
}

// connectError classifies an error of lookup, TCP or TLS. It marks the error as a failed connection for
// the gate, unless the caller canceled.
func connectError(ctx context.Context, err error, host string) *Error {
	var e Error
	if cause, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		e = *cause
	} else {
		e = *classifyError(err, host)
	}
	e.Host = host
	if e.Code == Cut || e.Code == Protocol {
		e.Code = Connect
	}
	e.connecting = e.Code != Canceled && e.Code != Private && e.Code != Denied && e.Code != BadURL
	return &e
}

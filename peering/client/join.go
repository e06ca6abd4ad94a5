package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// joinTimeout bounds Join, because an operator waits for it.
const joinTimeout = 4 * time.Second

// errNoPortal is wrapped by errors of hosts that answer, but not as a portal.
var errNoPortal = errors.New("not a portal")

// movedError is the cause of an error of a portal that answered at another origin than its own.
type movedError struct{ origin string }

func (e *movedError) Error() string { return "its origin is " + e.origin }

// Join performs a handshake with the first portal that answers at the origins, which are spellings of one
// host, and returns its id. If the portal there names another origin as its own, it is joined there. The
// message of an error names the cause and a remedy.
func (c *Client) Join(ctx context.Context, origins []string) (record.PortalID, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var failed error
	for _, origin := range origins {
		id, err := c.Greet(ctx, origin)
		if moved, ok := errors.AsType[*movedError](err); ok {
			origin = moved.origin
			id, err = c.Greet(ctx, origin)
		}
		if err == nil {
			return id, nil
		}
		failed = explainJoin(err, federation.HostOf(origin))
		if !mayBeHTTP(err) {
			break
		}
	}
	return "", failed
}

// mayBeHTTP reports whether a host that failed by https may answer by http: nothing listens at the port of
// https, or it does not use TLS. A wrong certificate is no reason to go on without one.
func mayBeHTTP(err error) bool {
	switch egress.CodeOf(err) {
	case egress.Connect, egress.Cut, egress.Protocol:
		return true
	}
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return plain || errors.Is(err, http.ErrSchemeMismatch)
}

// explainJoin returns an error with a message for the operator: the cause and the remedy.
func explainJoin(err error, host string) error {
	explain := func(format string, args ...any) error {
		return fault.Wrap(fault.Unavailable, err, "%s", fmt.Sprintf(format, args...))
	}
	switch code := egress.CodeOf(err); {
	case errors.Is(err, errNoPortal):
		return explain("%s answers, but is not a portal. Check the address.", host)
	case code == egress.NoSuchHost:
		return explain("No host named %s was found. Check the spelling.", host)
	case code == egress.Connect:
		return explain("%s: %s. Check that the portal runs and that the port is right.", host, egress.Reason(err))
	case code == egress.Timeout, errors.Is(err, context.DeadlineExceeded):
		return explain("%s did not answer within %s. Check that it can be reached from here.", host, joinTimeout)
	case code == egress.TLS:
		return explain("%s: %s. Its operator has to mend that.", host, egress.Reason(err))
	case code == egress.Private:
		return explain("%s is a private address. The setting --allow-cidr permits it.", host)
	case code != "":
		return explain("%s: %s.", host, egress.Reason(err))
	case fault.As(err).Kind == fault.Internal:
		return explain("%s: %s", host, record.CutLine(err.Error(), 300))
	}
	return err
}

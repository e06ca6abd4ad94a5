package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"

	"agentsite/internal/fault"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/record"
)

const (
	// maxSigned bounds a request body, in bytes. The whole body is read because its hash is signed.
	maxSigned = 32 << 20
	// maxRefusal bounds how many bytes of a refusal are read to find its reason.
	maxRefusal = 64 << 10
)

// Transport returns a RoundTripper for requests to one portal at its origin, such as calls of its agents by
// A2A. It signs every request, including the header fields of a call on behalf of a person (guard.ForField
// and others). Answers are streamed. If the portal does not know this one, a handshake is performed and the
// request repeated once.
func (c *Client) Transport(portal record.PortalID, origin string) http.RoundTripper {
	return signing{c, portal, origin}
}

type signing struct {
	c      *Client
	portal record.PortalID
	origin string
}

// RoundTrip implements http.RoundTripper. It reads and closes the request body. URLs outside the origin are
// refused.
func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	if !below(r.URL, s.origin) {
		return nil, fault.New(fault.Invalid, "%s is not at %s.", r.URL.Redacted(), s.origin)
	}
	if err := s.c.checkAllowed(ctx, s.portal, s.origin); err != nil {
		return nil, err
	}
	who, err := s.verifyPortal(ctx)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		out, err := s.signed(r, body)
		if err != nil {
			return nil, err
		}
		resp, err := s.c.cfg.Stream.RoundTrip(out)
		if err != nil {
			s.c.noteFailed(ctx, who, err)
			return nil, err
		}
		resp.Request = r
		if try > 0 || resp.StatusCode != http.StatusUnauthorized {
			return resp, nil
		}
		said, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		why, _ := reasonIn(said)
		if again, err := s.c.prepareRetry(ctx, s.origin, who, why, resp.Header); err != nil {
			return nil, err
		} else if !again {
			resp.Body = io.NopCloser(bytes.NewReader(said))
			return resp, nil
		}
	}
}

// verifyPortal verifies the portal at the origin. It has its own timeout, because the context of the
// request allows for the time that an agent works.
func (s signing) verifyPortal(ctx context.Context) (record.PortalID, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return s.c.portalAt(ctx, s.origin, s.portal)
}

// signed returns a signed copy of a request with the given body. It is called for each attempt, because a
// signature may be used once.
func (s signing) signed(r *http.Request, body []byte) (*http.Request, error) {
	out := r.Clone(r.Context())
	for _, name := range []string{"Signature", "Signature-Input", "Content-Digest", guard.NetworkField} {
		out.Header.Del(name)
	}
	out.Body, out.ContentLength, out.GetBody = http.NoBody, 0, nil
	if len(body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Header.Set("Content-Digest", httpsig.DigestOf(sha256.Sum256(body)))
	}
	return out, s.c.signRequest(out)
}

// bodyOf reads and closes the body of a request. It returns an empty slice for a request without one, and
// an error if it exceeds maxSigned.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return []byte{}, nil
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, maxSigned+1))
	if err == nil && len(b) > maxSigned {
		err = fmt.Errorf("the body is larger than %d bytes", maxSigned)
	}
	return b, err
}

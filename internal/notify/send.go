package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
)

const (
	// sendTimeout bounds one request. A2A asks for 10 to 30 s (§4.3.3).
	sendTimeout = 20 * time.Second
	// maxAnswer bounds the part of an answer that is read. Reading it allows the connection to be
	// used again; the content is ignored.
	maxAnswer = 16 << 10
)

// reply is the result of an attempt to send the bodies of one event.
type reply struct {
	Attempt
	gone  bool          // the receiver answered 410 Gone and wants no more events
	after time.Duration // pause that the receiver asks for, 0 for none
}

// sendBodies sends each body in a request of its own, until one is not accepted. It returns an error
// only when nothing could be sent because of this portal, or because ctx ended.
func (s *Service) sendBodies(ctx context.Context, h Hook, e Event, bodies []any) (reply, error) {
	begun := time.Now()
	r := reply{Attempt: Attempt{EventID: e.ID, Type: e.Type, At: clock.Now()}}
	for i, v := range bodies {
		id := e.ID
		if i > 0 {
			id += "/" + strconv.Itoa(i+1)
		}
		b, err := encodeJSON(v)
		if err != nil {
			return r, err
		}
		req, err := s.newRequest(h, id, b)
		if err != nil {
			return r, err
		}
		if err := s.doRequest(ctx, req, &r); err != nil {
			return r, err
		}
		if r.Error != "" {
			break
		}
	}
	r.Took = time.Since(begun)
	return r, nil
}

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// newRequest builds one request to a hook, with the headers that authenticate this portal. id is
// the same for each attempt to send the event.
func (s *Service) newRequest(h Hook, id string, body []byte) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The address is not one that can be called.")
	}
	req.Header.Set("Webhook-Id", id)
	if h.Kind == Push {
		return req, s.pushHeaders(h, req.Header)
	}
	secret, err := s.Sealer.Open(h.Sealed, h.sealContext())
	if err != nil {
		return nil, fmt.Errorf("open the secret of webhook %s: %w", h.ID, err)
	}
	now := clock.Now()
	signature, err := signBody(secret, id, now, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", signature)
	return req, nil
}

// pushHeaders sets the headers of A2A's push notifications (§4.3.3). The token has two names: that of
// the specification, and the one that receivers made with the Go SDK read.
func (s *Service) pushHeaders(h Hook, out http.Header) error {
	secret, err := s.openSecret(h)
	if err != nil {
		return fmt.Errorf("open the secrets of push hook %s: %w", h.ID, err)
	}
	out.Set("Content-Type", "application/a2a+json")
	if h.Version != "1.0" { // only A2A 1.0 defines a media type
		out.Set("Content-Type", "application/json")
	}
	out.Set("A2A-Version", h.Version)
	if secret.Token != "" {
		out.Set("X-A2A-Notification-Token", secret.Token)
		out.Set("A2A-Notification-Token", secret.Token)
	}
	if secret.Credentials != "" {
		out.Set("Authorization", h.Scheme+" "+secret.Credentials)
	}
	return nil
}

// doRequest makes one request and records status and error in r. It returns an error only if ctx
// ended.
func (s *Service) doRequest(ctx context.Context, req *http.Request, r *reply) error {
	sctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	resp, err := s.Transport.RoundTrip(req.WithContext(sctx))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Status, r.Error = 0, clipReason(egress.Reason(err))
		return nil
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // the status alone is the result
	r.Status = resp.StatusCode
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	r.Error = "it answered with status " + strconv.Itoa(resp.StatusCode)
	r.gone = resp.StatusCode == http.StatusGone
	r.after = retryAfter(resp.Header.Get("Retry-After"), clock.Now())
	return nil
}

// retryAfter parses a Retry-After field, in seconds or as a date (RFC 9110 §10.2.3), relative to
// now, at most longestPause; 0 if s has no valid time.
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(min(max(n, 0), int(longestPause/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(s); err == nil {
		return min(max(at.Sub(now), 0), longestPause)
	}
	return 0
}

// clipReason cuts a reason to the length that is stored, maxReason bytes.
func clipReason(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason]
	}
	return s
}

// Package client sends signed requests to other portals: it performs the handshake, verifies which portal
// answers at an origin, and signs calls of agents.
package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/record"
	"agentsite/internal/strictjson"
)

// Paths of the routes between portals; WellKnownPath is not signed.
const (
	WellKnownPath = "/.well-known/agentsite"
	// Base is the path prefix of the other routes.
	Base = "/peering/v1"
)

const (
	// whoFor is how long the verification of the portal at an origin is valid.
	whoFor = 24 * time.Hour
	// maxWhole bounds a portal's self-description, in bytes: a card and a head, with room for fields of
	// later versions.
	maxWhole = 128 << 10
	// askTimeout bounds a request together with the verification before it.
	askTimeout = 30 * time.Second
	// maxOrigins bounds the cached origins; when it is reached all are forgotten and verified again.
	maxOrigins = 16 << 10
)

// Config is the configuration of a Client. Only Listener is optional.
type Config struct {
	Self     federation.Signer
	Gate     *record.Gate
	Replica  federation.Replica
	Registry federation.Registry
	// RoundTripper sends requests with answers that are read into memory, Stream those of Transport. Both
	// must protect against SSRF, follow no redirects, and pass gzip answers on as they are.
	RoundTripper, Stream http.RoundTripper
	Listener             Listener // optional
	Log                  *slog.Logger
}

// Listener is notified of successful handshakes.
type Listener interface {
	// HandshakeAnswered is called after each successful handshake with the portal's answer. Its head is
	// unverified and may be newer than the one held.
	HandshakeAnswered(ctx context.Context, h *Handshake)
}

// Client sends signed requests to other portals. It implements federation.Caller and guard.Prover and is
// safe for concurrent use.
type Client struct {
	cfg     Config
	metrics metrics

	mu      sync.Mutex // guards the fields below, and those of each place
	origins map[string]*place
	skew    map[record.PortalID]time.Duration
}

// place is the state of an origin: the portal that was verified there.
type place struct {
	asking chan struct{} // holds one token while the origin is being verified

	portal record.PortalID // last verified portal, "" for none; guarded by Client.mu
	proved time.Time
	met    record.Version // version of this portal's card known there; guarded by Client.mu
}

// New returns a Client. It sends nothing and starts no goroutines by itself.
func New(cfg Config) *Client {
	return &Client{cfg: cfg, metrics: newMetrics(), origins: make(map[string]*place),
		skew: make(map[record.PortalID]time.Duration)}
}

// Do implements federation.Caller: it verifies the portal at the origin if needed and sends it a signed
// request. If the portal does not know this one, a handshake is performed and the request repeated once. An
// answer with any status is no error; errors mean that the network failed or the policy forbids the
// request.
func (c *Client) Do(ctx context.Context, origin string, portal record.PortalID, method, path string, body []byte,
	limit int64) (*federation.Answer, error) {
	if err := c.checkAllowed(ctx, portal, origin); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	who, err := c.portalAt(ctx, origin, portal)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		a, err := c.sendOnce(ctx, origin, method, path, body, limit)
		if err != nil {
			c.noteFailed(ctx, who, err)
			return nil, err
		}
		c.cfg.Registry.Seen(who, a.Took)
		c.noteBarred(who, a)
		c.clockOf(who, a)
		if try > 0 || a.Status != http.StatusUnauthorized {
			return a, nil
		}
		if again, err := c.prepareRetry(ctx, origin, who, ReasonOf(a), a.Header); err != nil || !again {
			return a, err
		}
	}
}

// checkAllowed returns an error if origin is not valid or is this portal's own, or if the policy denies the
// portal there.
func (c *Client) checkAllowed(ctx context.Context, portal record.PortalID, origin string) error {
	if !record.ValidOrigin(origin) {
		return fault.New(fault.Invalid, "%.200q is not where a portal can be.", origin)
	}
	if origin == c.cfg.Self.Origin() {
		return fault.New(fault.Invalid, "%s is this portal itself.", origin)
	}
	if d := c.cfg.Registry.Decide(ctx, portal, origin); d.State == federation.Denied ||
		d.State == federation.Quarantined {
		return federation.Refuse(federation.Reason(d.State), "%s", d.Reason)
	}
	return nil
}

// prepareRetry makes a request with status 401 repeatable: by a handshake with a portal that does not know
// this one, or by a wait. again is false if a repetition would not help.
func (c *Client) prepareRetry(ctx context.Context, origin string, who record.PortalID, why federation.Reason,
	h http.Header) (again bool, err error) {
	switch why {
	case federation.ReasonUnknown:
		if _, err := c.Handshake(ctx, origin, who); err != nil {
			return false, err
		}
		return true, nil
	case federation.ReasonClock:
		// The clocks agree, so the portal has just restarted: it refuses requests signed before its start.
		// One signed a second later is accepted.
		if off, ok := skewOf(h, 0); !ok || off.Abs() > guard.SignatureLife {
			return false, nil
		}
		wait := time.NewTimer(time.Second)
		defer wait.Stop()
		select {
		case <-wait.C:
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}

// noteBarred records in the registry whether a portal denies this one, if the status of its answer shows
// it.
func (c *Client) noteBarred(who record.PortalID, a *federation.Answer) {
	switch a.Status {
	case http.StatusOK:
		c.cfg.Registry.Barred(who, "", "")
	case http.StatusForbidden:
		switch why, words := reasonIn(a.Body); why {
		case federation.ReasonDenied, federation.ReasonPending, federation.ReasonQuarantined:
			c.cfg.Registry.Barred(who, why, words)
		}
	}
}

// noteFailed records in the registry that a portal did not answer. Requests that the caller canceled or
// that were never sent do not count.
func (c *Client) noteFailed(ctx context.Context, portal record.PortalID, err error) {
	if errors.Is(ctx.Err(), context.Canceled) || portal == "" {
		return
	}
	if code := egress.CodeOf(err); code == egress.Canceled || code == egress.Busy || code == egress.Unprepared {
		return
	}
	c.cfg.Registry.Failed(portal, err)
}

// sendOnce signs and sends one request without verification or retry. A nil body sends none.
func (c *Client) sendOnce(ctx context.Context, origin, method, path string, body []byte,
	limit int64) (*federation.Answer, error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, origin+path, in)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%.200q cannot be asked for.", path)
	}
	if body != nil {
		r.Header.Set("Content-Type", contentType(body))
		r.Header.Set("Content-Digest", httpsig.DigestOf(sha256.Sum256(body)))
	}
	if err := c.signRequest(r); err != nil {
		return nil, err
	}
	return c.send(r, limit)
}

// contentType returns the media type of a body that is not empty: JSON, or the binary encoding of the DHT
// and of gossip.
func contentType(body []byte) string {
	if body[0] == '{' || body[0] == '[' {
		return "application/json"
	}
	return "application/octet-stream"
}

// signRequest adds the signature of this portal, with a fresh nonce. It must be called just before sending,
// because signatures expire soon.
func (c *Client) signRequest(r *http.Request) error {
	var nonce [16]byte
	rand.Read(nonce[:])
	return guard.SignRequest(r, c.cfg.Self, base64.RawURLEncoding.EncodeToString(nonce[:]), clock.Now())
}

// send sends a request and reads at most limit bytes of the answer, after decompression.
func (c *Client) send(r *http.Request, limit int64) (*federation.Answer, error) {
	r.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	resp, err := c.cfg.RoundTripper.RoundTrip(r)
	if err != nil {
		c.metrics.asked.WithLabelValues(outcomeOf(err)).Inc()
		return nil, err
	}
	defer resp.Body.Close()
	took := time.Since(began)
	b, err := readBody(resp, limit)
	c.metrics.received.Add(float64(len(b)))
	c.metrics.asked.WithLabelValues(statusOf(resp.StatusCode, err)).Inc()
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", r.URL.Host, err)
	}
	return &federation.Answer{Status: resp.StatusCode, Header: resp.Header, Body: b, Took: took}, nil
}

// ErrTooLong is wrapped by errors for an answer that is longer than the caller's limit.
var ErrTooLong = errors.New("the answer is too long")

// maxPromised bounds the memory, in bytes, that is reserved for a body because of its Content-Length.
const maxPromised = 64 << 10

// readBody reads a body and decompresses it. Both the compressed and the decompressed size are limited to
// limit bytes.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	in := io.Reader(resp.Body)
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		b.Grow(int(min(n, limit, maxPromised)) + bytes.MinRead)
	}
	switch enc := resp.Header.Get("Content-Encoding"); {
	case enc == "" || strings.EqualFold(enc, "identity"):
	case strings.EqualFold(enc, "gzip"):
		z, err := gzip.NewReader(io.LimitReader(resp.Body, limit+1))
		if err != nil {
			return nil, err
		}
		in = z
	default:
		return nil, fmt.Errorf("it is encoded as %.40q, which was not asked for", enc)
	}
	if _, err := b.ReadFrom(io.LimitReader(in, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooLong, limit)
	}
	return b.Bytes(), nil
}

// ReasonOf returns the machine-readable reason in an error answer of a portal, "" if it has none.
func ReasonOf(a *federation.Answer) federation.Reason {
	why, _ := reasonIn(a.Body)
	return why
}

// reasonIn decodes reason and message of an error answer; both are "" if it has another form.
func reasonIn(body []byte) (why federation.Reason, message string) {
	var e struct {
		Error struct {
			Reason  federation.Reason `json:"reason"`
			Message string            `json:"message"`
		} `json:"error"`
	}
	if len(body) > maxWhole || strictjson.Check(body) != nil || json.Unmarshal(body, &e) != nil {
		return "", ""
	}
	return e.Error.Reason, e.Error.Message
}

// RefusedBy returns the error for an answer with an error status; its message may be displayed to people.
func RefusedBy(origin string, a *federation.Answer) error {
	why, message := reasonIn(a.Body)
	host := federation.HostOf(origin)
	if why == "" {
		return fault.New(fault.Unavailable, "%s answered with status %d.", host, a.Status)
	}
	return fault.New(fault.Unavailable, "%s refused (%s): %.300s", host, why, message)
}

// placeOf returns the state of an origin, created if needed. The result stays valid after the cache is
// cleared.
func (c *Client) placeOf(origin string) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.origins[origin]
	if p == nil {
		if len(c.origins) >= maxOrigins {
			clear(c.origins)
		}
		p = &place{asking: make(chan struct{}, 1)}
		c.origins[origin] = p
	}
	return p
}

// portalAt returns the portal at an origin, which is verified if that is older than whoFor. It is an error
// if portal is not empty and another one answers.
func (c *Client) portalAt(ctx context.Context, origin string, portal record.PortalID) (record.PortalID, error) {
	p := c.placeOf(origin)
	if id, ok := c.known(p, portal); ok {
		return id, nil
	}
	select { // only one caller verifies an origin at a time
	case p.asking <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-p.asking }()
	if id, ok := c.known(p, portal); ok {
		return id, nil
	}
	return c.proveOrigin(ctx, p, origin, portal)
}

func (c *Client) known(p *place, portal record.PortalID) (record.PortalID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.portal, p.portal != "" && clock.Now().Sub(p.proved) < whoFor && (portal == "" || portal == p.portal)
}

// Prove implements guard.Prover: it verifies the portal at an origin, even if it was verified lately.
func (c *Client) Prove(ctx context.Context, origin string, portal record.PortalID) error {
	if err := c.checkAllowed(ctx, portal, origin); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := c.proveOrigin(ctx, c.placeOf(origin), origin, portal)
	return err
}

// whole is the JSON self-description of a portal, at WellKnownPath and in the answer to a handshake.
type whole struct {
	Network string          `json:"network"`
	Card    json.RawMessage `json:"card"`
	Head    json.RawMessage `json:"head"`
	State   string          `json:"state"` // only in answers to a handshake
}

// proveOrigin verifies which portal controls an origin: it requests the card there over HTTPS and admits
// it. The card must name this origin. On success the registry learns that the address is verified.
func (c *Client) proveOrigin(ctx context.Context, p *place, origin string, portal record.PortalID) (record.PortalID,
	error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+WellKnownPath, nil)
	if err != nil {
		return "", err
	}
	a, err := c.send(r, maxWhole)
	if err != nil {
		c.noteFailed(ctx, portal, err)
		return "", err
	}
	if a.Status != http.StatusOK {
		err := RefusedBy(origin, a)
		c.noteFailed(ctx, portal, err)
		if ReasonOf(a) == "" {
			err = fault.Wrap(fault.Unavailable, errors.Join(errNoPortal, err), "%s is not a portal: it answers with status %d.",
				federation.HostOf(origin), a.Status)
		}
		return "", err
	}
	var w whole
	if err := decode(a.Body, &w); err != nil {
		return "", fault.Wrap(fault.Unavailable, errors.Join(errNoPortal, err),
			"%s is not a portal: it answers with something else than a portal's description.", federation.HostOf(origin))
	}
	if w.Network != c.cfg.Self.Network() {
		return "", federation.Refuse(federation.ReasonNetwork, "%s is of the network %.40q, this portal of %s.",
			federation.HostOf(origin), w.Network, c.cfg.Self.Network())
	}
	// The card's signature and portal are checked before any part of it is stored.
	card, err := record.OpenCard(c.cfg.Self.Network(), w.Card, clock.Now())
	if err != nil {
		return "", err
	}
	switch {
	case portal != "" && card.Portal != portal:
		c.forgetPlace(p)
		return "", fmt.Errorf("%w: %s is %s, not %s", guard.ErrImpostor, federation.HostOf(origin), card.Portal, portal)
	case card.Portal == c.cfg.Self.ID():
		return "", fault.New(fault.Invalid, "%s is this portal itself, or a copy of it.", federation.HostOf(origin))
	case card.Origin != origin:
		c.forgetPlace(p)
		if err := c.noteMoved(ctx, card.Portal, w.Card); err != nil {
			return "", err
		}
		return "", fault.Wrap(fault.Unavailable, &movedError{card.Origin}, "The portal at %s says that it is at %s.",
			federation.HostOf(origin), card.Origin)
	}
	if err := c.checkAllowed(ctx, card.Portal, origin); err != nil {
		return "", err
	}
	if err := c.admitCard(ctx, w.Card, card.Portal); err != nil {
		return "", err
	}
	c.mu.Lock()
	p.portal, p.proved = card.Portal, clock.Now()
	c.mu.Unlock()
	c.cfg.Registry.Learned(card, true)
	c.cfg.Registry.Seen(card.Portal, a.Took)
	c.clockOf(card.Portal, a)
	return card.Portal, nil
}

// forgetPlace discards which portal was verified at an origin, so that the next request verifies it again.
func (c *Client) forgetPlace(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.portal, p.proved = "", time.Time{}
}

// admitCard stores the card of a portal through the gate. It returns guard.ErrImpostor for a record of
// another type or portal.
func (c *Client) admitCard(ctx context.Context, wire []byte, portal record.PortalID) error {
	r, err := record.Open(c.cfg.Self.Network(), wire)
	if err != nil {
		return err
	}
	if r.Type != record.TypeCard || r.Portal != portal {
		return fmt.Errorf("%w: what should be the card of %s is a %s of %s", guard.ErrImpostor, portal, r.Type,
			r.Portal)
	}
	_, _, err = c.cfg.Gate.Admit(ctx, wire, clock.Now())
	return err
}

// noteMoved stores the card of a known portal that gives another address than the one at which it answered.
// Unknown portals are ignored.
func (c *Client) noteMoved(ctx context.Context, portal record.PortalID, wire []byte) error {
	known, err := c.cfg.Replica.Card(ctx, portal)
	if err != nil || known == nil {
		return err
	}
	return c.admitCard(ctx, wire, portal)
}

// decode decodes an answer as strict JSON; unknown members are ignored, so that later versions may add
// some.
func decode(b []byte, v any) error {
	if err := strictjson.Check(b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// below reports whether a URL has the given origin.
func below(u *url.URL, origin string) bool {
	return u.Scheme+"://"+u.Host == origin
}

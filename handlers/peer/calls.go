package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/meter"
	"agentsite/internal/record"
	"agentsite/internal/task"
)

// Verifier verifies the signatures of other portals' requests and decides whether they are admitted.
// guard.Guard implements it.
type Verifier interface {
	Arrive(addr string) error
	Strike(addr string, why federation.Reason)
	Verify(r *http.Request, addr string, read guard.ReadBody) (asker guard.Asker, body []byte, done func(), err error)
}

// Standing returns the state of other portals and the decisions about them. federation.Peers implements
// it.
type Standing interface {
	Decide(ctx context.Context, portal record.PortalID, origin string) federation.Decision
	Portal(ctx context.Context, name string) (federation.Peer, bool)
	Portals(ctx context.Context) []federation.Peer
	Changed() <-chan struct{}
}

// CallsConfig holds the parts of Calls; every field is required.
type CallsConfig struct {
	Guard    Verifier
	Peers    Standing
	Accounts *account.Service
	Tasks    *task.Service
	Store    task.Portals
	Ways     hub.Ways
	Log      *slog.Logger
}

// Calls lets people of other portals call agents of this portal. It also ends running work with portals
// that have been blocked since. Create it with NewCalls.
type Calls struct {
	cfg     CallsConfig
	allowed prometheus.Counter
	refused *prometheus.CounterVec // labeled by reason
}

var _ request.Portals = (*Calls)(nil)

// NewCalls returns Calls. The caller runs Run in a goroutine.
func NewCalls(cfg CallsConfig) *Calls {
	return &Calls{cfg: cfg,
		allowed: prometheus.NewCounter(prometheus.CounterOpts{Name: "agentsite_calls_in_total",
			Help: "Accepted requests about calls of other portals' people."}),
		refused: meter.NewCounters("agentsite_calls_in_refused_total", "Those that were refused, by reason.", "reason",
			string(federation.ReasonDenied))}
}

// count counts a request of another portal in the metrics: accepted if err is nil, otherwise refused with
// the error's reason.
func (c *Calls) count(err error) {
	if err == nil {
		c.allowed.Inc()
		return
	}
	c.refused.WithLabelValues(string(federation.RefusalOf(err).Reason)).Inc()
}

// ListCollectors returns the metrics of Calls, to be registered by the caller.
func (c *Calls) ListCollectors() []prometheus.Collector {
	return []prometheus.Collector{c.allowed, c.refused}
}

// Asks implements request.Portals: a request is from a portal if it has a portal's signature, valid or
// not.
func (c *Calls) Asks(r *http.Request) bool {
	_, err := httpsig.Read(r.Header, guard.SignatureTag)
	return !errors.Is(err, httpsig.ErrNone)
}

const (
	// Largest body of a call in bytes, from a portal that was verified at its address and from any other.
	maxPeerBody     = 4 << 20
	maxStrangerBody = 256 << 10
)

// Asking implements request.Portals. The body is read only after the portal is admitted, so that refused
// portals cost little.
func (c *Calls) Asking(w http.ResponseWriter, r *http.Request) (actor ident.Actor, err error) {
	defer func() { c.count(err) }()
	addr := request.ClientIP(r)
	if err := c.cfg.Guard.Arrive(addr); err != nil {
		return ident.Actor{}, err
	}
	var who guard.OnBehalfOf
	asker, body, done, err := c.cfg.Guard.Verify(r, addr, func(a guard.Asker) (body []byte, err error) {
		if !a.Decision.Call {
			return nil, refusedCall(a.Decision)
		}
		if r.Header.Get("Authorization") != "" {
			return nil, federation.Refuse(federation.ReasonMalformed,
				"A portal asks for its own people: leave Authorization out.")
		}
		if who, err = guard.ParseOnBehalfOf(a.For); err != nil {
			return nil, err
		}
		return readMessage(w, r, a.Decision.Unproved)
	})
	if err != nil {
		return ident.Actor{}, err
	}
	// releases the slot of the guard, because agents may take minutes; waiting calls are limited by
	// BeginWait
	done()
	// Owners can permit callers by the host in a handle, so a portal counts under its host only if it was
	// verified there.
	host := string(asker.Portal)
	if peer, ok := c.cfg.Peers.Portal(r.Context(), host); ok && peer.Proven(clock.Now()) &&
		peer.URL == asker.Card.Origin {
		host = peer.Host()
	}
	if who.Kind == "guest" {
		who.Handle = "guest"
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	actor = ident.PortalActor(string(asker.Portal), host, who.ID, who.Handle)
	actor.OwnWords = who.Own
	return actor, nil
}

// readMessage reads the body of a call, with a smaller limit for a portal that was not verified at its
// address.
func readMessage(w http.ResponseWriter, r *http.Request, unproved bool) ([]byte, error) {
	limit, what := int64(maxPeerBody), "Let large files be fetched."
	if unproved {
		limit, what = maxStrangerBody, "More is taken of portals that answer at their origin: let it be reached."
	}
	tooLong := federation.Refuse(federation.ReasonSize, "A message has at most %d bytes. %s", limit, what)
	if r.ContentLength > limit {
		return nil, tooLong
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, tooLong
	}
	if err != nil {
		return nil, federation.Refuse(federation.ReasonMalformed, "The body ended early.")
	}
	return body, nil
}

func refusedCall(d federation.Decision) error {
	why, reason := federation.ReasonDenied, d.Reason
	switch d.State {
	case federation.Pending, federation.Quarantined:
		why = federation.Reason(d.State)
	}
	if reason == "" {
		reason = "This portal does not let people of yours use its agents."
	}
	return federation.Refuse(why, "%s", reason)
}

// May implements request.Portals.
func (c *Calls) May(ctx context.Context, portal string) error {
	if d := c.cfg.Peers.Decide(ctx, record.PortalID(portal), ""); !d.Call {
		return refusedCall(d)
	}
	return nil
}

// Refuse implements request.Portals, in the form of docs/design/peering.md, "Errors".
func (c *Calls) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	why := federation.RefusalOf(err)
	c.cfg.Guard.Strike(request.ClientIP(r), why.Reason)
	f := fault.As(why)
	b, merr := json.Marshal(map[string]any{"error": map[string]any{"kind": string(f.Kind), "reason": string(why.Reason),
		"message": f.Safe}})
	if merr != nil { // impossible, because a refusal consists of strings
		panic(merr)
	}
	if f.Kind == fault.Internal {
		c.cfg.Log.Warn("a request of another portal failed", "path", r.URL.Path, "error", err)
	}
	h := w.Header()
	respond.RetryAfter(h, f.RetryAfter)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(why.Status())
	w.Write(b)
}

// watchPause is how long changes of peers are collected before running work is checked again, because one
// check reads all running work.
const watchPause = 200 * time.Millisecond

// Run ends tasks and streams with portals that have been blocked, within a second of the decision. It
// returns when ctx ends.
func (c *Calls) Run(ctx context.Context) error {
	var gone map[string]bool // portals with streams that have been ended
	for {
		// taken before the check, so that a change during the check causes another one
		changed := c.cfg.Peers.Changed()
		gone = c.endStreams(ctx, gone)
		calls := func(id string) bool { return c.cfg.Peers.Decide(ctx, record.PortalID(id), "").Call }
		out := func(id string) bool { _, err := c.cfg.Ways.Way(ctx, id); return !fault.Is(err, fault.Forbidden) }
		n, err := c.cfg.Tasks.StopPortals(ctx, c.cfg.Store, calls, out)
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("end the work of portals that are shut out", "stopped", n, "error", err)
		}
		if n < task.MaxStopped {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// endStreams ends the streams of portals that may no longer call, except those in before, and returns all
// portals that may not.
func (c *Calls) endStreams(ctx context.Context, before map[string]bool) map[string]bool {
	now := make(map[string]bool)
	for _, p := range c.cfg.Peers.Portals(ctx) {
		id := string(p.ID)
		if id == "" || c.cfg.Peers.Decide(ctx, p.ID, "").Call {
			continue
		}
		if now[id] = true; !before[id] {
			c.cfg.Accounts.EndStreams(ident.PortalCredential(id))
		}
	}
	return now
}

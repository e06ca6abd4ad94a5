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

// Verifier verifies what other portals ask: guard.Guard.
type Verifier interface {
	Arrive(addr string) error
	Strike(addr string, why federation.Reason)
	Verify(r *http.Request, addr string, read guard.ReadBody) (asker guard.Asker, body []byte, done func(), err error)
}

// Standing is how portals are doing: federation.Peers.
type Standing interface {
	Decide(ctx context.Context, portal record.PortalID, origin string) federation.Decision
	Portal(ctx context.Context, name string) (federation.Peer, bool)
	Portals(ctx context.Context) []federation.Peer
	Changed() <-chan struct{}
}

// CallsConfig is what Calls needs.
type CallsConfig struct {
	Guard    Verifier
	Peers    Standing
	Accounts *account.Service
	Tasks    *task.Service
	Store    task.Portals
	Ways     hub.Ways
	Log      *slog.Logger
}

// Calls lets people of other portals call agents here, and ends the work between
// portals that has been shut out. Create it with NewCalls.
type Calls struct {
	cfg     CallsConfig
	allowed prometheus.Counter
	refused *prometheus.CounterVec // by reason
}

var _ request.Portals = (*Calls)(nil)

// NewCalls returns Calls. Keep Run running.
func NewCalls(cfg CallsConfig) *Calls {
	return &Calls{cfg: cfg,
		allowed: prometheus.NewCounter(prometheus.CounterOpts{Name: "agentsite_calls_in_total",
			Help: "Accepted requests about calls of other portals' people."}),
		refused: meter.NewCounters("agentsite_calls_in_refused_total", "Those that were refused, by reason.", "reason",
			string(federation.ReasonDenied))}
}

// count counts a call of another portal's people.
func (c *Calls) count(err error) {
	if err == nil {
		c.allowed.Inc()
		return
	}
	c.refused.WithLabelValues(string(federation.RefusalOf(err).Reason)).Inc()
}

// ListCollectors returns the metrics of Calls.
func (c *Calls) ListCollectors() []prometheus.Collector {
	return []prometheus.Collector{c.allowed, c.refused}
}

// Asks implements request.Portals.
func (c *Calls) Asks(r *http.Request) bool {
	_, err := httpsig.Read(r.Header, guard.SignatureTag)
	return !errors.Is(err, httpsig.ErrNone)
}

const (
	// The largest message of a portal, and of one that was not seen at its origin.
	maxPeerBody     = 4 << 20
	maxStrangerBody = 256 << 10
)

// Asking implements request.Portals. The body is read after the caller is authorized.
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
	done() // agents take their time; those who wait for them are counted apart
	// Owners let people in by the host of a handle, so only a proved portal is named by its host.
	host := string(asker.Portal)
	if peer, ok := c.cfg.Peers.Portal(r.Context(), host); ok && peer.Proven(clock.Now()) &&
		peer.URL == asker.Card.Origin {
		host = peer.Host()
	}
	if who.Kind == "guest" {
		who.Handle = "guest"
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return ident.PortalActor(string(asker.Portal), host, who.ID, who.Handle), nil
}

// readMessage reads the body of a call.
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

// Refuse implements request.Portals; see docs/design/peering.md, "Errors".
func (c *Calls) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	why := federation.RefusalOf(err)
	c.cfg.Guard.Strike(request.ClientIP(r), why.Reason)
	f := fault.As(why)
	b, merr := json.Marshal(map[string]any{"error": map[string]any{"kind": string(f.Kind), "reason": string(why.Reason),
		"message": f.Safe}})
	if merr != nil { // texts can be written
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

// watchPause is how long changes are gathered before all work between portals
// is looked at again.
const watchPause = 200 * time.Millisecond

// Run ends what goes on between this portal and others that have been shut out
// since, within a second, until ctx ends.
func (c *Calls) Run(ctx context.Context) error {
	var gone map[string]bool // whose streams were ended already
	for {
		changed := c.cfg.Peers.Changed() // before it is looked at
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

// endStreams ends the streams of portals that may not ask.
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

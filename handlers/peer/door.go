// Package peer is the endpoint for other portals: the routes under /peering/v1 and the public
// description of this portal. It reads bounded bodies, has each request verified, and writes
// answers and refusals in the form of docs/design/peering.md. It knows the asking portal of a
// request, but not the meaning of a route: each route brings its own handler.
package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
	"agentsite/internal/limit"
)

const (
	// Base is the path above the routes between portals.
	Base = "/peering/v1"
	// WellKnownPath is the path of the public description of a portal.
	WellKnownPath = "/.well-known/agentsite"
)

const (
	// maxAsked bounds the body of a request, in bytes.
	maxAsked = 256 << 10
	// maxPromised bounds the memory reserved for a body by its Content-Length.
	maxPromised = 16 << 10
	// maxCounted bounds the portals with request counts on one route.
	maxCounted = 16 << 10
)

// Config holds the parts of the endpoint.
type Config struct {
	Self    *federation.Self
	Guard   *guard.Guard
	Replica federation.Replica
	Peers   Counter
	// Tiers returns how much this portal keeps of others; nil means all.
	Tiers Tiers
	// Handshakes, if set, observes the handshakes of other portals.
	Handshakes HandshakeObserver
	Version    string
	Log        *slog.Logger
}

// Counter counts the portals and agents that this portal knows.
type Counter interface {
	Counts() (portals, agents int)
}

// Tiers returns how much this portal keeps of others.
type Tiers interface {
	Tier() string
}

// HandshakeObserver observes handshakes.
type HandshakeObserver interface {
	// OnHandshake is called for a portal that started a handshake, admitted or not, before it gets this portal's card;
	// head is its head as received, nil without one.
	OnHandshake(ctx context.Context, asker guard.Asker, head []byte)
}

// Door answers other portals. Create it with New, add the routes with Handle and Mount and then
// call Routes; it is safe for concurrent use from then on.
type Door struct {
	cfg     Config
	mounted []func(chi.Router)
	bodies  map[string]int64 // bounds of bodies in bytes by path, if not maxAsked
	zippers zippers
}

// New returns a Door with the routes that every portal has.
func New(cfg Config) *Door { return &Door{cfg: cfg, bodies: make(map[string]int64)} }

// Routes declares the routes.
func (d *Door) Routes(r chi.Router) {
	r.Get(WellKnownPath, d.openTo(d.servePortal))
	r.Route(Base, func(r chi.Router) {
		r.Get("/portal", d.openTo(d.servePortal))
		r.Get("/status", d.openTo(d.serveStatus))
		r.Post("/hello", d.openTo(d.serveHello))
		r.Group(func(r chi.Router) {
			r.Use(d.requireVerified)
			for _, add := range d.mounted {
				add(r)
			}
		})
		r.NotFound(d.openTo(noRoute))
		r.MethodNotAllowed(d.openTo(noRoute))
	})
}

// Handler answers a verified request. Its result is sent as JSON, or in the form of Lines; an error
// is sent as federation.RefusalOf.
type Handler func(ctx context.Context, asker guard.Asker, r *http.Request, body []byte) (any, error)

// Limits are the limits of one portal on one route, in addition to those of all routes.
type Limits struct {
	// Every is the average interval between requests, zero for no bound; Burst is the number
	// allowed at once.
	Every time.Duration
	Burst int
	// AtOnce bounds the requests being handled, zero for no bound.
	AtOnce int
	// Body bounds the body in bytes, zero for 256 KiB; a route with a bound has no parameters.
	Body int64
}

// tenth returns the limits of a portal that is not verified.
func (l Limits) tenth() Limits {
	few := func(n int) int {
		if n == 0 { // no bound
			return 0
		}
		return max(n/10, 1)
	}
	return Limits{Every: 10 * l.Every, Burst: few(l.Burst), AtOnce: few(l.AtOnce)}
}

// Handle adds a route below Base for admitted portals. The pattern is one of chi, such as
// "/portals/{id}/head".
func (d *Door) Handle(method, pattern string, h Handler, l Limits) {
	enter, few := l.newGate(), l.tenth().newGate()
	if l.Body > 0 {
		d.bodies[Base+pattern] = l.Body
	}
	answer := func(w http.ResponseWriter, r *http.Request) error {
		a, _ := r.Context().Value(askedKey{}).(asked)
		let := enter
		if a.asker.Decision.Unproved {
			let = few
		}
		leave, err := let(string(a.asker.Portal))
		if err != nil {
			return err
		}
		defer leave()
		out, err := h(r.Context(), a.asker, r, a.body)
		if err != nil {
			return err
		}
		return d.writeAnswer(w, r, out)
	}
	d.Mount(func(r chi.Router) {
		r.MethodFunc(method, pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := answer(w, r); err != nil {
				d.Fail(w, r, err)
			}
		})
	})
}

// Mount adds routes below Base for admitted portals. Their handlers get the asking portal from
// AskerOf; the body can be read again.
func (d *Door) Mount(add func(chi.Router)) { d.mounted = append(d.mounted, add) }

type askedKey struct{}

type asked struct {
	asker guard.Asker
	body  []byte
}

// AskerOf returns the verified portal that sent a request.
func AskerOf(r *http.Request) guard.Asker {
	a, _ := r.Context().Value(askedKey{}).(asked)
	return a.asker
}

// requireVerified passes on requests of admitted portals only.
func (d *Door) requireVerified(next http.Handler) http.Handler {
	return d.openTo(func(w http.ResponseWriter, r *http.Request) error {
		asker, body, done, err := d.cfg.Guard.Verify(r, request.ClientIP(r),
			func(guard.Asker) ([]byte, error) { return d.readBody(w, r) })
		if err != nil {
			return err
		}
		defer done()
		r = r.WithContext(context.WithValue(r.Context(), askedKey{}, asked{asker, body}))
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
		return nil
	})
}

// openTo adapts a handler: it refuses addresses with too many requests.
func (d *Door) openTo(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := d.cfg.Guard.Arrive(request.ClientIP(r))
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			d.Fail(w, r, err)
		}
	}
}

func noRoute(http.ResponseWriter, *http.Request) error {
	return federation.Refuse(federation.ReasonAbsent,
		"There is no such route between portals. GET %s/status shows the version of this portal, which may be older.",
		Base)
}

// bodyTimeout bounds the time for a portal to send the body of a request.
const bodyTimeout = 15 * time.Second

// readBody reads a bounded body.
func (d *Door) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return []byte{}, nil
	}
	most := int64(maxAsked)
	if n, ok := d.bodies[r.URL.Path]; ok {
		most = n
	}
	if r.ContentLength > most {
		return nil, tooLong(most)
	}
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // if the connection has deadlines
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), maxPromised)) + bytes.MinRead)
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, tooLong(most)
	}
	if err != nil {
		return nil, federation.Refuse(federation.ReasonMalformed, "The body could not be read: it ended early.")
	}
	return b.Bytes(), nil
}

func tooLong(most int64) error {
	return federation.Refuse(federation.ReasonSize, "The body has more than %d bytes. Send less at once.", most)
}

// newGate returns a function that enforces the limits of a route.
func (l Limits) newGate() (enter func(portal string) (leave func(), err error)) {
	var (
		rate *limit.Keyed
		mu   sync.Mutex // guards busy
		busy = make(map[string]int)
	)
	if l.Every > 0 {
		rate = limit.New(l.Every, max(l.Burst, 1), maxCounted)
	}
	return func(portal string) (func(), error) {
		if l.AtOnce > 0 {
			mu.Lock()
			full := busy[portal] >= l.AtOnce
			if !full {
				busy[portal]++
			}
			mu.Unlock()
			if full {
				return nil, federation.RefuseFor(federation.ReasonLimit, time.Second,
					"Your portal has %d such requests under way here. Wait for their answers.", l.AtOnce)
			}
		}
		leave := func() {
			if l.AtOnce > 0 {
				mu.Lock()
				defer mu.Unlock()
				if busy[portal]--; busy[portal] == 0 {
					delete(busy, portal)
				}
			}
		}
		if rate != nil {
			if wait, ok := rate.Allow(portal); !ok {
				leave()
				return nil, federation.RefuseFor(federation.ReasonLimit, wait,
					"Your portal asks this too often. Ask again later.")
			}
		}
		return leave, nil
	}
}

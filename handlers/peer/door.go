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
	// Base is the path prefix of all routes between portals. The version changes only with incompatible
	// bodies.
	Base = "/peering/v1"
	// WellKnownPath is the path of the public description of a portal.
	WellKnownPath = "/.well-known/agentsite"
)

const (
	// maxAsked bounds the body of a request in bytes, unless the route has another limit.
	maxAsked = 256 << 10
	// maxPromised bounds the buffer that is allocated in advance by the Content-Length of a request,
	// which the caller may have made up.
	maxPromised = 16 << 10
	// maxCounted bounds the portals with a counted request rate on one route, see limit.New.
	maxCounted = 16 << 10
)

// Config holds the parts of the endpoint. Every field except Tiers and Handshakes is required.
type Config struct {
	Self    *federation.Self
	Guard   *guard.Guard
	Replica federation.Replica
	Peers   Counter
	// Tiers returns how much this portal keeps of others. Nil means that it keeps full replicas.
	Tiers Tiers
	// Handshakes is notified of handshakes of other portals; nil for no notification.
	Handshakes HandshakeObserver
	Version    string
	Log        *slog.Logger
}

// Counter returns the numbers of portals and agents that this portal knows.
type Counter interface {
	Counts() (portals, agents int)
}

// Tiers returns the tier of this portal: whether it keeps all records of other portals, summaries or only
// heads.
type Tiers interface {
	Tier() string
}

// HandshakeObserver is notified of handshakes that other portals start.
type HandshakeObserver interface {
	// OnHandshake is called after a handshake was verified and before this portal's card is sent, whether
	// the portal is admitted or not. head is the portal's signed head as received, nil without one.
	OnHandshake(ctx context.Context, asker guard.Asker, head []byte)
}

// Door serves requests of other portals. Create it with New, add routes with Handle and Mount, then call
// Routes. From then on it is safe for concurrent use, and no route may be added.
type Door struct {
	cfg     Config
	mounted []func(chi.Router)
	bodies  map[string]int64 // body limits in bytes by path, for routes with a limit other than maxAsked
	zippers zippers
}

// New returns a Door with the routes that need no handler of another package: description, status and
// handshake.
func New(cfg Config) *Door { return &Door{cfg: cfg, bodies: make(map[string]int64)} }

// Routes declares the routes that were added, and those that every portal has.
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

// Handler handles a verified request of an admitted portal. Its result is sent as JSON, or in the form of
// JSON, Plain, Lines or Binary. An error is sent as the refusal that federation.RefusalOf returns.
type Handler func(ctx context.Context, asker guard.Asker, r *http.Request, body []byte) (any, error)

// Limits are the limits of each portal on one route, in addition to those of the guard for all routes.
type Limits struct {
	// Every is the average interval between requests, 0 for no limit. Burst is how many requests may come
	// at once.
	Every time.Duration
	Burst int
	// AtOnce bounds the requests of a portal that are handled at the same time, 0 for no limit.
	AtOnce int
	// Body bounds the body in bytes, 0 for maxAsked. A route with a limit must have no parameters,
	// because bodies are looked up by path.
	Body int64
}

// tenth returns a tenth of the limits, for portals that are not verified at their address.
func (l Limits) tenth() Limits {
	few := func(n int) int {
		if n == 0 { // 0 means no limit
			return 0
		}
		return max(n/10, 1)
	}
	return Limits{Every: 10 * l.Every, Burst: few(l.Burst), AtOnce: few(l.AtOnce)}
}

// Handle adds a route below Base for admitted portals. The pattern has chi's form, for example
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

// Mount adds routes below Base for admitted portals. Their handlers get the portal from AskerOf, and can
// read the verified body again.
func (d *Door) Mount(add func(chi.Router)) { d.mounted = append(d.mounted, add) }

type askedKey struct{}

type asked struct {
	asker guard.Asker
	body  []byte
}

// AskerOf returns the verified portal that sent a request. It is valid in handlers of Mount only.
func AskerOf(r *http.Request) guard.Asker {
	a, _ := r.Context().Value(askedKey{}).(asked)
	return a.asker
}

// requireVerified is a middleware that passes on requests of admitted portals and refuses others.
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

// openTo adapts a handler of a public route. It refuses client addresses that send too many requests, and
// sends the handler's error as a refusal.
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

// bodyTimeout bounds the time in which a portal must send the body of a request.
const bodyTimeout = 15 * time.Second

// readBody reads a body up to the limit of its route within bodyTimeout. A larger body is refused before
// it is read if its length is known.
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
	// an error means that the connection has no deadlines, as in tests
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
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

// newGate returns a function that enforces the limits of one route. The returned leave must be called
// when the request has been handled; an error is the refusal to send.
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

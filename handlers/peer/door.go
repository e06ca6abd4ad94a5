// Package peer is the door for other portals: the routes under /peering/v1 and
// what everybody may read of this portal. It reads bounded bodies, has each
// request verified, and writes answers and refusals as docs/design/peering.md
// says. It knows what a request is by, never what a route means: those that
// answer bring their handlers.
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
	// Base is what the routes between portals are below.
	Base = "/peering/v1"
	// WellKnownPath is where everybody reads who a portal is.
	WellKnownPath = "/.well-known/agentsite"
)

const (
	// maxAsked bounds the body of a request, in bytes.
	maxAsked = 256 << 10
	// maxPromised bounds the room that is made for a body by the length it says.
	maxPromised = 16 << 10
	// maxCounted bounds the portals whose requests of one route are counted.
	maxCounted = 16 << 10
)

// Config is what the door needs.
type Config struct {
	Self    *federation.Self
	Guard   *guard.Guard
	Replica federation.Replica
	// Counts tells how many portals and agents this one knows.
	Counts func(ctx context.Context) (portals, agents int)
	// Tier says how much this portal keeps of others; nil for all.
	Tier func() string
	// Greeted, when set, is told of a portal that said hello, let in or not, and
	// is about to be told this one's card; head is its head as it came, nil
	// without one.
	Greeted func(ctx context.Context, asker guard.Asker, head []byte)
	Version string
	Log     *slog.Logger
}

// Door answers other portals. Create it with New, add the routes with Handle
// and Mount and then call Routes; it is safe for concurrent use from then on.
type Door struct {
	cfg     Config
	mounted []func(chi.Router)
	bodies  map[string]int64 // most bytes of a body by path, where that is not maxAsked
	zippers zippers
}

// New returns the door with the routes that every portal has.
func New(cfg Config) *Door { return &Door{cfg: cfg, bodies: make(map[string]int64)} }

// Routes declares the routes.
func (d *Door) Routes(r chi.Router) {
	r.Get(WellKnownPath, d.open(d.whole))
	r.Route(Base, func(r chi.Router) {
		r.Get("/portal", d.open(d.whole))
		r.Get("/status", d.open(d.status))
		r.Post("/hello", d.open(d.hello))
		r.Group(func(r chi.Router) {
			r.Use(d.verified)
			for _, add := range d.mounted {
				add(r)
			}
		})
		r.NotFound(d.open(noRoute))
		r.MethodNotAllowed(d.open(noRoute))
	})
}

// Handler answers a request that was verified. What it returns is written as
// JSON, or as Lines has it; an error as federation.RefusalOf has it.
type Handler func(ctx context.Context, asker guard.Asker, r *http.Request, body []byte) (any, error)

// Limits are those of one portal on one route, beside those of all routes.
type Limits struct {
	// Every is how often it may be asked on average, zero for no bound; Burst
	// how often at once.
	Every time.Duration
	Burst int
	// AtOnce is how many requests are worked on at once, zero for no bound.
	AtOnce int
	// Body bounds the body in bytes, zero for 256 KiB; the route has no
	// parameters then.
	Body int64
}

// tenth are those of a portal that is not proved.
func (l Limits) tenth() Limits {
	few := func(n int) int {
		if n == 0 { // no bound
			return 0
		}
		return max(n/10, 1)
	}
	return Limits{Every: 10 * l.Every, Burst: few(l.Burst), AtOnce: few(l.AtOnce)}
}

// Handle adds a route below Base for portals that are let in. The pattern is
// one of chi, such as "/portals/{id}/head".
func (d *Door) Handle(method, pattern string, h Handler, l Limits) {
	enter, few := l.gate(), l.tenth().gate()
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
		return d.write(w, r, out)
	}
	d.Mount(func(r chi.Router) {
		r.MethodFunc(method, pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := answer(w, r); err != nil {
				d.Fail(w, r, err)
			}
		})
	})
}

// Mount adds routes below Base for portals that are let in. AskerOf tells their
// handlers who asks; the body was read and can be read again.
func (d *Door) Mount(add func(chi.Router)) { d.mounted = append(d.mounted, add) }

type askedKey struct{}

type asked struct {
	asker guard.Asker
	body  []byte
}

// AskerOf is the portal that a request is by, as was verified.
func AskerOf(r *http.Request) guard.Asker {
	a, _ := r.Context().Value(askedKey{}).(asked)
	return a.asker
}

// verified lets requests through that are of portals that are let in.
func (d *Door) verified(next http.Handler) http.Handler {
	return d.open(func(w http.ResponseWriter, r *http.Request) error {
		asker, body, done, err := d.cfg.Guard.Verify(r, request.ClientIP(r), func(guard.Asker) ([]byte, error) { return d.readBody(w, r) })
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

// open adapts a handler: addresses that ask too much are not looked at.
func (d *Door) open(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
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
	return federation.Refuse(federation.ReasonAbsent, "There is no such route between portals. Is this portal of an older version? GET %s/status tells.", Base)
}

// bodyTimeout is how long a portal may take to send the body of a request.
const bodyTimeout = 15 * time.Second

// readBody reads a bounded body.
func (d *Door) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	most := int64(maxAsked)
	if n, ok := d.bodies[r.URL.Path]; ok {
		most = n
	}
	if r.ContentLength > most {
		return nil, tooLong(most)
	}
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // where there are deadlines
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

// gate returns what counts the requests of a route.
func (l Limits) gate() (enter func(portal string) (leave func(), err error)) {
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
				return nil, federation.RefuseFor(federation.ReasonLimit, time.Second, "Your portal has %d such requests under way here. Wait for their answers.", l.AtOnce)
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
				return nil, federation.RefuseFor(federation.ReasonLimit, wait, "Your portal asks this too often. Ask again later.")
			}
		}
		return leave, nil
	}
}

// Package ard is the door for programs that look for agents: the catalogs and
// the registry of Agentic Resource Discovery 0.91, the same catalog as an AI
// Catalog 1.0, and the portal's NodeInfo 2.1. It lists public agents only and
// refuses to know how an agent is talked to: an entry points at the agent's
// A2A card. It reads no cookie.
//
// Section numbers in this package are those of the ARD specification 0.91.
package ard

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// Directory is what the door asks of the hub.
type Directory interface {
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
	// Listed returns an agent that Search may find, by its name.
	Listed(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
	// State changes whenever Search may find or show something else.
	State() uint64
	// Own is the number of this portal's agents that Search may find.
	Own() int
	// Source says where an agent comes from, Portals which other portals' agents
	// Search may find.
	Source(a hub.Agent) hub.Source
	Portals() []hub.Source
}

// Config is what the door tells of the portal. Every field but Document and
// Sign is required; without these entries have no trust manifests.
type Config struct {
	Directory Directory
	// Caller is the actor that the credentials of a request prove: a bearer
	// token, else a guest. A token that proves nothing is an error.
	Caller func(r *http.Request) (ident.Actor, error)
	Name   string // of the portal, for people
	URL    string // without a trailing slash
	Host   string // the portal's part of handles
	// Publisher is the publisher's domain in identifiers, see Domain.
	Publisher string
	// Version is the software's.
	Version string
	// PublicKey is the portal's Ed25519 key, base64url without padding.
	PublicKey string
	// Document is the card of a type that anybody is served of an agent, nil
	// for one that the portal does not vouch for.
	Document func(a hub.Agent, mediaType string) ([]byte, error)
	// Sign makes a detached JWS, in compact form, over the canonical form of a
	// JSON text, by a key of the portal.
	Sign func(text []byte) (string, error)
	// Started is when the portal began to write cards as it does.
	Started time.Time
	// OpenAccounts is true when anybody may sign up.
	OpenAccounts bool
	// Usage, when set, counts for NodeInfo. It is asked by strangers, so it
	// must be cheap.
	Usage func(ctx context.Context) (Usage, error)
	Log   *slog.Logger
}

// Door serves the routes. Create it with New; it is safe for concurrent use.
type Door struct {
	cfg       Config
	catalog   catalog
	manifests manifests
}

// New returns the door.
func New(cfg Config) *Door { return &Door{cfg: cfg} }

// base is the path of the registry; the operations of §5.3 are below it.
const base = "/ard"

// Routes declares the routes.
func (d *Door) Routes(r chi.Router) {
	r.Get("/.well-known/ard.json", d.answer(d.ardCatalog))
	r.Get("/.well-known/ai-catalog.json", d.answer(d.aiCatalog))
	r.Get("/.well-known/nodeinfo", d.answer(d.nodeinfoLinks))
	r.Get("/nodeinfo/2.1", d.answer(d.nodeinfo))
	r.Route(base, func(r chi.Router) {
		r.Post("/search", d.asked(d.search))
		r.Post("/explore", d.asked(d.explore))
		r.Get("/agents", d.asked(d.list))
		r.Get("/agents/{urn}", d.asked(d.retrieve))
		r.NotFound(d.answer(d.noRoute))
		r.MethodNotAllowed(d.answer(d.noRoute))
	})
}

// answer adapts a handler that shows everybody the same.
func (d *Door) answer(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			d.fail(w, r, err)
		}
	}
}

// asked adapts a handler of the registry, whose caller is looked at first.
func (d *Door) asked(h func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error) http.HandlerFunc {
	return d.answer(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Add("Vary", "Authorization")
		actor, err := d.cfg.Caller(r)
		if err != nil {
			return err
		}
		return h(w, r, actor)
	})
}

func (d *Door) noRoute(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "This is the base of an ARD registry. It answers POST /search, POST /explore, GET /agents and GET /agents/{identifier} below %s; see %s/docs/connect.", d.cfg.URL+base, d.cfg.URL)
}

// anybody asks for what everybody may see.
var anybody = ident.Actor{Kind: ident.Guest}

// stampLayout is how the portal writes times: RFC 3339 in UTC, milliseconds.
const stampLayout = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stampLayout)
}

// Domain is the publisher's domain in the identifiers of a portal, from the
// host name of its URL: a publisher has no port, and of what a host name may
// hold only letters, digits, dots and hyphens, so an IPv6 address has hyphens
// for its colons.
func Domain(hostname string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, strings.ToLower(hostname))
}

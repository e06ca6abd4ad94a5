// Package ard is the endpoint for programs that search agents: the catalogs and the registry of
// Agentic Resource Discovery 0.91, the same catalog as an AI Catalog 1.0, and the portal's NodeInfo
// 2.1. It lists public agents only. An entry points at the agent's A2A card, which describes the
// calls. It reads no cookie.
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

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/adjust"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// Directory is the part of the hub that the endpoint uses.
type Directory interface {
	Search(ctx context.Context, actor ident.Actor, q hub.Query) (hub.Page, error)
	// Listed returns a public agent by its name, and a NotFound error for an agent that Search may not
	// find.
	Listed(ctx context.Context, actor ident.Actor, name string) (hub.Agent, error)
	// State returns a number that changes whenever results of Search may change, for caches.
	State() uint64
	// Own returns the number of this portal's public agents.
	Own() int
	// Source returns the portal that lists an agent. Portals returns the other portals that have agents
	// which Search may find.
	Source(a hub.Agent) hub.Source
	Portals() []hub.Source
}

// Config describes the portal. Every field except Documents and Signer is required; without these two,
// entries have no trust manifests.
type Config struct {
	Directory Directory
	Callers   request.Authenticator
	Name      string // name of the portal, shown to people, unless Live has one
	URL       string // public address, without a trailing slash
	Host      string // the part of handles after the @
	// Publisher is the publisher's domain in identifiers, see Domain.
	Publisher string
	// Version is the version of the software.
	Version string
	// PublicKey is the portal's Ed25519 key, base64url without padding.
	PublicKey string
	Documents Documents
	Signer    Signer
	// Started is the start time of this process. Entries count as changed at that time, because a new
	// version may write cards differently.
	Started time.Time
	// Live says whether every visitor may create an account; NodeInfo reports it.
	Live *adjust.Snapshot
	// Usage returns the counts for NodeInfo; nil leaves the counts out.
	Usage UsageCounter
	Log   *slog.Logger
}

// Documents returns the public cards of agents, which trust manifests refer to.
type Documents interface {
	// Document returns the card of an agent of the given media type; found is false if the portal does not vouch for
	// it.
	Document(a hub.Agent, mediaType string) (card []byte, found bool, err error)
}

// Signer signs with a key of the portal.
type Signer interface {
	// SignDetached makes a detached JWS, in compact form, over the canonical form of a JSON text.
	SignDetached(text []byte) (string, error)
}

// UsageCounter returns usage counts. A call must be cheap, because the route is public; implementations
// cache.
type UsageCounter interface {
	CountUsage(ctx context.Context) (Usage, error)
}

// Handler serves the routes. Create it with New; it is safe for concurrent use.
type Handler struct {
	cfg       Config
	catalog   catalog
	manifests manifests
}

// New returns a Handler. Its routes are declared by Routes.
func New(cfg Config) *Handler { return &Handler{cfg: cfg} }

// base is the path of the registry, above the operations of §5.3.
const base = "/ard"

// Routes declares the routes of the catalogs, the registry and NodeInfo.
func (d *Handler) Routes(r chi.Router) {
	r.Get("/.well-known/ard.json", d.servePublic(d.ardCatalog))
	r.Get("/.well-known/ai-catalog.json", d.servePublic(d.aiCatalog))
	r.Get("/.well-known/nodeinfo", d.servePublic(d.nodeinfoLinks))
	r.Get("/nodeinfo/2.1", d.servePublic(d.serveNodeinfo))
	r.Route(base, func(r chi.Router) {
		r.Post("/search", d.serveActor(d.serveSearch))
		r.Post("/explore", d.serveActor(d.serveExplore))
		r.Get("/agents", d.serveActor(d.serveList))
		r.Get("/agents/{urn}", d.serveActor(d.retrieveEntry))
		r.NotFound(d.servePublic(d.noRoute))
		r.MethodNotAllowed(d.servePublic(d.noRoute))
	})
}

// servePublic adapts a handler with the same answer for all callers, so that no credential is read.
func (d *Handler) servePublic(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			d.sendError(w, r, err)
		}
	}
}

// serveActor adapts a handler that needs the caller's actor, which bearer tokens prove; other callers are
// guests.
func (d *Handler) serveActor(h func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error) http.HandlerFunc {
	return d.servePublic(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Add("Vary", "Authorization")
		actor, err := d.cfg.Callers.Authenticate(r)
		if err != nil {
			return err
		}
		respond.SetReader(w, actor)
		return h(w, r, actor)
	})
}

func (d *Handler) noRoute(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "This is the base of an ARD registry. It answers POST /search, POST /explore, GET /agents and GET /agents/{identifier} below %s; see %s/docs/connect.", d.cfg.URL+base, d.cfg.URL)
}

// publicActor is the actor for catalogs, which hold public agents only.
var publicActor = ident.Actor{Kind: ident.Guest}

// stampLayout is the portal's time format: RFC 3339 in UTC with milliseconds.
const stampLayout = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stampLayout)
}

// Domain returns the publisher's domain in the identifiers of a portal, from the host name of its
// URL. A publisher has no port, and may contain only letters, digits, dots and hyphens, so the
// colons of an IPv6 address become hyphens.
func Domain(hostname string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, strings.ToLower(hostname))
}

// Package registry is the endpoint of the MCP registry API v0.1: programs list and search the MCP
// servers of this portal and publish their own, and mcp-publisher, the client of the official
// registry, works unmodified. The package implements the forms and rules of that API, including
// server.json, and the proof of a domain; the hub decides the permissions. It reads no cookie.
//
// This registry differs from the official one where this portal can call the listed servers;
// docs/connect.md describes the differences.
package registry

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/adjust"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/registry"
)

// Directory is the part of the hub that the endpoint uses. The hub checks the actor's permissions.
type Directory interface {
	Releases(ctx context.Context, actor ident.Actor, f registry.Filter) ([]registry.Release, bool, error)
	ReleasesOf(ctx context.Context, actor ident.Actor, name string, deleted bool) ([]registry.Release, error)
	Release(ctx context.Context, actor ident.Actor, name, version string, deleted bool) (registry.Release, error)
	PublishRelease(ctx context.Context, actor ident.Actor, r registry.Release) (registry.Release, error)
	SetReleaseStatus(ctx context.Context, actor ident.Actor, name, version, status string,
		message *string) ([]registry.Release, error)
	// Namespace returns the namespace of this portal's own agents: its host in reverse order.
	Namespace() string
}

// Resolver looks up the TXT records of a domain. *net.Resolver implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// AddressPolicy decides which addresses the portal may call. It refuses private networks, for example.
type AddressPolicy interface {
	// CheckURL returns the reason why an address may not be called, or nil.
	CheckURL(address string) error
}

// Sealer encrypts and decrypts texts with a key of this portal. The second argument of both methods binds
// the text to a purpose.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
}

// Config holds the parts of the endpoint. Every field except Revision is required.
type Config struct {
	Directory Directory
	Callers   request.Authenticator
	Sealer    Sealer
	// Fetch reads the keys of domains over HTTPS. It must refuse private addresses, because callers
	// choose the domain.
	Fetch     http.RoundTripper
	Resolver  Resolver
	Addresses AddressPolicy
	// Live says whether a domain alone may publish, without an account: if every visitor may create one.
	Live *adjust.Snapshot
	// Loopback is true if the portal is reachable from this machine only; then http addresses and local
	// domains are allowed.
	Loopback bool
	URL      string // address of the portal, without a trailing slash
	Version  string // version of the software
	Revision string // source revision of the software, "" if unknown
	// Started is the start time of this process. Signed times before it are refused, because the list of
	// used ones was lost.
	Started time.Time
	Log     *slog.Logger
}

// Handler serves the routes. Create it with New; it is safe for concurrent use.
type Handler struct {
	Config
	logins *limit.Keyed // limits logins by client address
	checks *limit.Keyed // limits validations of server.json by client address
	used   usedStamps
}

// New returns a Handler. Its routes are declared by Routes.
func New(cfg Config) *Handler {
	return &Handler{Config: cfg, logins: limit.New(6*time.Second, 20, 50_000),
		checks: limit.New(time.Second/2, 60, 50_000), used: usedStamps{until: make(map[string]time.Time)}}
}

// Routes declares the same routes below /v0 and /v0.1, the two names of the API's version.
func (d *Handler) Routes(r chi.Router) {
	for _, base := range []string{"/v0.1", "/v0"} {
		r.Route(base, func(r chi.Router) {
			r.Get("/servers", d.serveActor(request.Listing(d.listServers)))
			r.Get("/servers/{name}/versions", d.serveActor(request.Listing(d.listVersions)))
			r.Get("/servers/{name}/versions/{version}", d.serveActor(d.serveVersion))
			r.Patch("/servers/{name}/versions/{version}/status", d.serveActor(d.setOneStatus))
			r.Patch("/servers/{name}/status", d.serveActor(d.statusOfAll))
			r.Post("/publish", d.serveActor(d.publishVersion))
			r.Post("/validate", d.serve(d.serveValidate))
			r.Post("/auth/http", d.serve(d.loginHTTP))
			r.Post("/auth/dns", d.serve(d.loginDNS))
			r.Post("/auth/none", d.serve(d.loginNone))
			r.Get("/ping", d.serve(d.servePing))
			r.Get("/version", d.serve(d.softwareVersion))
			r.Get("/health", d.serve(d.serveHealth))
			r.NotFound(d.serve(d.noRoute))
			r.MethodNotAllowed(d.serve(d.noRoute))
		})
	}
}

// serve adapts a handler, and sends the error that the handler returns.
func (d *Handler) serve(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			d.sendError(w, r, err)
		}
	}
}

// serveActor adapts a handler that needs the actor of the request's credential.
func (d *Handler) serveActor(h func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error) http.HandlerFunc {
	return d.serve(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Add("Vary", "Authorization")
		actor, err := d.callerOf(r)
		if err != nil {
			return err
		}
		respond.SetReader(w, actor)
		return h(w, r, actor)
	})
}

func (d *Handler) noRoute(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "Endpoint not found. This is an MCP registry; %s/docs/connect says which endpoints it has, and that names of servers are percent-encoded in paths.", d.URL)
}

func (d *Handler) servePing(w http.ResponseWriter, _ *http.Request) error {
	return respond.WriteJSON(w, http.StatusOK, struct {
		Pong bool `json:"pong"`
	}{true})
}

func (d *Handler) softwareVersion(w http.ResponseWriter, _ *http.Request) error {
	return respond.WriteJSON(w, http.StatusOK, struct {
		Version   string `json:"version"`
		GitCommit string `json:"git_commit"`
		BuildTime string `json:"build_time"`
	}{"agentsite " + d.Version, d.Revision, ""})
}

func (d *Handler) serveHealth(w http.ResponseWriter, _ *http.Request) error {
	return respond.WriteJSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}

// Package registry is the door of the MCP registry API v0.1: programs list
// and search the MCP servers of this portal and publish their own, and
// mcp-publisher, the client of the official registry, works unmodified. The
// package knows the shapes and rules of that API, server.json among them, and
// how a domain is proved; who may publish what is the hub's to say. It reads
// no cookie.
//
// Where this registry differs from the official one it is because this portal
// can call what it lists; docs/connect.md says where.
package registry

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/registry"
)

// Directory is what the door asks of the hub.
type Directory interface {
	Releases(ctx context.Context, actor ident.Actor, f registry.Filter) ([]registry.Release, bool, error)
	ReleasesOf(ctx context.Context, actor ident.Actor, name string, deleted bool) ([]registry.Release, error)
	Release(ctx context.Context, actor ident.Actor, name, version string, deleted bool) (registry.Release, error)
	PublishRelease(ctx context.Context, actor ident.Actor, r registry.Release) (registry.Release, error)
	SetReleaseStatus(ctx context.Context, actor ident.Actor, name, version, status string, message *string) ([]registry.Release, error)
	// Namespace is the portal's own.
	Namespace() string
}

// Resolver looks up what a domain says of itself. *net.Resolver implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// Sealer makes texts that only this portal can make and read.
type Sealer interface {
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
}

// Config is what the door needs. Every field is required but Revision.
type Config struct {
	Directory Directory
	// Caller is the actor that an API token proves, or a guest.
	Caller func(r *http.Request) (ident.Actor, error)
	Sealer Sealer
	// Fetch reads the keys of domains; it dials no private address.
	Fetch    http.RoundTripper
	Resolver Resolver
	// CheckURL says in words why an address may not be called.
	CheckURL func(string) error
	// Open is true when a domain alone may publish, without an account.
	Open bool
	// Loopback is true when the portal is on this machine only.
	Loopback bool
	URL      string // of the portal, without a trailing slash
	Version  string // of the software
	Revision string // of its source, if known
	// Started is when the portal did: what was signed before may have been
	// used before.
	Started time.Time
	Log     *slog.Logger
}

// Door serves the routes. Create it with New; it is safe for concurrent use.
type Door struct {
	Config
	logins *limit.Keyed // by address
	checks *limit.Keyed // of server.json, by address
	used   usedStamps
}

// New returns the door.
func New(cfg Config) *Door {
	return &Door{Config: cfg, logins: limit.New(6*time.Second, 20, 50_000), checks: limit.New(time.Second/2, 60, 50_000), used: usedStamps{until: make(map[string]time.Time)}}
}

// Routes declares the routes, the same below both names of the version.
func (d *Door) Routes(r chi.Router) {
	for _, base := range []string{"/v0.1", "/v0"} {
		r.Route(base, func(r chi.Router) {
			r.Get("/servers", d.known(d.list))
			r.Get("/servers/{name}/versions", d.known(d.versions))
			r.Get("/servers/{name}/versions/{version}", d.known(d.version))
			r.Patch("/servers/{name}/versions/{version}/status", d.known(d.status))
			r.Patch("/servers/{name}/status", d.known(d.statusOfAll))
			r.Post("/publish", d.known(d.publish))
			r.Post("/validate", d.answer(d.validate))
			r.Post("/auth/http", d.answer(d.loginHTTP))
			r.Post("/auth/dns", d.answer(d.loginDNS))
			r.Post("/auth/none", d.answer(d.loginNone))
			r.Get("/ping", d.answer(d.ping))
			r.Get("/version", d.answer(d.softwareVersion))
			r.Get("/health", d.answer(d.health))
			r.NotFound(d.answer(d.noRoute))
			r.MethodNotAllowed(d.answer(d.noRoute))
		})
	}
}

// answer adapts a handler: it answers, or returns the error to be shown.
func (d *Door) answer(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			d.fail(w, r, err)
		}
	}
}

// known adapts a handler whose caller is looked at first.
func (d *Door) known(h func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error) http.HandlerFunc {
	return d.answer(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Add("Vary", "Authorization")
		actor, err := d.caller(r)
		if err != nil {
			return err
		}
		return h(w, r, actor)
	})
}

func (d *Door) noRoute(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "Endpoint not found. This is an MCP registry; %s/docs/connect says which endpoints it has, and that names of servers are percent-encoded in paths.", d.URL)
}

func (d *Door) ping(w http.ResponseWriter, _ *http.Request) error {
	return respond.WriteJSON(w, http.StatusOK, struct {
		Pong bool `json:"pong"`
	}{true})
}

func (d *Door) softwareVersion(w http.ResponseWriter, _ *http.Request) error {
	return respond.WriteJSON(w, http.StatusOK, struct {
		Version   string `json:"version"`
		GitCommit string `json:"git_commit"`
		BuildTime string `json:"build_time"`
	}{"agentsite " + d.Version, d.Revision, ""})
}

func (d *Door) health(w http.ResponseWriter, _ *http.Request) error {
	return respond.WriteJSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}

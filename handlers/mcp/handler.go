// Package mcp is the endpoint for clients of the Model Context Protocol. The portal is a server
// with tools that find agents and ask them, and every agent is a server with its skills as tools. A
// call is one question in a conversation of the caller and one task, as at every endpoint. Package
// endpoint implements the protocol, the services decide the permissions.
package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/request"
	"agentsite/internal/adjust"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/registry"
)

// Config holds the parts of the endpoint; everything is required except Servers.
type Config struct {
	// Callers is shared by all endpoints, so that a visitor is the same actor at each.
	Callers *request.Callers
	Hub     *hub.Service
	Chat    *chat.Service
	// Name and URL are the portal's name and address; URL has no trailing slash.
	Name, URL string
	// Version is the version of the software, which servers report.
	Version string
	// Live says whether callers without a credential may use public agents.
	Live *adjust.Snapshot
	// Key is a secret of the portal for this endpoint only; it signs states and session ids.
	Key []byte
	// Servers replace the generated servers of agents, by the agent's name; used for conformance tests.
	Servers map[string]*endpoint.Server
	Log     *slog.Logger
}

// Handler serves the protocol. Create it with New.
type Handler struct {
	cfg    Config
	serve  *endpoint.Endpoint
	portal *endpoint.Server
	agents *serverCache
}

// New returns a Handler. Its routes are declared by Routes.
func New(cfg Config) (*Handler, error) {
	d := &Handler{cfg: cfg, agents: newServerCache()}
	d.serve = endpoint.New(endpoint.Config{Callers: cfg.Callers, Key: cfg.Key, MetadataURL: cfg.URL + metadataPath,
		Log: cfg.Log})
	var err error
	d.portal, err = endpoint.NewServer(d.portalOffer())
	return d, err
}

// endpointName names this endpoint in tasks, so that owners see by which protocol they are called.
const endpointName = "mcp"

// keepLists is the time for which clients may cache the lists of an agent or the portal: an owner's
// change is visible within minutes.
const keepLists = 5 * time.Minute

// Routes declares the routes of the servers, their cards and the catalog.
func (d *Handler) Routes(r chi.Router) {
	for base, find := range map[string]endpoint.Find{portalPath: d.findPortal, agentPath: d.findAgent} {
		r.Post(base, d.serve.Post(find))
		r.Get(base, d.serve.NotHere)
		r.Delete(base, d.serve.NotHere)
		r.Get(metadataPath+base, d.serveMetadata)
	}
	r.Get(metadataPath, d.serveMetadata)
	r.Get(portalPath+cardSuffix, d.portalCard)
	r.Get(agentPath+cardSuffix, d.agentCard)
	r.Get("/.well-known/mcp/server-card.json", d.portalCard)
	r.Get("/.well-known/mcp/catalog.json", d.serveCatalog)
}

// Paths of the servers.
const (
	portalPath = "/mcp"
	agentPath  = "/agents/{name}/mcp"
)

func (d *Handler) findPortal(context.Context, *http.Request, ident.Actor) (*endpoint.Server, error) {
	return d.portal, nil
}

func (d *Handler) findAgent(ctx context.Context, r *http.Request, actor ident.Actor) (*endpoint.Server, error) {
	a, err := d.cfg.Hub.Addressed(ctx, actor, request.PathParam(r, "name"))
	if err != nil {
		return nil, err
	}
	if s := d.cfg.Servers[a.Name]; s != nil && !a.Elsewhere() {
		return s, nil
	}
	return d.agents.getServer(a, d.agentOffer)
}

func (d *Handler) agentURL(name string) string {
	return d.cfg.URL + "/agents/" + url.PathEscape(name) + "/mcp"
}

// serverName returns the globally unique name of a server, in the form of the MCP registry.
func (d *Handler) serverName(name string) string {
	return registry.Namespace(d.cfg.Hub.Portal()) + "/" + name
}

func (d *Handler) portalHost() string { return d.cfg.Hub.Portal() }

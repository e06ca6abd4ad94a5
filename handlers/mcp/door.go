// Package mcp is the door for clients of the Model Context Protocol. The
// portal is a server whose tools find agents and ask them, and every agent is
// a server with its skills as tools. A call is one question in a conversation
// of the caller and one task, as at every door. The protocol itself is the
// package endpoint's matter, and who may do what the services'.
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
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/registry"
)

// Config is what the door needs; everything is required but Servers.
type Config struct {
	// Callers are the portal's, so that visitors are the same at each face.
	Callers *request.Callers
	Hub     *hub.Service
	Chat    *chat.Service
	// Name and URL are the portal's; URL has no slash at its end.
	Name, URL string
	// Version is of the program.
	Version string
	// Guests is whether callers without a credential are served.
	Guests bool
	// Key is a secret of the portal's for this door alone.
	Key []byte
	// Servers stand in for those of agents, by the agent's name.
	Servers map[string]*endpoint.Server
	Log     *slog.Logger
}

// Door serves the protocol. Create it with New.
type Door struct {
	cfg    Config
	serve  *endpoint.Endpoint
	portal *endpoint.Server
	agents *shelf
}

// New returns the door over the services.
func New(cfg Config) (*Door, error) {
	d := &Door{cfg: cfg, agents: newShelf()}
	d.serve = endpoint.New(endpoint.Config{Callers: cfg.Callers, Key: cfg.Key, Metadata: d.metadataURL, Log: cfg.Log})
	var err error
	d.portal, err = endpoint.NewServer(d.portalOffer())
	return d, err
}

// doorName is what tasks note of the door they came through.
const doorName = "mcp"

// keepLists is how long clients may keep what an agent or the portal offers:
// what an owner changes is seen within minutes.
const keepLists = 5 * time.Minute

// Routes declares the routes of the protocol.
func (d *Door) Routes(r chi.Router) {
	for base, find := range map[string]endpoint.Find{portalPath: d.findPortal, agentPath: d.findAgent} {
		r.Post(base, d.serve.Post(find))
		r.Get(base, d.serve.NotHere)
		r.Delete(base, d.serve.NotHere)
		r.Get(metadataPath+base, d.metadata)
	}
	r.Get(metadataPath, d.metadata)
	r.Get(portalPath+cardSuffix, d.portalCard)
	r.Get(agentPath+cardSuffix, d.agentCard)
	r.Get("/.well-known/mcp/server-card.json", d.portalCard)
	r.Get("/.well-known/mcp/catalog.json", d.catalog)
}

// Where the servers are.
const (
	portalPath = "/mcp"
	agentPath  = "/agents/{name}/mcp"
)

func (d *Door) findPortal(context.Context, *http.Request, ident.Actor) (*endpoint.Server, error) {
	return d.portal, nil
}

func (d *Door) findAgent(ctx context.Context, r *http.Request, actor ident.Actor) (*endpoint.Server, error) {
	a, err := d.cfg.Hub.Addressed(ctx, actor, request.PathParam(r, "name"))
	if err != nil {
		return nil, err
	}
	if s := d.cfg.Servers[a.Name]; s != nil && !a.Elsewhere() {
		return s, nil
	}
	return d.agents.get(a, d.agentOffer)
}

// agentURL is where an agent's server is.
func (d *Door) agentURL(name string) string {
	return d.cfg.URL + "/agents/" + url.PathEscape(name) + "/mcp"
}

// serverName is how a server of this portal is called among all of the world,
// as in the MCP registry.
func (d *Door) serverName(name string) string {
	return registry.Namespace(d.cfg.Hub.Portal()) + "/" + name
}

// host is the portal's part of handles.
func (d *Door) host() string { return d.cfg.Hub.Portal() }

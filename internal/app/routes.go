package app

import (
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/a2a"
	"agentsite/handlers/ard"
	"agentsite/handlers/link"
	"agentsite/handlers/mcp"
	"agentsite/handlers/openai"
	"agentsite/handlers/registry"
	"agentsite/handlers/respond"
	"agentsite/handlers/tools"
	"agentsite/internal/hub"
	"agentsite/internal/limit"
	mcpregistry "agentsite/internal/registry"
	"agentsite/internal/weborigin"
	"agentsite/web"
)

// newRouter builds the handler for all requests to the portal's own address. The services must exist.
func (p *Portal) newRouter() http.Handler {
	dir := link.Directory{Hub: p.hub}
	agents := link.New(link.Config{Callers: p.callers, Accounts: p.accounts, Agents: dir,
		Attach: p.drivers.link, All: p.limits.links, PerAccount: p.limits.linksPerAccount,
		PerAddress: int(p.set.Bounds.Connections.StrangersPerAddress), Log: p.log})
	directory := ard.New(ard.Config{Documents: agentCards{p.a2a, p.mcp}, Signer: p.signer, Started: p.started,
		Directory: p.hub, Callers: p.callers, Name: p.url.Host, URL: p.URL(), Host: p.url.Host,
		Publisher: ard.Domain(p.url.Hostname()),
		Version:   Release(), PublicKey: p.publicKey, Live: p.live,
		Usage: &portalCounts{p: p}, Log: p.log})
	servers := registry.New(registry.Config{Directory: p.newServers(), Callers: p.callers, Sealer: p.keys,
		Fetch: p.egress.RoundTripper(), Resolver: &net.Resolver{PreferGo: true},
		Addresses: addressPolicy{p.egress}, Live: p.live,
		Loopback: weborigin.IsLoopback(p.url.Hostname()), URL: p.URL(), Version: Release(), Revision: Revision(),
		Started: p.started, Log: p.log})
	models := openai.New(openai.Config{Callers: p.callers, Hub: p.hub, Chat: p.chats, URL: p.url.String(),
		Host: p.url.Host, Log: p.log})
	handed := tools.New(tools.Config{Sessions: p.drivers.tools, Version: Release(),
		Key: []byte(p.Mark("agentsite/tools-sessions/1", "states")), Log: p.log})
	return web.Router(p.routes, web.Config{Link: agents, OpenAI: models,
		Faces: []func(chi.Router){directory.Routes, p.a2a.Routes, p.mcp.Routes, handed.Routes, servers.Routes,
			p.peerRoutes},
		Host: p.url.Host, Loopback: weborigin.IsLoopback(p.url.Hostname()), Secure: p.url.Scheme == "https",
		TrustedProxies: p.set.Proxies, Readers: p.newReaders(), Metrics: p.answerMetrics, Database: p.db, Log: p.log})
}

// newReaders returns the bounds on the memory, time and downloads of readers of answers.
func (p *Portal) newReaders() *respond.Readers {
	m := p.set.Bounds.Memory
	return respond.NewReaders(
		limit.NewMemory(limit.MemoryConfig{Total: m.Reading, Share: m.ReadingPerReader, Reserve: m.ReadingReserve}),
		limit.NewConcurrent(int(m.Downloads)), time.Duration(m.ReadStall)*time.Millisecond)
}

// agentCards implements ard.Documents: it returns the public cards of agents, A2A or MCP.
type agentCards struct {
	a2a *a2a.Handler
	mcp *mcp.Handler
}

// Document implements ard.Documents. found is false for other media types and for agents without such a
// card.
func (c agentCards) Document(a hub.Agent, mediaType string) (card []byte, found bool, err error) {
	switch mediaType {
	case a2a.CardType:
		card, err = c.a2a.Card(a)
	case mcp.CardType:
		card = c.mcp.Card(a)
	}
	return card, card != nil, err
}

// Route is one HTTP method on one path pattern of the portal.
type Route struct{ Method, Pattern string }

// Routes returns all routes, read from the router itself, so that the authorization matrix can be
// compared with them.
func (p *Portal) Routes() ([]Route, error) {
	var out []Route
	err := chi.Walk(p.newRouter().(chi.Routes),
		func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			out = append(out, Route{method, pattern})
			return nil
		})
	return out, err
}

// Addr returns the listening address. It may differ from the address in URL, for example behind a proxy.
func (p *Portal) Addr() net.Addr { return p.listener.Addr() }

// newServers builds the MCP registry of the portal.
func (p *Portal) newServers() *mcpregistry.Service {
	cfg := mcpregistry.Config{Portal: p.url.Host, Loopback: weborigin.IsLoopback(p.url.Hostname()), Log: p.log}
	return mcpregistry.New(p.db.Hub, p.hub, cfg)
}

// Package api has the HTTP API of the portal below /api/v1, and its description
// as an OpenAPI document.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/address"
	"agentsite/handlers/api/spending"
	"agentsite/handlers/edits"
	"agentsite/handlers/files"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/handlers/search"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/grant"
	"agentsite/internal/halt"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/notify"
	"agentsite/internal/quota"
	"agentsite/internal/task"
)

// API is the HTTP API of a portal. Create it with New.
type API struct {
	portal     address.Portal
	cookieName string
	describing sync.Once // builds document at the first request for it
	document   document
	peers      *federation.Peers
	sessions   *request.Sessions
	agents     *agentAPI
	chats      *chatAPI
	account    *accountAPI
	queue      Queue
	spending   *spending.API
	halts      haltAPI
}

// Config holds the services that the API calls; every field is required.
type Config struct {
	Portal     address.Portal
	CookieName string // cookie of a session, named in the OpenAPI document
	Accounts   *account.Service
	Hub        *hub.Service
	Chat       *chat.Service
	Tasks      *task.Service
	Hooks      *notify.Service
	Peers      *federation.Peers
	Queue      Queue
	Sessions   *request.Sessions
	Searches   *search.Searches
	Files      *files.Files
	Storage    Storage
	Grants     *grant.Service
	Spending   *spending.API
	Halts      *halt.Service
	Packages   Packages
	Log        *slog.Logger
}

// Storage returns the bytes that are stored for an actor.
type Storage interface {
	StorageOf(ctx context.Context, actor ident.Actor) (quota.Usage, error)
}

// New returns the API over the services of a portal. publications returns the publication state of this
// portal's agents in the network; nil without federation.
func New(cfg Config, publications Publications) *API {
	return &API{
		portal: cfg.Portal, cookieName: cfg.CookieName, peers: cfg.Peers, queue: cfg.Queue,
		spending: cfg.Spending, halts: haltAPI{cfg.Halts},
		sessions: cfg.Sessions,
		agents: &agentAPI{portal: cfg.Portal, hub: cfg.Hub, searches: cfg.Searches, publications: publications,
			packages: cfg.Packages,
			proofs:   limit.New(500*time.Millisecond, 60, 10_000)},
		chats: &chatAPI{portal: cfg.Portal, chat: cfg.Chat, tasks: cfg.Tasks, hooks: cfg.Hooks,
			edits: &edits.Editor{Chat: cfg.Chat, Tasks: cfg.Tasks}, sessions: cfg.Sessions, files: cfg.Files, log: cfg.Log},
		account: &accountAPI{portal: cfg.Portal, accounts: cfg.Accounts, hub: cfg.Hub, hooks: cfg.Hooks,
			storage: cfg.Storage, grants: cfg.Grants},
	}
}

// Routes declares the routes of /api/v1. Each has an operation in openapi.yaml.
func (d *API) Routes(r chi.Router) {
	r.Get("/openapi.json", d.sessions.API(d.apiOpenAPI))

	r.Get("/search", d.sessions.API(d.agents.apiSearch))
	r.Get("/suggest", d.sessions.API(d.agents.apiSuggest))
	r.Get("/searches", d.sessions.API(d.agents.apiSearches))
	r.Post("/searches", d.sessions.API(d.agents.apiSaveSearch))
	r.Delete("/searches/{id}", d.sessions.API(d.agents.apiDeleteSearch))
	r.Get("/notices", d.sessions.Listing(d.account.apiNotices))
	r.Post("/notices/read", d.sessions.API(d.account.apiReadNotices))
	r.Get("/domains", d.sessions.API(d.account.apiDomains))
	r.Post("/domains", d.sessions.API(d.account.apiProveDomain))
	r.Delete("/domains/{domain}", d.sessions.API(d.account.apiRemoveDomain))
	r.Post("/import", d.sessions.API(d.agents.apiImport))
	r.Get("/agents", d.sessions.Listing(d.agents.apiAgents))
	r.Post("/agents", d.sessions.API(d.agents.apiPublish))
	r.Get("/agents/{name}", d.sessions.API(d.agents.apiAgent))
	r.Put("/agents/{name}", d.sessions.API(d.agents.apiPutAgent))
	r.Patch("/agents/{name}", d.sessions.API(d.agents.apiUpdateAgent))
	r.Delete("/agents/{name}", d.sessions.API(d.agents.apiDeleteAgent))
	r.Get("/agents/{name}/versions", d.sessions.Listing(d.agents.apiVersions))
	r.Post("/agents/{name}/check", d.sessions.API(d.agents.apiCheckAgent))
	r.Post("/agents/{name}/pause", d.sessions.API(d.halts.pause))
	r.Post("/agents/{name}/resume", d.sessions.API(d.halts.resume))
	r.Post("/owners/{name}/stop", d.sessions.API(d.halts.stop(halt.Owner, "name")))
	r.Post("/owners/{name}/resume", d.sessions.API(d.halts.keep(halt.Owner, "name")))
	r.Post("/providers/{host}/stop", d.sessions.API(d.halts.stop(halt.Provider, "host")))
	r.Post("/providers/{host}/resume", d.sessions.API(d.halts.keep(halt.Provider, "host")))
	r.Get("/halts", d.sessions.API(d.halts.list))
	r.Get("/agents/{name}/versions/{version}", d.sessions.API(d.agents.apiVersion))
	r.Post("/agents/{name}/rollback", d.sessions.API(d.agents.apiRollback))
	r.Get("/agents/{name}/history", d.sessions.Listing(d.agents.apiHistory))
	r.Get("/agents/{name}/record", d.sessions.API(d.agents.apiRecord))
	r.Get("/agents/{name}/stats", d.sessions.API(d.agents.apiStats))
	r.Get("/agents/{name}/calls/{task}", d.sessions.API(d.agents.apiCall))
	r.Get("/agents/{name}/owners", d.sessions.API(d.agents.apiOwners))
	r.Post("/agents/{name}/owners", d.sessions.API(d.agents.apiAddOwner))
	r.Delete("/agents/{name}/owners/{owner}", d.sessions.API(d.agents.apiRemoveOwner))
	r.Post("/agents/{name}/offer", d.sessions.API(d.agents.apiOffer))
	r.Get("/agents/{name}/proof", d.sessions.API(d.agents.apiProof))
	r.Post("/agents/{name}/prove", d.sessions.API(d.agents.apiProve))
	r.Post("/agents/{name}/report", d.sessions.API(d.agents.apiReport))
	r.Post("/agents/{name}/try", d.sessions.API(d.agents.apiTry))
	r.Get("/offers", d.sessions.API(d.agents.apiOffers))
	r.Post("/offers/{name}", d.sessions.API(d.agents.apiAnswerOffer))

	d.chats.chatAPI(r)

	r.Get("/tasks", d.sessions.Listing(d.chats.apiTasks))
	r.Get("/tasks/{id}", d.sessions.Listing(d.chats.apiTask))
	r.Post("/tasks/{id}/cancel", d.sessions.API(d.chats.apiCancelTask))
	r.Post("/tasks/{id}/input", d.sessions.API(d.chats.apiTaskInput))

	d.spending.Routes(r, d.sessions)
	r.Get("/grants", d.sessions.API(d.account.apiGrants))
	r.Put("/grants/{id}", d.sessions.API(d.account.apiPutGrant))
	r.Delete("/grants/{id}", d.sessions.API(d.account.apiDeleteGrant))

	r.Get("/webhooks", d.sessions.API(d.account.apiWebhooks))
	r.Post("/webhooks", d.sessions.API(d.account.apiAddWebhook))
	r.Get("/webhooks/{id}", d.sessions.API(d.account.apiWebhook))
	r.Patch("/webhooks/{id}", d.sessions.API(d.account.apiSetWebhook))
	r.Delete("/webhooks/{id}", d.sessions.API(d.account.apiDropWebhook))
	r.Post("/webhooks/{id}/test", d.sessions.API(d.account.apiTestWebhook))
	r.Get("/webhooks/{id}/deliveries", d.sessions.Listing(d.account.apiDeliveries))

	Peers{d.peers}.routes(r, d.sessions.API)
	r.Get("/network", d.sessions.API(d.apiNetwork))
	r.Get("/queue", d.sessions.API(answerQueue(d.queue)))

	r.Get("/me", d.sessions.API(d.account.apiMe))
	r.Get("/tokens", d.sessions.API(d.account.apiTokens))
	r.Post("/tokens", d.sessions.API(d.account.apiCreateToken))
	r.Delete("/tokens/{id}", d.sessions.API(d.account.apiRevokeToken))

	r.NotFound(d.sessions.API(d.apiNotFound))
	r.MethodNotAllowed(d.sessions.API(d.apiMethod))
}

func (d *API) apiMethod(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	w.Header().Set("Cache-Control", "no-store")
	var b respond.ErrorBody
	b.Error.RequestID = middleware.GetReqID(r.Context())
	b.Error.Kind, b.Error.Message = fault.Invalid,
		r.Method+" is not possible here. The API is described at "+d.portal.URL+"/docs/api."
	respond.JSON(w, http.StatusMethodNotAllowed, b)
	return nil
}

// apiNotFound answers unknown routes of the API with a JSON error instead of a page.
func (d *API) apiNotFound(http.ResponseWriter, *http.Request, ident.Actor) error {
	return noRoute(d.portal.URL)
}

// noRoute is the error of a route that the API of a portal does not have.
func noRoute(portalURL string) error {
	return fault.New(fault.NotFound, "There is no such route. The API is described at %s/docs/api.", portalURL)
}

// Package spending has the API routes of models and of their cost.
package spending

import (
	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/internal/models"
	"agentsite/internal/usage"
)

// API answers the routes of models and usage.
type API struct {
	models   *models.Service
	usage    *usage.Service
	ceilings *usage.Ceilings
}

// New returns an API over the given services.
func New(m *models.Service, u *usage.Service, c *usage.Ceilings) *API { return &API{m, u, c} }

// Routes declares the routes below /api/v1.
func (a *API) Routes(r chi.Router, sessions *request.Sessions) {
	r.Get("/usage", sessions.Listing(a.report))
	r.Get("/ceilings", sessions.API(a.listCeilings))
	r.Put("/ceilings", sessions.API(a.putCeiling))
	r.Get("/models", sessions.API(a.list))
	r.Post("/models", sessions.API(a.create))
	r.Patch("/models/{name}", sessions.API(a.change))
	r.Delete("/models/{name}", sessions.API(a.remove))
}

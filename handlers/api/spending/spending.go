// Package spending has the API routes of models, and of what they cost.
package spending

import (
	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/internal/models"
	"agentsite/internal/usage"
)

// API answers the routes of models and usage.
type API struct {
	models *models.Service
	usage  *usage.Service
}

// New returns an API over the given services.
func New(m *models.Service, u *usage.Service) *API { return &API{m, u} }

// Routes declares the routes below /api/v1.
func (a *API) Routes(r chi.Router, sessions *request.Sessions) {
	r.Get("/usage", sessions.Listing(a.report))
	r.Get("/models", sessions.API(a.list))
	r.Post("/models", sessions.API(a.create))
	r.Patch("/models/{name}", sessions.API(a.change))
	r.Delete("/models/{name}", sessions.API(a.remove))
}

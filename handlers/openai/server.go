// Package openai is the OpenAI-compatible endpoint: each agent is a model that programs for that
// API can list and call. A call is one message in a conversation of the caller and one task, as at
// all endpoints. The package knows the forms of that API (internal/openai has the types) and the
// features that an agent has; the services decide the permissions.
package openai

import (
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	wire "agentsite/internal/openai"
)

// Config holds the parts of the endpoint; every field is required.
type Config struct {
	Callers *request.Callers
	Hub     *hub.Service
	Chat    *chat.Service
	// URL and Host are the portal's address and its part of handles; URL has no trailing slash.
	URL, Host string
	Log       *slog.Logger
}

type server struct {
	Config
	waiting waiting
}

// New returns a router with the routes below /v1. Mount it there.
func New(cfg Config) chi.Router {
	d := &server{Config: cfg}
	r := chi.NewRouter()
	r.Get("/models", d.handle(d.listModels))
	r.Get("/models/{id}", d.handle(d.serveModel))
	r.Post("/chat/completions", d.handle(d.completeChat))
	none := d.handle(func(http.ResponseWriter, *http.Request, ident.Actor) error {
		return &problem{status: http.StatusNotFound, body: wire.Error{Type: invalidRequest, Code: "unknown_url",
			Message: "This portal has GET /v1/models, GET /v1/models/{id} and POST /v1/chat/completions. They are described at " + cfg.URL + "/docs/connect."}}
	})
	r.NotFound(none)
	r.MethodNotAllowed(none)
	return r
}

// handle adapts a handler that needs the actor, and sends the error that the handler returns.
func (d *server) handle(h func(http.ResponseWriter, *http.Request, ident.Actor) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := d.Callers.Authenticate(r)
		if err == nil {
			respond.SetReader(w, actor)
			err = h(w, r, actor)
		}
		if err == nil {
			return
		}
		p := d.problemOf(w, r, err)
		if err := respond.WriteJSON(w, p.status, wire.ErrorBody{Error: p.body}); err != nil {
			d.Log.Error("encode an error", "error", err)
		}
	}
}

const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// problem is an error in the API's form with its HTTP status.
type problem struct {
	status int
	body   wire.Error
	// once is true if a retry is useless. SDKs retry many statuses unless the header X-Should-Retry
	// forbids it.
	once bool
}

// Error returns the message for the caller.
func (p *problem) Error() string { return p.body.Message }

// wrong returns an error about a parameter of the request, with status 400.
func wrong(param, message string) error {
	return &problem{status: http.StatusBadRequest,
		body: wire.Error{Type: invalidRequest, Param: param, Message: message}}
}

// problemOf converts any error to the API's form, and sets its headers on w. Details that only the
// operator may read go to the log.
func (d *server) problemOf(w http.ResponseWriter, r *http.Request, err error) *problem {
	p, ok := err.(*problem)
	if !ok {
		f, code := respond.PrepareError(w, r, d.Log, err)
		respond.SetChallenge(w, f)
		p = &problem{status: code, body: wire.Error{Message: f.Safe, Type: invalidRequest}}
		for field := range f.Fields {
			if p.body.Param == nil || field < p.body.Param.(string) {
				p.body.Param = field
			}
		}
		switch f.Kind {
		case fault.Unauthenticated:
			p.body.Code = "invalid_api_key"
		case fault.Forbidden:
			p.body.Code = "insufficient_permissions"
		case fault.RateLimited:
			p.body.Type, p.body.Code = "requests", "rate_limit_exceeded"
		case fault.Conflict:
			p.body.Code, p.once = "conflict", true
		case fault.Unavailable:
			p.body.Type, p.body.Code = serverError, "unavailable"
		case fault.Internal:
			p.body.Type = serverError
		}
	}
	if p.once {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.Header().Set("Cache-Control", "no-store")
	return p
}

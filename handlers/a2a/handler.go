// Package a2a is the endpoint for clients of the A2A protocol: each agent of the portal has a card
// and a base URL with JSON-RPC and HTTP+JSON, and the guide has them at the portal's root, too. It
// turns a request into one question to one agent and follows the resulting task. internal/a2a knows
// the encoding of the protocol, the services decide the permissions.
package a2a

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/adjust"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/lenientjson"
	"agentsite/internal/notify"
	"agentsite/internal/strictjson"
	"agentsite/internal/task"
)

// Config holds the parts of the endpoint; every field except Only10 is required.
type Config struct {
	// Callers identifies callers. It is shared by all protocol endpoints, so that a visitor is the same
	// actor at each.
	Callers *request.Callers
	Hub     *hub.Service
	Chat    *chat.Service
	Tasks   *task.Service
	Hooks   *notify.Service
	// Name is the portal's name unless Live has one. URL is its address, without a trailing slash. Host is the part of
	// handles after the @.
	Name, URL, Host string
	// Live says whether callers without a credential may use public agents.
	Live *adjust.Snapshot
	// Signer signs the cards.
	Signer *a2a.Signer
	// Operational holds the keys that sign the portal's requests.
	Operational *ident.Operational
	// CostOf returns the cost of a task's models so far, nil for none. It may be left out.
	CostOf func(taskID string) *task.Claim
	// Only10 is the built-in agent whose card leaves out version 0.3; "" for none.
	Only10 string
	// Started is the start time of this process. Cards count as changed at that time, because a new
	// version may write them differently.
	Started time.Time
	Log     *slog.Logger
}

// Handler serves the protocol. Create it with New.
type Handler struct {
	cfg   Config
	cards cardCache
	logs  eventLogs
}

// New returns a Handler. Its routes are declared by Routes.
func New(cfg Config) *Handler {
	if cfg.CostOf == nil {
		cfg.CostOf = func(string) *task.Claim { return nil }
	}
	return &Handler{cfg: cfg}
}

// endpointName names this endpoint in tasks, so that owners see by which protocol they are called.
const endpointName = "a2a"

// rootAgent is the name of the agent that answers at the portal's own base URL.
const rootAgent = "guide"

// Routes declares the routes of the protocol. a2a.RESTRoute parses the paths below a base.
func (d *Handler) Routes(r chi.Router) {
	r.Get(a2a.WellKnown, d.serveCard)
	r.Get(KeySetPath, d.keySet)
	r.Get(DirectoryPath, d.serveDirectory)
	r.Get("/agents/{name}"+a2a.WellKnown, d.serveCard)
	for _, base := range []string{"/a2a", "/agents/{name}/a2a"} {
		r := r.With(d.cfg.Callers.FromPortals)
		r.Post(base, d.serveRPC)
		r.Get(base+a2a.WellKnown, d.serveCard) // clients that know only the base look for the card here
		r.Get(base+"/*", d.serveREST)
		r.Post(base+"/*", d.serveREST)
		r.Delete(base+"/*", d.serveREST)
	}
}

// KeySetPath is the path of the public keys that verify cards and requests, DirectoryPath the path of
// those that verify requests only (draft-meunier-webbotauth-httpsig-directory §4).
const (
	KeySetPath    = "/.well-known/jwks.json"
	DirectoryPath = "/.well-known/http-message-signatures-directory"
)

// agentName returns the name of the agent in the path of a base or card; the portal's own base is
// rootAgent's.
func agentName(r *http.Request) string {
	raw := chi.URLParam(r, "name")
	if name, err := url.PathUnescape(raw); err == nil {
		raw = name
	}
	return cmp.Or(raw, rootAgent)
}

// baseURL returns the URL of the base in a request's path; for a card, of the base that the card
// names.
func (d *Handler) baseURL(r *http.Request, name string) string {
	if chi.URLParam(r, "name") == "" && name == rootAgent {
		return d.cfg.URL + "/a2a"
	}
	return d.agentBase(name)
}

func (d *Handler) agentBase(name string) string {
	return d.cfg.URL + "/agents/" + url.PathEscape(name) + "/a2a"
}

// failureOf converts an error to an A2A failure. Details that only the operator may read go to the log.
func (d *Handler) failureOf(r *http.Request, err error) *a2a.Failure {
	if f, ok := errors.AsType[*a2a.Failure](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.Unavailable, "The request was canceled. Ask for the task later.")
	}
	e := fault.As(err)
	f := &a2a.Failure{Text: e.Safe, RetryAfter: e.RetryAfter}
	switch e.Kind {
	case fault.Invalid:
		f.Code, f.Metadata = a2a.CodeInvalidParams, e.Fields
	case fault.Unauthenticated:
		f.Code = a2a.CodeUnauthenticated
	case fault.Forbidden:
		f.Code = a2a.CodeForbidden
	case fault.NotFound:
		f.Code, f.Status, f.Reason = a2a.CodeInvalidRequest, http.StatusNotFound, "NOT_FOUND"
	case fault.Conflict:
		f.Code = a2a.CodeUnsupported
	case fault.RateLimited:
		f.Code, f.Status, f.Reason = a2a.CodeServer, http.StatusTooManyRequests, "RATE_LIMITED"
	case fault.Unavailable:
		f.Code = a2a.CodeServer
		if e.Full {
			f.Status = http.StatusInsufficientStorage
		}
	default:
		f.Code = a2a.CodeInternal
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			middleware.GetReqID(r.Context()), "error", err)
	}
	return f
}

// setErrorHeaders sets WWW-Authenticate and Retry-After for a failure; both bindings use it.
func setErrorHeaders(h http.Header, f *a2a.Failure) {
	respond.RetryAfter(h, f.RetryAfter)
	if f.HTTP() == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="agentsite"`)
	}
}

func sendJSON(w http.ResponseWriter, code int, mediaType string, v any) {
	b, err := json.Marshal(v)
	if err != nil { // answers hold only types that encode
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	w.Write(b)
}

// Bounds of one request. Accounts may send files in messages, and so may other portals, because
// both are identified.
const (
	maxBody      = 4 << 20
	maxGuestBody = 1 << 20
)

// readBody reads the body of a request and returns a failure with status 413 above the actor's limit:
// guests may send less.
func readBody(w http.ResponseWriter, r *http.Request, actor ident.Actor) ([]byte, error) {
	limit := int64(maxBody)
	if actor.Kind == ident.Guest {
		limit = maxGuestBody
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &a2a.Failure{Code: a2a.CodeInvalidRequest, Status: http.StatusRequestEntityTooLarge,
			Text: "The request is larger than " + strconv.FormatInt(big.Limit,
				10) + " bytes. Send large files on their own and refer to them by URL."}
	}
	if err != nil {
		return nil, a2a.Fail(a2a.CodeParse, "The body ended early.")
	}
	b = lenientjson.TrimMark(b)
	if len(bytes.TrimSpace(b)) > 0 {
		if err := strictjson.Check(b); err != nil {
			if _, ok := errors.AsType[*json.SyntaxError](err); ok {
				return nil, a2a.Fail(a2a.CodeParse, "The body is not JSON: "+err.Error()+".")
			}
			return nil, a2a.Fail(a2a.CodeParse, "The JSON has "+err.Error()+".")
		}
	}
	return b, nil
}

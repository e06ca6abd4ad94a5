// Package a2a is the door for clients of the A2A protocol: each agent of the
// portal has a card and a base on which JSON-RPC and HTTP+JSON are served, and
// the guide has them at the portal's root. It turns requests into one question
// to one agent and follows the task that comes of it. How the protocol writes
// things is internal/a2a's matter, and who may do what the services'.
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
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/ident/httpsig"
	"agentsite/internal/notify"
	"agentsite/internal/strictjson"
	"agentsite/internal/task"
)

// Config is what the door needs; everything is required.
type Config struct {
	// Callers are the portal's, so that visitors are the same at each face.
	Callers *request.Callers
	Hub     *hub.Service
	Chat    *chat.Service
	Tasks   *task.Service
	Hooks   *notify.Service
	// Name and URL are the portal's; URL has no slash at its end. Host is what
	// follows the @ of handles here.
	Name, URL, Host string
	// Guests is whether callers without a credential are served.
	Guests bool
	// Signer signs the cards.
	Signer *a2a.Signer
	// PortalKeys are the keys the portal signs its requests with.
	PortalKeys func() []httpsig.JWK
	// Only10 is the built-in agent whose card has nothing of 0.3; "" for none.
	Only10 string
	// Started is when the portal began to write cards as it does.
	Started time.Time
	Log     *slog.Logger
}

// Door serves the protocol. Create it with New.
type Door struct {
	cfg   Config
	cards cardCache
	logs  eventLogs
}

// New returns the door over the services.
func New(cfg Config) *Door {
	return &Door{cfg: cfg}
}

// doorName is what tasks note of the door they came through.
const doorName = "a2a"

// rootAgent answers at the portal's own base.
const rootAgent = "guide"

// Routes declares the routes of the protocol. What follows the base is the
// protocol's own address space, which a2a.RESTRoute reads.
func (d *Door) Routes(r chi.Router) {
	r.Get(a2a.WellKnown, d.card)
	r.Get(KeySetPath, d.keySet)
	r.Get(DirectoryPath, d.directory)
	r.Get("/agents/{name}"+a2a.WellKnown, d.card)
	for _, base := range []string{"/a2a", "/agents/{name}/a2a"} {
		r := r.With(d.cfg.Callers.FromPortals)
		r.Post(base, d.rpc)
		r.Get(base+a2a.WellKnown, d.card) // where clients look that were given the base
		r.Get(base+"/*", d.rest)
		r.Post(base+"/*", d.rest)
		r.Delete(base+"/*", d.rest)
	}
}

// KeySetPath is where the public keys of the portal are, DirectoryPath where
// those are that its requests are signed with
// (draft-meunier-webbotauth-httpsig-directory §4).
const (
	KeySetPath    = "/.well-known/jwks.json"
	DirectoryPath = "/.well-known/http-message-signatures-directory"
)

// agentName is whose base or card the path is of.
func agentName(r *http.Request) string {
	raw := chi.URLParam(r, "name")
	if name, err := url.PathUnescape(raw); err == nil {
		raw = name
	}
	return cmp.Or(raw, rootAgent)
}

// base is the URL of the base that a request's path is of or, of a card, that
// it names.
func (d *Door) base(r *http.Request, name string) string {
	if chi.URLParam(r, "name") == "" && name == rootAgent {
		return d.cfg.URL + "/a2a"
	}
	return d.agentBase(name)
}

func (d *Door) agentBase(name string) string {
	return d.cfg.URL + "/agents/" + url.PathEscape(name) + "/a2a"
}

// failure is an error as the protocol answers it. What only the operator may
// read goes to the log.
func (d *Door) failure(r *http.Request, err error) *a2a.Failure {
	if f, ok := errors.AsType[*a2a.Failure](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.Unavailable, "The request was given up. Ask for the task later.")
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
	default:
		f.Code = a2a.CodeInternal
		d.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id", middleware.GetReqID(r.Context()), "error", err)
	}
	return f
}

// refuse sets the headers that an error has in both bindings.
func refuse(h http.Header, f *a2a.Failure) {
	respond.RetryAfter(h, f.RetryAfter)
	if f.HTTP() == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="agentsite"`)
	}
}

// send answers with JSON of a media type.
func send(w http.ResponseWriter, code int, mediaType string, v any) {
	b, err := json.Marshal(v)
	if err != nil { // everything that is sent can be written
		panic(err)
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	w.Write(b)
}

// Bounds of what one request may bring. Who has an account may send files in
// messages, and so may other portals, of which it is known who they are.
const (
	maxBody      = 4 << 20
	maxGuestBody = 1 << 20
)

// body reads what a caller sent.
func body(w http.ResponseWriter, r *http.Request, actor ident.Actor) ([]byte, error) {
	limit := int64(maxBody)
	if actor.Kind == ident.Guest {
		limit = maxGuestBody
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &a2a.Failure{Code: a2a.CodeInvalidRequest, Status: http.StatusRequestEntityTooLarge,
			Text: "The request is larger than " + strconv.FormatInt(big.Limit, 10) + " bytes. Send large files on their own and refer to them by URL."}
	}
	if err != nil {
		return nil, a2a.Fail(a2a.CodeParse, "The body ended early.")
	}
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

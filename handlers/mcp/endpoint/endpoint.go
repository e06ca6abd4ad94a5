// Package endpoint serves the Model Context Protocol over HTTP: the version
// 2026-07-28, in which every request stands alone, and the four before it,
// which begin with a handshake, at one address. What is served there is an
// Offer: tools, resources, prompts and the functions behind them. The package
// knows the protocol, its transport and its errors, and who calls; of agents
// and conversations it knows nothing. It keeps no sessions: what a handshake
// said is in the session's id, and only running calls are remembered.
package endpoint

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"agentsite/handlers/request"
	"agentsite/internal/ident"
)

// Config is what an endpoint needs; everything is required.
type Config struct {
	Callers *request.Callers
	// Key is the secret that states and session ids are marked with.
	Key []byte
	// Metadata is the address that says what credentials an address takes
	// (RFC 9728).
	Metadata func(r *http.Request) string
	Log      *slog.Logger
}

// Endpoint serves the protocol at any number of addresses. Create it with New.
type Endpoint struct {
	cfg     Config
	pending *pending
}

// New returns an endpoint.
func New(cfg Config) *Endpoint { return &Endpoint{cfg, newPending()} }

// Find returns the server at a request's address, for whom it is there.
type Find func(ctx context.Context, r *http.Request, actor ident.Actor) (*Server, error)

// Post serves the messages of clients.
func (e *Endpoint) Post(find Find) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := e.cfg.Callers.Authenticate(r)
		if err != nil {
			e.fail(w, r, nil, err)
			return
		}
		list, batch, err := e.read(w, r, actor)
		if err != nil {
			var id []byte
			if len(list) == 1 {
				id = list[0].id
			}
			e.fail(w, r, id, err)
			return
		}
		x := &exchange{endpoint: e, w: w, r: r, actor: actor, find: find}
		if batch {
			x.batch(list)
			return
		}
		x.single(&list[0])
	}
}

// NotHere answers GET and DELETE, which since 2026-07-28 are no more and
// before that were optional: there is no stream to listen on, and no session
// to end.
func (e *Endpoint) NotHere(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	p := &Problem{Code: CodeInvalidRequest, Status: http.StatusMethodNotAllowed, Message: "This is an address of the Model Context Protocol: clients send their messages here by POST. It is described in /docs/connect."}
	sendJSON(w, p.Status, envelope(nil, "error", p.wire()))
}

// read reads the body.
func (e *Endpoint) read(w http.ResponseWriter, r *http.Request, actor ident.Actor) ([]message, bool, error) {
	// curl -d says it sends a form; what counts is that the body is JSON.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && t != "application/json" && t != "application/x-www-form-urlencoded" && !strings.HasSuffix(t, "+json") {
		return nil, false, &Problem{Code: CodeInvalidRequest, Status: http.StatusUnsupportedMediaType, Message: "Send JSON, with Content-Type: application/json."}
	}
	limit := int64(maxBody)
	if !actor.IsPerson() {
		limit = maxGuestBody
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, big := errors.AsType[*http.MaxBytesError](err); err != nil && !big {
		err = &Problem{Code: CodeParse, Status: http.StatusBadRequest, Message: "The body ended early."}
	}
	if err != nil {
		return nil, false, err
	}
	list, batch, p := readMessages(b)
	if p != nil {
		return list, batch, p
	}
	return list, batch, nil
}

// fail answers with an error.
func (e *Endpoint) fail(w http.ResponseWriter, r *http.Request, id []byte, err error) {
	p := e.problem(r, err)
	e.refuse(w, r, p)
	status := p.Status
	if status == 0 {
		status = http.StatusOK
	}
	sendJSON(w, status, envelope(id, "error", p.wire()))
}

// Package endpoint serves the Model Context Protocol over HTTP: the version 2026-07-28, in which
// every request is independent, and the four before it, which start with a handshake, at one
// address. An Offer holds the content: tools, resources, prompts and the functions that run them.
// The package implements the protocol, its transport, its errors and the identity of callers; it
// does not know agents and conversations. It keeps no sessions: the session id holds the data of
// the handshake, and only running calls are remembered.
package endpoint

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/ident"
)

// Callers identifies the caller of a request; request.Callers implements it.
type Callers interface {
	Authenticate(r *http.Request) (ident.Actor, error)
}

// Config holds the parts of an endpoint; every field is required.
type Config struct {
	Callers Callers
	// Key is the secret that signs states and session ids. If it changes, running sessions end.
	Key []byte
	// MetadataURL is the address of the metadata about accepted credentials (RFC 9728), "" for none. The path of the
	// server is appended.
	MetadataURL string
	Log         *slog.Logger
}

// Endpoint serves MCP at any number of addresses. Create it with New; it is safe for concurrent use.
type Endpoint struct {
	cfg     Config
	pending *pending
}

// New returns an endpoint without addresses; mount Post and NotHere at each.
func New(cfg Config) *Endpoint { return &Endpoint{cfg, newPending()} }

// Find returns the server at a request's address, if the actor may see it.
type Find func(ctx context.Context, r *http.Request, actor ident.Actor) (*Server, error)

// Post returns the handler for the messages that clients send to the server that find returns.
func (e *Endpoint) Post(find Find) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		actor, err := e.cfg.Callers.Authenticate(r)
		if err != nil {
			e.sendError(w, r, nil, err)
			return
		}
		respond.SetReader(w, actor)
		list, batch, err := e.readBody(w, r, actor)
		if err != nil {
			var id []byte
			if len(list) == 1 {
				id = list[0].id
			}
			e.sendError(w, r, id, err)
			return
		}
		x := &exchange{endpoint: e, w: w, r: r, actor: actor, find: find}
		if batch {
			x.serveBatch(list)
			return
		}
		x.serveOne(&list[0])
	}
}

// NotHere answers GET and DELETE with 405. The versions before 2026-07-28 define both as optional: GET
// opens a stream of the server's messages, DELETE ends a session. This endpoint has neither.
func (e *Endpoint) NotHere(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	p := &Problem{Code: CodeInvalidRequest, Status: http.StatusMethodNotAllowed,
		Message: "This is an address of the Model Context Protocol: clients send their messages here by POST. It is described in /docs/connect."}
	sendJSON(w, p.Status, wrapAnswer(nil, "error", p.encodeError()))
}

// readBody returns the body of a request, up to the limit for its actor.
func (e *Endpoint) readBody(w http.ResponseWriter, r *http.Request, actor ident.Actor) ([]message, bool, error) {
	// curl sends the type of a form by default, so its JSON is accepted too.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && t != "application/json" &&
		t != "application/x-www-form-urlencoded" && !strings.HasSuffix(t, "+json") {
		return nil, false, &Problem{Code: CodeInvalidRequest, Status: http.StatusUnsupportedMediaType,
			Message: "Send JSON, with Content-Type: application/json."}
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

// sendError answers with an error to the message with the given id, nil for none.
func (e *Endpoint) sendError(w http.ResponseWriter, r *http.Request, id []byte, err error) {
	p := e.problemOf(r, err)
	e.setErrorHeaders(w, r, p)
	status := p.Status
	if status == 0 {
		status = http.StatusOK
	}
	sendJSON(w, status, wrapAnswer(id, "error", p.encodeError()))
}

package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
)

// Codes of errors: those of JSON-RPC, those of MCP, and ours for what HTTP
// has a status for.
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeRefused           = -32000 // credentials, limits, addresses where nobody is
	CodeNoResource        = -32002 // until 2025-11-25; then CodeInvalidParams
	CodeHeaderMismatch    = -32020
	CodeMissingCapability = -32021
	CodeVersion           = -32022
)

// Problem is an error as a client reads it. It can be returned by everything
// an Offer holds; other errors become one by the kind of their fault.
type Problem struct {
	Code    int
	Message string
	// Data is what the error says beside, nil for nothing.
	Data any
	// Status is the status of HTTP, 0 for 200.
	Status     int
	RetryAfter time.Duration
}

// Error implements error.
func (p *Problem) Error() string { return p.Message }

// Wrong is a problem with the parameters of a request.
func Wrong(message string) *Problem { return &Problem{Code: CodeInvalidParams, Message: message} }

func invalid(message string) *Problem {
	return &Problem{Code: CodeInvalidRequest, Message: message, Status: http.StatusBadRequest}
}

// wire is the error object.
func (p *Problem) wire() json.RawMessage {
	b, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{p.Code, p.Message, p.Data})
	if err != nil { // everything that is said can be written
		panic(err)
	}
	return b
}

// missing says which capabilities the client must declare.
func missing(what map[string]any) *Problem {
	return &Problem{Code: CodeMissingCapability, Status: http.StatusBadRequest, Message: "This needs a capability that the client did not declare in _meta.",
		Data: map[string]any{"requiredCapabilities": what}}
}

func missingTasks() *Problem {
	return missing(map[string]any{"extensions": map[string]any{TasksExtension: struct{}{}}})
}

// problem makes of any error what a client is told. What only the operator
// may read goes to the log.
func (e *Endpoint) problem(r *http.Request, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Code: CodeInvalidRequest, Status: http.StatusRequestEntityTooLarge, Message: "The request is larger than " + strconv.FormatInt(big.Limit, 10) + " bytes. Send less at once."}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.Unavailable, "The request was given up.")
	}
	f := fault.As(err)
	p := &Problem{Code: CodeRefused, Message: f.Safe, Status: respond.Status(f.Kind), RetryAfter: f.RetryAfter}
	if len(f.Fields) > 0 {
		p.Data = map[string]any{"fields": f.Fields}
	}
	switch f.Kind {
	case fault.Invalid, fault.Conflict:
		p.Code, p.Status = CodeInvalidParams, 0
	case fault.Internal:
		p.Code = CodeInternal
		e.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id", middleware.GetReqID(r.Context()), "error", err)
	}
	return p
}

// refuse sets the headers that an error has.
func (e *Endpoint) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	respond.RetryAfter(h, p.RetryAfter)
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="agentsite", error="invalid_token", resource_metadata="`+e.cfg.Metadata(r)+`"`)
	case http.StatusForbidden:
		h.Set("WWW-Authenticate", `Bearer realm="agentsite", error="insufficient_scope", resource_metadata="`+e.cfg.Metadata(r)+`"`)
	}
}

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

// Codes of errors: of JSON-RPC, of MCP, and CodeRefused of this portal for errors that have an HTTP
// status.
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeRefused           = -32000 // missing credentials, exceeded limits, unknown addresses
	CodeNoResource        = -32002 // up to version 2025-11-25; later versions use CodeInvalidParams
	CodeHeaderMismatch    = -32020
	CodeMissingCapability = -32021
	CodeVersion           = -32022
)

// Problem is an error in the protocol's form. Functions of an Offer may return one; other errors are
// converted by the kind of their fault.
type Problem struct {
	Code    int
	Message string
	// Data is additional data for the client, nil for none.
	Data any
	// Status is the HTTP status; 0 means 200.
	Status     int
	RetryAfter time.Duration
}

// Error returns the message for the client.
func (p *Problem) Error() string { return p.Message }

// Wrong returns a problem with a parameter of the request; message names the parameter.
func Wrong(message string) *Problem { return &Problem{Code: CodeInvalidParams, Message: message} }

func invalidRequest(message string) *Problem {
	return &Problem{Code: CodeInvalidRequest, Message: message, Status: http.StatusBadRequest}
}

// encodeError returns the JSON-RPC error object.
func (p *Problem) encodeError() json.RawMessage {
	b, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{p.Code, p.Message, p.Data})
	if err != nil { // Data holds only types that encode
		panic(err)
	}
	return b
}

// missingCapability returns the problem for a client that must declare capabilities for a call.
func missingCapability(capabilities map[string]any) *Problem {
	return &Problem{Code: CodeMissingCapability, Status: http.StatusBadRequest,
		Message: "This needs a capability that the client did not declare in _meta.",
		Data:    map[string]any{"requiredCapabilities": capabilities}}
}

func missingTasks() *Problem {
	return missingCapability(map[string]any{"extensions": map[string]any{TasksExtension: struct{}{}}})
}

// problemOf converts any error to a problem. Details that only the operator may read go to the log.
func (e *Endpoint) problemOf(r *http.Request, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Code: CodeInvalidRequest, Status: http.StatusRequestEntityTooLarge,
			Message: "The request is larger than " + strconv.FormatInt(big.Limit, 10) + " bytes. Send less at once."}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = fault.New(fault.Unavailable, "The request was canceled.")
	}
	f := fault.As(err)
	p := &Problem{Code: CodeRefused, Message: f.Safe, Status: respond.StatusOf(f), RetryAfter: f.RetryAfter}
	if len(f.Fields) > 0 {
		p.Data = map[string]any{"fields": f.Fields}
	}
	switch f.Kind {
	case fault.Invalid, fault.Conflict:
		p.Code, p.Status = CodeInvalidParams, 0
	case fault.Internal:
		p.Code = CodeInternal
		e.cfg.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "request_id",
			middleware.GetReqID(r.Context()), "error", err)
	}
	return p
}

// setErrorHeaders sets WWW-Authenticate and Retry-After for a problem.
func (e *Endpoint) setErrorHeaders(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	respond.RetryAfter(h, p.RetryAfter)
	metadata := ""
	if e.cfg.MetadataURL != "" {
		metadata = `, resource_metadata="` + e.cfg.MetadataURL + r.URL.EscapedPath() + `"`
	}
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="agentsite", error="invalid_token"`+metadata)
	case http.StatusForbidden:
		h.Set("WWW-Authenticate", `Bearer realm="agentsite", error="insufficient_scope"`+metadata)
	}
}

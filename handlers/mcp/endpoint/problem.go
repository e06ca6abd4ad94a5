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

// Codes of errors: those of JSON-RPC, those of MCP, and one of this portal for errors with an HTTP
// status.
const (
	CodeParse             = -32700
	CodeInvalidRequest    = -32600
	CodeMethodNotFound    = -32601
	CodeInvalidParams     = -32602
	CodeInternal          = -32603
	CodeRefused           = -32000 // credentials, limits, unknown addresses
	CodeNoResource        = -32002 // until 2025-11-25; then CodeInvalidParams
	CodeHeaderMismatch    = -32020
	CodeMissingCapability = -32021
	CodeVersion           = -32022
)

// Problem is an error in the form that a client reads. Every function of an Offer may return one;
// other errors are converted by the kind of their fault.
type Problem struct {
	Code    int
	Message string
	// Data is additional data of the error, nil for none.
	Data any
	// Status is the HTTP status, 0 for 200.
	Status     int
	RetryAfter time.Duration
}

// Error implements error.
func (p *Problem) Error() string { return p.Message }

// Wrong returns a problem with the parameters of a request.
func Wrong(message string) *Problem { return &Problem{Code: CodeInvalidParams, Message: message} }

func invalidRequest(message string) *Problem {
	return &Problem{Code: CodeInvalidRequest, Message: message, Status: http.StatusBadRequest}
}

// encodeError returns the error object.
func (p *Problem) encodeError() json.RawMessage {
	b, err := json.Marshal(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}{p.Code, p.Message, p.Data})
	if err != nil { // every error can be encoded
		panic(err)
	}
	return b
}

// missingCapability returns the problem of a client that has to declare capabilities.
func missingCapability(capabilities map[string]any) *Problem {
	return &Problem{Code: CodeMissingCapability, Status: http.StatusBadRequest,
		Message: "This needs a capability that the client did not declare in _meta.",
		Data:    map[string]any{"requiredCapabilities": capabilities}}
}

func missingTasks() *Problem {
	return missingCapability(map[string]any{"extensions": map[string]any{TasksExtension: struct{}{}}})
}

// problemOf converts any error to the problem for the client. The log gets the details that only
// the operator may read.
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
	p := &Problem{Code: CodeRefused, Message: f.Safe, Status: respond.Status(f.Kind), RetryAfter: f.RetryAfter}
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

// setErrorHeaders sets the headers of an error.
func (e *Endpoint) setErrorHeaders(w http.ResponseWriter, r *http.Request, p *Problem) {
	h := w.Header()
	respond.RetryAfter(h, p.RetryAfter)
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="agentsite", error="invalid_token", resource_metadata="`+
			e.cfg.MetadataURL+r.URL.EscapedPath()+`"`)
	case http.StatusForbidden:
		h.Set("WWW-Authenticate", `Bearer realm="agentsite", error="insufficient_scope", resource_metadata="`+
			e.cfg.MetadataURL+r.URL.EscapedPath()+`"`)
	}
}

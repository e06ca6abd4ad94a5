package a2a

import (
	"cmp"
	"net/http"
	"time"
)

// Codes of a server in addition to those of errors.go. The protocol leaves failed authentication to
// HTTP. The first two codes are those of the Go SDK, the third is JSON-RPC's code for other errors of a
// server.
const (
	CodeUnauthenticated  = -31401
	CodeForbidden        = -31403
	CodeServer           = -32000
	CodePushNotSupported = -32003
	CodeNoExtendedCard   = -32007
	CodeParse            = -32700
)

// Failure is an error that this portal returns to an A2A client (§3.3.2, §9.5, §11.6). Text names the
// problem and the action that solves it.
type Failure struct {
	Code int
	Text string
	// Metadata becomes part of the error's details, which programs read.
	Metadata map[string]string
	// Status is the HTTP status and Reason the machine-readable reason. They are set only if the code
	// alone does not determine them.
	Status int
	Reason string
	// RetryAfter is the time that the caller should wait; zero gives no advice.
	RetryAfter time.Duration
}

// Error returns Text.
func (f *Failure) Error() string { return f.Text }

// Fail returns a Failure with an A2A code and a text for users.
func Fail(code int, text string) *Failure { return &Failure{Code: code, Text: text} }

// kinds maps each code to its machine-readable reason, its google.rpc status and its HTTP status.
var kinds = map[int]struct {
	reason, status string
	http           int
}{
	CodeTaskNotFound:        {"TASK_NOT_FOUND", "NOT_FOUND", http.StatusNotFound},
	CodeTaskNotCancelable:   {"TASK_NOT_CANCELABLE", "FAILED_PRECONDITION", http.StatusBadRequest},
	CodePushNotSupported:    {"PUSH_NOTIFICATION_NOT_SUPPORTED", "FAILED_PRECONDITION", http.StatusBadRequest},
	CodeUnsupported:         {"UNSUPPORTED_OPERATION", "FAILED_PRECONDITION", http.StatusBadRequest},
	CodeContentType:         {"CONTENT_TYPE_NOT_SUPPORTED", "INVALID_ARGUMENT", http.StatusBadRequest},
	CodeNoExtendedCard:      {"EXTENDED_AGENT_CARD_NOT_CONFIGURED", "FAILED_PRECONDITION", http.StatusBadRequest},
	CodeVersionNotSupported: {"VERSION_NOT_SUPPORTED", "FAILED_PRECONDITION", http.StatusBadRequest},
	CodeUnauthenticated:     {"UNAUTHENTICATED", "UNAUTHENTICATED", http.StatusUnauthorized},
	CodeForbidden:           {"PERMISSION_DENIED", "PERMISSION_DENIED", http.StatusForbidden},
	CodeServer:              {"UNAVAILABLE", "UNAVAILABLE", http.StatusServiceUnavailable},
	CodeParse:               {"PARSE_ERROR", "INVALID_ARGUMENT", http.StatusBadRequest},
	CodeInvalidRequest:      {"INVALID_REQUEST", "INVALID_ARGUMENT", http.StatusBadRequest},
	CodeMethodNotFound:      {"METHOD_NOT_FOUND", "NOT_FOUND", http.StatusNotFound},
	CodeInvalidParams:       {"INVALID_PARAMS", "INVALID_ARGUMENT", http.StatusBadRequest},
	CodeInternal:            {"INTERNAL_ERROR", "INTERNAL", http.StatusInternalServerError},
}

// HTTP returns the HTTP status of the failure in the HTTP+JSON binding. JSON-RPC answers have status
// 200.
func (f *Failure) HTTP() int {
	if f.Status != 0 {
		return f.Status
	}
	return kinds[f.Code].http
}

// RPC returns the error object for the JSON-RPC binding. Its member data is a list, as §9.5 requires.
func (f *Failure) RPC() any {
	return object{"code": f.Code, "message": f.Text, "data": f.errorDetails()}
}

// REST returns the body of an error answer in the HTTP+JSON binding; HTTP returns the status.
func (f *Failure) REST() any {
	status := kinds[f.Code].status
	switch f.Status {
	case http.StatusTooManyRequests:
		status = "RESOURCE_EXHAUSTED"
	case http.StatusNotFound:
		status = "NOT_FOUND"
	}
	return object{"error": object{"code": f.HTTP(), "status": status, "message": f.Text, "details": f.errorDetails()}}
}

// errorDetails returns the ErrorInfo that both bindings require, as a list.
func (f *Failure) errorDetails() []object {
	meta, reason := f.Metadata, cmp.Or(f.Reason, kinds[f.Code].reason)
	if meta == nil {
		meta = map[string]string{}
	}
	return []object{{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
		"domain": "a2a-protocol.org", "metadata": meta}}
}

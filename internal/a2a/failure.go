package a2a

import (
	"cmp"
	"net/http"
	"time"
)

// Codes beside those of errors.go that a server answers with. The protocol
// leaves failed authentication to HTTP; the first two codes are those of the
// Go SDK, the third is JSON-RPC's for what is the server's own matter.
const (
	CodeUnauthenticated  = -31401
	CodeForbidden        = -31403
	CodeServer           = -32000
	CodePushNotSupported = -32003
	CodeNoExtendedCard   = -32007
	CodeParse            = -32700
)

// Failure is an error as a server of the protocol answers it (§3.3.2, §9.5,
// §11.6). Text says what is wrong and what to do.
type Failure struct {
	Code int
	Text string
	// Metadata goes into the error's details, for programs.
	Metadata map[string]string
	// Status is the HTTP status, and Reason the word for programs, where the
	// code alone does not say it.
	Status int
	Reason string
	// RetryAfter is how long the caller should wait; zero says nothing.
	RetryAfter time.Duration
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// Fail returns a failure of a code.
func Fail(code int, text string) *Failure { return &Failure{Code: code, Text: text} }

// kinds says of each code its reason, its google.rpc code and its HTTP status.
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

// HTTP is the status of the failure in the HTTP+JSON binding.
func (f *Failure) HTTP() int {
	if f.Status != 0 {
		return f.Status
	}
	return kinds[f.Code].http
}

// RPC is the error object of the JSON-RPC binding, whose data is an array.
func (f *Failure) RPC() any {
	return object{"code": f.Code, "message": f.Text, "data": f.details()}
}

// REST is the body of an error of the HTTP+JSON binding.
func (f *Failure) REST() any {
	status := kinds[f.Code].status
	switch f.Status {
	case http.StatusTooManyRequests:
		status = "RESOURCE_EXHAUSTED"
	case http.StatusNotFound:
		status = "NOT_FOUND"
	}
	return object{"error": object{"code": f.HTTP(), "status": status, "message": f.Text, "details": f.details()}}
}

// details holds the ErrorInfo that both bindings must have.
func (f *Failure) details() []object {
	meta, reason := f.Metadata, cmp.Or(f.Reason, kinds[f.Code].reason)
	if meta == nil {
		meta = map[string]string{}
	}
	return []object{{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
		"domain": "a2a-protocol.org", "metadata": meta}}
}

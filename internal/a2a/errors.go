package a2a

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/egress"
)

// Fault classifies an unexpected answer of a remote agent, so that callers can decide whether to retry.
type Fault string

// The classes of unexpected answers.
const (
	// FaultAuth: the agent requires a credential, or refused the given one.
	FaultAuth Fault = "auth"
	// FaultRefused: the agent answered with a valid A2A error; Code has its code.
	FaultRefused Fault = "refused"
	// FaultShape: the answer is not valid A2A.
	FaultShape Fault = "shape"
	// FaultStatus: the HTTP status shows a problem of the server that may pass, such as 429 or 503.
	FaultStatus Fault = "status"
	// FaultLimit: the answer exceeds the bounds of this package.
	FaultLimit Fault = "limit"
)

// Error codes of A2A, as in its JSON-RPC binding. Codes of the other bindings are mapped to these.
const (
	CodeTaskNotFound        = -32001
	CodeTaskNotCancelable   = -32002
	CodeUnsupported         = -32004
	CodeContentType         = -32005
	CodeVersionNotSupported = -32009
	CodeInvalidRequest      = -32600
	CodeMethodNotFound      = -32601
	CodeInvalidParams       = -32602
	CodeInternal            = -32603
)

// Error describes an unexpected answer of a remote agent. Text may be shown to users: it is written here
// or, for FaultRefused, by the agent, then cut and cleaned.
type Error struct {
	Fault  Fault
	Code   int // A2A error code; only for FaultRefused
	Status int // HTTP status; 0 inside a stream
	Text   string
	// RetryAfter is the time to wait that an answer with status 429 names, 0 without one.
	RetryAfter time.Duration
}

// Busy returns the time after which to repeat a call that the agent refused with status 429; ok is false
// for other errors. busyWait is the time if the agent names none.
func Busy(err error) (wait time.Duration, ok bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Status != http.StatusTooManyRequests {
		return 0, false
	}
	return cmp.Or(e.RetryAfter, busyWait), true
}

const (
	busyWait = 30 * time.Second
	// maxBusyWait bounds the time to wait that an agent names, because people see it.
	maxBusyWait = 24 * time.Hour
)

// readRetryAfter reads the Retry-After header as seconds or as a date (RFC 9110 §10.2.3); 0 if it is
// absent or unreadable.
func readRetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return min(time.Duration(max(n, 0))*time.Second, maxBusyWait)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(clock.Now()), 0), maxBusyWait)
	}
	return 0
}

// Error returns Text, for FaultRefused with the A2A error code, for logs.
func (e *Error) Error() string {
	if e.Fault == FaultRefused {
		return fmt.Sprintf("a2a error %d: %s", e.Code, e.Text)
	}
	return e.Text
}

// IsCode reports whether err is an error of the agent (FaultRefused) with that A2A code.
func IsCode(err error, code int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Fault == FaultRefused && e.Code == code
}

// Reason returns a sentence for users with the reason why a call failed, for any error of this package
// or of egress.
func Reason(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return egress.Reason(err)
	}
	switch {
	case e.Fault == FaultRefused && e.Text != "":
		return "the agent answered with an error: " + e.Text
	case e.Fault == FaultRefused:
		return fmt.Sprintf("the agent answered with error %d", e.Code)
	}
	return e.Text
}

func limitError(format string, args ...any) *Error {
	return &Error{Fault: FaultLimit, Text: fmt.Sprintf(format, args...)}
}

func shapeError(status int, format string, args ...any) *Error {
	return &Error{Fault: FaultShape, Status: status, Text: fmt.Sprintf(format, args...)}
}

// reasonCode maps the reasons of google.rpc.ErrorInfo in the REST binding to
// the codes of the JSON-RPC binding.
var reasonCode = map[string]int{
	"TASK_NOT_FOUND":                     CodeTaskNotFound,
	"TASK_NOT_CANCELABLE":                CodeTaskNotCancelable,
	"PUSH_NOTIFICATION_NOT_SUPPORTED":    -32003,
	"UNSUPPORTED_OPERATION":              CodeUnsupported,
	"CONTENT_TYPE_NOT_SUPPORTED":         CodeContentType,
	"INVALID_AGENT_RESPONSE":             -32006,
	"EXTENDED_AGENT_CARD_NOT_CONFIGURED": -32007,
	"EXTENSION_SUPPORT_REQUIRED":         -32008,
	"VERSION_NOT_SUPPORTED":              CodeVersionNotSupported,
	"METHOD_NOT_FOUND":                   CodeMethodNotFound,
	"INVALID_PARAMS":                     CodeInvalidParams,
	"INVALID_REQUEST":                    CodeInvalidRequest,
	"INTERNAL_ERROR":                     CodeInternal,
}

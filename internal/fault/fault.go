// Package fault is the product's vocabulary of errors: the kind of an error and the sentence that users
// may read. It does not depend on HTTP, JSON or storage; each protocol endpoint maps a Kind to its own
// status in one place. An error without a Kind is internal: users read a generic sentence, the operator
// reads the log.
package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind classifies an error, so that each endpoint can choose its status.
type Kind string

// The kinds of errors, spelled as in the error objects of the HTTP API.
const (
	Invalid         Kind = "invalid"
	Unauthenticated Kind = "unauthenticated"
	Forbidden       Kind = "forbidden"
	NotFound        Kind = "not_found"
	Conflict        Kind = "conflict"
	RateLimited     Kind = "rate_limited"
	Unavailable     Kind = "unavailable"
	Internal        Kind = "internal"
)

// Error carries a kind and a sentence that is safe to show to users: the problem and the action that
// solves it. Err, if set, is the cause and goes only to the operator's log.
type Error struct {
	Kind Kind
	Safe string
	// Fields maps the name of an input field to the problem with it.
	Fields map[string]string
	// RetryAfter is the time that the caller should wait; zero gives no advice.
	RetryAfter time.Duration
	// Full says that the portal's disk is the reason of an Unavailable error.
	Full bool
	Err  error
}

// New returns an error of kind whose message, formatted as by fmt.Sprintf, is
// shown to the user as it stands.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Safe: fmt.Sprintf(format, args...)}
}

// Wrap returns an error of kind with a safe message for the user, formatted as by fmt.Sprintf, and the
// cause err for the log.
func Wrap(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Safe: fmt.Sprintf(format, args...), Err: err}
}

// Limited returns a RateLimited error with the time after which the caller may try again.
func Limited(retryAfter time.Duration, format string, args ...any) *Error {
	return &Error{Kind: RateLimited, Safe: fmt.Sprintf(format, args...), RetryAfter: retryAfter}
}

// Field returns an Invalid error about one input field. The message appears beside the field, or after
// the field's name where no form is shown.
func Field(field, message string) *Error {
	return &Error{Kind: Invalid, Safe: field + ": " + message, Fields: map[string]string{field: message}}
}

// Error implements error. It includes the wrapped cause and the fields and is
// meant for logs, not for users.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	b.WriteString(": ")
	b.WriteString(e.Safe)
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		fmt.Fprintf(&b, "; %s: %s", name, e.Fields[name])
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause for errors.Is and errors.As, or nil.
func (e *Error) Unwrap() error { return e.Err }

// As returns the *Error in err, or an Internal one that wraps err. It returns nil only for a nil err.
func As(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Safe: "Something went wrong on this portal. Try again; if it persists, send " +
		"the operator the request id.", Err: err}
}

// Is reports whether err is, or wraps, an Error of kind.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}

// Check collects the problems with the fields of one input, so that a form can show all of them at
// once. The zero value is ready.
type Check struct{ fields map[string]string }

// Field records a problem of the named field unless ok; the first problem of a field wins.
func (c *Check) Field(ok bool, name, format string, args ...any) {
	if ok {
		return
	}
	if c.fields == nil {
		c.fields = make(map[string]string)
	}
	if _, dup := c.fields[name]; !dup {
		c.fields[name] = fmt.Sprintf(format, args...)
	}
}

// Err returns nil when every field was fine, else an Invalid error that names
// the faulty fields.
func (c *Check) Err() error {
	if len(c.fields) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(c.fields))
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = n + ": " + c.fields[n]
	}
	return &Error{Kind: Invalid, Safe: strings.Join(parts, "; "), Fields: c.fields}
}

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Code classifies the reason why a request got no answer, so that callers need not compare texts.
type Code string

// The codes. Private, Denied, BadURL and Unprepared are refusals of this client; the others are network
// errors.
const (
	BadURL     Code = "bad_url"
	Private    Code = "private_address"
	Denied     Code = "denied" // refused by Config.Deny
	NoSuchHost Code = "no_such_host"
	Connect    Code = "connect" // refused, unreachable, or reset while connecting
	TLS        Code = "tls"
	Timeout    Code = "timeout"
	Redirect   Code = "redirect"
	TooLarge   Code = "too_large"
	Encoded    Code = "encoded"
	Busy       Code = "busy" // too many requests already wait for the host
	Resting    Code = "resting"
	Cut        Code = "cut" // the connection ended before the answer was complete
	Canceled   Code = "canceled"
	Protocol   Code = "protocol" // the answer is not valid HTTP
	Unprepared Code = "unprepared"
)

// Error is the error of a request. Text is part of a sentence that users may read; it never contains an
// address that was looked up.
type Error struct {
	Code Code
	Host string
	Text string
	Err  error
	// connecting is true if no connection was made; the gate counts such errors.
	connecting bool
}

// Error returns host, text and cause, for logs. For users, see Reason.
func (e *Error) Error() string {
	s := e.Text
	if e.Host != "" {
		s = e.Host + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause for errors.Is and errors.As, or nil.
func (e *Error) Unwrap() error { return e.Err }

func newError(code Code, host string, err error, format string, args ...any) *Error {
	return &Error{Code: code, Host: host, Err: err, Text: fmt.Sprintf(format, args...)}
}

func tooLarge(host string, limit int64) *Error {
	return newError(TooLarge, host, nil, "the answer is larger than %d MiB", max(limit>>20, 1))
}

func timedOut(host string, d time.Duration, doing string) *Error {
	return newError(Timeout, host, context.DeadlineExceeded, "timed out after %s %s", d, doing)
}

// CodeOf returns the code of the *Error in err, or "" if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Reason returns a plain text for the reason why a request failed: "connection refused", "no such
// host", "refused to connect to a private address". It never returns an empty text and never shows
// internals; nil gives "".
func Reason(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Text
	}
	return classifyError(err, "").Text
}

// classifyError converts an error of the standard library to an *Error with a code.
func classifyError(err error, host string) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound:
			return newError(NoSuchHost, host, err, "no such host")
		case dns.IsTimeout:
			return newError(Timeout, host, err, "timed out looking up the host's name")
		}
		return newError(NoSuchHost, host, err, "the host's name could not be looked up")
	}
	if e := classifyTLS(err, host); e != nil {
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return newError(Canceled, host, err, "the request was stopped")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return newError(Timeout, host, err, "timed out")
	case errors.Is(err, syscall.ECONNREFUSED):
		return newError(Connect, host, err, "connection refused")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH),
		errors.Is(err, syscall.EADDRNOTAVAIL):
		return newError(Connect, host, err, "the host cannot be reached from here")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return newError(Cut, host, err, "the connection was reset")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return newError(Cut, host, err, "the connection was closed before the answer was complete")
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return newError(Timeout, host, err, "timed out")
	}
	// net/http has no error types for these two cases.
	switch s := err.Error(); {
	case strings.Contains(s, "server response headers exceeded"):
		return newError(TooLarge, host, err, "the answer's header is larger than %d KiB", maxHeaderBytes>>10)
	case strings.Contains(s, "malformed HTTP"):
		return newError(Protocol, host, err, "the answer is not HTTP")
	}
	return newError(Protocol, host, err, "the request failed")
}

func classifyTLS(err error, host string) *Error {
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return newError(TLS, host, err, "TLS certificate is not valid for %s", makePrintable(e.Host))
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return newError(TLS, host, err, "TLS certificate has expired or is not yet valid")
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return newError(TLS, host, err, "TLS certificate is signed by an unknown authority")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return newError(TLS, host, err, "TLS certificate is not valid for %s", makePrintable(host))
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return newError(TLS, host, err, "the host does not speak TLS on that port")
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return newError(TLS, host, err, "the TLS handshake failed")
	}
	return nil
}

// makePrintable returns a host name from outside in a form for sentences: other characters than
// printable ASCII become '?', and it is cut to 255 bytes.
func makePrintable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) > 255 {
		s = s[:255]
	}
	return s
}

// NeverSent reports whether err proves that no host carried the request out: it was not sent, or the answer redirects
// elsewhere. Only then is a retry certain not to repeat an effect.
func NeverSent(err error) bool {
	if err == nil {
		return false
	}
	switch classifyError(err, "").Code {
	case BadURL, Private, Unprepared, NoSuchHost, Connect, TLS, Busy, Resting, Redirect:
		return true
	}
	return false
}

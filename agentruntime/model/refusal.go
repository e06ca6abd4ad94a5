package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"agentsite/internal/fault"
	"agentsite/internal/models"
	"agentsite/internal/openai"
	"agentsite/internal/reason"
	"agentsite/internal/task"
)

// maxRefusal bounds in bytes how much of an error response is read.
const maxRefusal = 64 << 10

// refusalFault returns the fault for a response other than 200: it wraps ErrKey, ErrProtocol or
// ErrNoTools where these apply. model is the requested model, "" for none; tools is true when the
// request offered tools.
func (c *Client) refusalFault(resp *http.Response, model string, tools bool) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	said := c.cleanReason(b)
	cause := &serverError{status: resp.Status, said: said}
	switch code := resp.StatusCode; {
	case tools && refusedTools(code, said):
		return fault.Wrap(fault.Invalid, errors.Join(ErrNoTools, cause),
			"The model %q cannot use tools: its server said %q.", cleanLine(model), said)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		text := "The endpoint refused the key."
		if c.key == "" {
			text = "The endpoint asks for a key."
		}
		return fault.Wrap(fault.Unauthenticated, errors.Join(ErrKey, cause), "%s%s", text, cause.sentence())
	case code == http.StatusNotFound && model != "" && strings.Contains(strings.ToLower(said), "model"):
		return fault.Wrap(fault.NotFound, cause, "The model %q is unknown to the endpoint.%s", cleanLine(model),
			cause.sentence())
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return fault.Wrap(fault.NotFound, errors.Join(ErrProtocol, cause),
			"There is no %s-compatible API at that address (HTTP %d).%s", c.providerName(), code, cause.sentence())
	case code == http.StatusTooManyRequests:
		f := fault.Limited(max(retryAfter(resp.Header), 0),
			"The model's server gets too many requests. Try again later.%s", cause.sentence())
		f.Err = cause
		return f
	case code >= 300 && code < 400:
		return fault.Wrap(fault.Unavailable, errors.Join(ErrProtocol, cause),
			"The endpoint redirects elsewhere (HTTP %d); use its final address.", code)
	case code >= 400 && code < 500 && said != "":
		return fault.Wrap(fault.Invalid, cause, "The endpoint refused the question: %s", said)
	}
	if said != "" {
		return fault.Wrap(fault.Unavailable, cause, "The model's server failed (HTTP %d): %s", resp.StatusCode, said)
	}
	return fault.Wrap(fault.Unavailable, cause, "The model's server failed (HTTP %d).", resp.StatusCode)
}

// serverError is the refusal of a server in its own words, cleaned; said is "" if it gave no reason.
type serverError struct{ status, said string }

// Error implements error, for logs and for the words that callers look for.
func (e *serverError) Error() string { return e.status + ": " + e.said }

// sentence returns the server's words as a sentence to put after one of this portal; "" without a reason.
func (e *serverError) sentence() string {
	if reason.IsTitle(e.said) {
		return ""
	}
	return fmt.Sprintf(" The server said %q.", e.said)
}

// cleanReason returns the reason in an error of the server, in one line without the key: some servers repeat a
// refused key, and the reader of the error need not be its owner.
func (c *Client) cleanReason(b []byte) string {
	return cleanLine(c.hideKey(reason.Find(b))) // The key is hidden after escapes are gone and before the text is cut.
}

func (c *Client) hideKey(s string) string {
	if c.key == "" {
		return s
	}
	return strings.ReplaceAll(dropInvisible(s), c.key, "[key]")
}

// RefusedPictures reports whether a request with pictures may have been refused because of them, so that
// the caller can repeat it without.
func RefusedPictures(err error) bool {
	if err == nil || errors.Is(err, ErrKey) {
		return false
	}
	said := strings.ToLower(err.Error())
	return fault.Is(err, fault.Invalid) || strings.Contains(said, "image") || strings.Contains(said, "vision") ||
		strings.Contains(said, "multimodal")
}

// lengthWords are parts of the errors of known servers for a question that is longer than the model takes.
var lengthWords = []string{"context length", "context_length", "context window", "context size", "maximum context",
	"prompt is too long", "input is too long", "too many tokens", "exceeds the maximum", "input length", "max_seq_len",
	"reduce the length", "n_ctx"}

// RefusedLength reports whether a request was probably refused because of its length, so that the caller can repeat it
// shorter.
func RefusedLength(err error) bool {
	if err == nil || errors.Is(err, ErrKey) || fault.Is(err, fault.RateLimited) {
		return false
	}
	said := strings.ToLower(err.Error())
	return slices.ContainsFunc(lengthWords, func(w string) bool { return strings.Contains(said, w) })
}

// providerName names the provider for users.
func (c *Client) providerName() string {
	if c.provider == models.Anthropic {
		return "Anthropic"
	}
	return "OpenAI"
}

// notModelFault returns an ErrProtocol fault for an answer that is not of this API. Its sentence names
// the content that came instead, such as a web page, but quotes none of it.
func (c *Client) notModelFault(b []byte, resp *http.Response) error {
	what := "something that is not JSON"
	trimmed := bytes.TrimSpace(b)
	switch {
	case len(trimmed) == 0:
		what = "nothing"
	case trimmed[0] == '<' || mediaType(resp) == "text/html":
		what = "a web page"
		if title := cleanLine(reason.PageTitle(trimmed)); title != "" {
			what += fmt.Sprintf(" with the title %q", title)
		}
	case openai.IsOllama(trimmed):
		what = "Ollama's own API. Its OpenAI API is at the address that ends in /v1"
	case json.Valid(trimmed):
		what = "other JSON"
	}
	return fault.Wrap(fault.Unavailable, ErrProtocol,
		"The endpoint does not speak the %s API: it answered with %s.", c.providerName(), what)
}

// retryAfter reads the Retry-After header as seconds or as a date (RFC 9110 §10.2.3); 0 means that it is
// absent or unreadable. Negative seconds and more than a day count as a day, so that no caller retries.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if !(s >= 0 && s <= 86400) { // This form is also false for NaN, which ParseFloat accepts.
			return 24 * time.Hour
		}
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(time.Until(t), time.Millisecond)
	}
	return 0
}

// cleanLine cleans text from outside for a sentence: one line, visible, at most 300 characters.
func cleanLine(s string) string {
	return cutBytes(strings.Join(strings.Fields(dropInvisible(s)), " "), 300)
}

func dropInvisible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

func cutBytes(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "")
}

// busyFor is the wait after a refusal for too many requests without a time to wait.
const busyFor = 30 * time.Second

// BusyResult returns the result of a task if its model refused the question because of too many requests: rejected,
// with the time after which it probably takes one. ok is false for all other errors.
func BusyResult(err error) (r task.Result, ok bool) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.RateLimited {
		return task.Result{}, false
	}
	wait := cmp.Or(f.RetryAfter, busyFor)
	r = task.Result{State: task.Rejected, Reason: task.BusyReason("The model's server", wait), RetryAfter: wait}
	if e, ok := errors.AsType[*serverError](f.Err); ok {
		r.Reason += e.sentence()
	}
	return r, true
}

package handlers

import (
	"net/http"
	"net/url"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/templates"
)

// maxForm bounds the body of a form.
const maxForm = 1 << 20

// form parses a posted form.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		if strings.Contains(err.Error(), "too large") {
			return nil, fault.New(fault.Invalid, "What you sent is too large. Send less at once.")
		}
		return nil, fault.Wrap(fault.Invalid, err, "The form could not be read.")
	}
	return r.PostForm, nil
}

// ownPath returns next if it is a path on this portal, else fallback: a
// redirect never leaves it.
func ownPath(next, fallback string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return fallback
	}
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/\\") {
		return fallback
	}
	return next
}

// errorsOf turns a fault into the messages beside the fields of a form; ok is
// false for faults that are no matter of the form.
func errorsOf(err error) (messages templates.FieldErrors, code int, ok bool) {
	f := fault.As(err)
	switch f.Kind {
	case fault.Invalid, fault.Conflict, fault.Forbidden, fault.RateLimited, fault.Unauthenticated, fault.Unavailable, fault.NotFound:
	default:
		return nil, 0, false
	}
	messages = templates.FieldErrors{}
	for name, text := range f.Fields {
		messages[name] = text
	}
	if len(messages) == 0 {
		messages[""] = f.Safe
	}
	return messages, respond.Status(f.Kind), true
}

// fieldErrors is errorsOf for a form that is about to be shown again: it also tells
// when to come back.
func fieldErrors(w http.ResponseWriter, err error) (messages templates.FieldErrors, code int, ok bool) {
	respond.RetryAfter(w.Header(), fault.As(err).RetryAfter)
	return errorsOf(err)
}

// see answers a form with the page to look at next.
func see(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

package pages

import (
	"net/http"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/templates"
)

// FirstError returns the message of the first of the named fields that has one, otherwise any message, ""
// without one.
func FirstError(messages templates.FieldErrors, names ...string) string {
	for _, n := range names {
		if m := messages[n]; m != "" {
			return m
		}
	}
	for _, m := range messages {
		return m
	}
	return ""
}

// FormErrors converts an error to messages by form field, and its HTTP status. The message "" concerns
// the whole form. ok is false for an error that the user of the form cannot correct.
func FormErrors(err error) (messages templates.FieldErrors, code int, ok bool) {
	f := fault.As(err)
	switch f.Kind {
	case fault.Invalid, fault.Conflict, fault.Forbidden, fault.RateLimited, fault.Unauthenticated, fault.Unavailable,
		fault.NotFound:
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
	return messages, respond.StatusOf(f), true
}

// FieldErrors is FormErrors for a form that is shown again. It also sets Retry-After on w.
func FieldErrors(w http.ResponseWriter, err error) (messages templates.FieldErrors, code int, ok bool) {
	respond.RetryAfter(w.Header(), fault.As(err).RetryAfter)
	return FormErrors(err)
}

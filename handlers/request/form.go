package request

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/strictjson"
)

// MaxForm bounds the body of a form without files in bytes.
const MaxForm = 1 << 20

// Form returns the values of a posted form. A form that is larger than MaxForm is an error, and so is a
// body of another type, because its fields would be lost.
func Form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.PostForm == nil && r.ContentLength != 0 &&
		t != "application/x-www-form-urlencoded" {
		return nil, fault.New(fault.Invalid, "Send the form with Content-Type: application/x-www-form-urlencoded.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, MaxForm)
	if err := r.ParseForm(); err != nil {
		if strings.Contains(err.Error(), "too large") {
			return nil, fault.New(fault.Invalid, "What you sent is too large. Send less at once.")
		}
		return nil, fault.Wrap(fault.Invalid, err, "The form could not be read.")
	}
	return r.PostForm, nil
}

// KnownForm is Form for a form that gives rights or takes them: a field that is not among names is an
// error, because a misspelt one would leave a right as it is.
func KnownForm(w http.ResponseWriter, r *http.Request, names ...string) (url.Values, error) {
	in, err := Form(w, r)
	if err != nil {
		return nil, err
	}
	var check fault.Check
	for name := range in {
		u := strictjson.UnknownError{Name: name, Fields: names}
		check.Field(slices.Contains(names, name), fmt.Sprintf("%.80s", name), "%s", u.Advice())
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	return in, nil
}

// OwnPath returns next if it is a path on this portal, otherwise fallback, so that a redirect never
// leaves the portal.
func OwnPath(next, fallback string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return fallback
	}
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || strings.HasPrefix(u.Path, "//") ||
		strings.HasPrefix(u.Path, "/\\") {
		return fallback
	}
	return next
}

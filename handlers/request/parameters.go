package request

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
)

// NormalizeLines converts \r\n, which browsers send in forms, to \n.
func NormalizeLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// ParseVersion parses the version of an agent in a path: a number from 1, or 0 for "latest".
func ParseVersion(s string) (int, error) {
	if s == "latest" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fault.New(fault.NotFound, "%.40q is no version; use a number, or latest.", s)
	}
	return n, nil
}

// NonEmptyValues returns the values of a repeated parameter that are not empty. It does not split values
// at commas, because the name of a skill may contain one.
func NonEmptyValues(in []string) []string {
	var out []string
	for _, s := range in {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// SplitValues returns the values of a parameter that may be repeated and separated by commas, without
// empty ones.
func SplitValues(in []string) []string {
	var out []string
	for _, s := range in {
		for _, v := range strings.Split(s, ",") {
			if v = strings.TrimSpace(v); v != "" {
				out = append(out, v)
			}
		}
	}
	return out
}

// PathSeq returns the seq of the message that the path names, or NotFound if it is no positive number.
func PathSeq(r *http.Request) (int64, error) {
	n, err := strconv.ParseInt(chi.URLParam(r, "seq"), 10, 64)
	if err != nil || n < 1 {
		return 0, fault.New(fault.NotFound, "There is no such message.")
	}
	return n, nil
}

// QueryInt returns a query parameter as a number, or fallback if the parameter is missing. Other text is
// an error.
func QueryInt(r *http.Request, name string, fallback int64) (int64, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fault.Field(name, "must be a whole number")
	}
	return n, nil
}

// WantsEvents reports whether the request accepts server-sent events.
func WantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// PathName returns the name of an agent or person in the path, decoded.
func PathName(r *http.Request) string { return PathParam(r, "name") }

package request

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
)

// NormalizeLines converts the line ends of forms to \n.
func NormalizeLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// ParseVersion reads the version of a path: a number, or 0 for "latest".
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

// NonEmptyValues returns the repeated values of a parameter that are not empty. It does not split at commas,
// because the name of a skill may contain one.
func NonEmptyValues(in []string) []string {
	var out []string
	for _, s := range in {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// SplitValues splits repeated and comma-separated parameters, leaving out empty
// ones.
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

// PathSeq returns the seq of the message in the path.
func PathSeq(r *http.Request) (int64, error) {
	n, err := strconv.ParseInt(chi.URLParam(r, "seq"), 10, 64)
	if err != nil || n < 1 {
		return 0, fault.New(fault.NotFound, "There is no such message.")
	}
	return n, nil
}

// QueryInt reads a query parameter as a number. It returns fallback if the parameter is absent.
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

// WantsEvents reports whether a request asks for server-sent events.
func WantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// PathName returns the name of an agent or person in the path.
func PathName(r *http.Request) string { return PathParam(r, "name") }

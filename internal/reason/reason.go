package openai

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"

	"agentsite/internal/lenientjson"
)

// reasonFields are the names of fields that hold the reason of an error, or an object or list with one,
// the most telling first.
var reasonFields = []string{"message", "msg", "error", "detail", "details", "error_description", "error_message",
	"errorMessage", "errors", "reason", "description", "title", "text",
	"status_msg", "base_resp"}

const maxReasonDepth = 6

// Reason returns the sentence in an error of a server: in JSON of any known form, in a web page its
// title, else the text itself; "" if there is none.
func Reason(b []byte) string {
	b = bytes.TrimSpace(lenientjson.TrimMark(b))
	var v any
	switch {
	case len(b) == 0:
		return ""
	case b[0] == '<':
		return PageTitle(b)
	case json.Unmarshal(b, &v) == nil:
		return reasonOf(v, maxReasonDepth)
	case b[0] == '{' || b[0] == '[': // JSON that was cut
		return ""
	}
	if data, ok := bytes.CutPrefix(b, []byte("data:")); ok { // an event stream, although it is an error
		line, _, _ := bytes.Cut(data, []byte("\n"))
		return Reason(line)
	}
	return string(b)
}

func reasonOf(v any, depth int) string {
	if depth == 0 {
		return ""
	}
	switch v := v.(type) {
	case string:
		s := strings.TrimSpace(v)
		var inner any
		if strings.HasPrefix(s, "{") && json.Unmarshal([]byte(s), &inner) == nil { // JSON as a text in JSON
			if r := reasonOf(inner, depth-1); r != "" {
				return r
			}
		}
		return s
	case []any:
		var out []string
		for _, x := range v {
			if s := reasonOf(x, depth-1); s != "" && len(out) < 3 && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return strings.Join(out, "; ")
	case map[string]any:
		for _, name := range reasonFields {
			if s := reasonOf(v[name], depth-1); s != "" {
				return addCause(s, v, depth)
			}
		}
	}
	return ""
}

// addCause appends the reason of the provider that a broker in front of it passes on.
func addCause(s string, v map[string]any, depth int) string {
	meta, ok := v["metadata"].(map[string]any)
	if !ok {
		return s
	}
	if cause := reasonOf(meta["raw"], depth-1); cause != "" && !strings.Contains(s, cause) {
		return s + ": " + cause
	}
	return s
}

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// PageTitle returns the title of a web page, "" if it has none.
func PageTitle(b []byte) string {
	m := pageTitle.FindSubmatch(b)
	if m == nil {
		return ""
	}
	return strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " ")
}

// Package reason finds the sentence in the errors of other servers, whatever form they have: JSON of the known
// frameworks, web pages, XML, events, plain text. The caller bounds and cleans it before it is shown.
package reason

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"agentsite/internal/lenientjson"
)

// fields are the names of members that hold the reason of an error, or an object or list with one, the most
// telling first; in lower case, without marks between words.
var fields = []string{"message", "msg", "error", "err", "detail", "details", "errordescription", "errormessage",
	"errormsg", "errmsg", "errors", "errorlist", "odata.error", "exception", "exceptionmessage", "fault", "faultstring",
	"failure", "problem", "reason", "reasons", "cause", "description", "statusmsg", "statusmessage", "statustext",
	"baseresp", "messages", "nonfielderrors", "title", "text", "info", "data", "response", "body"}

// errorFields are the members with an error as their value, so that more of its members are looked at.
var errorFields = []string{"error", "err", "errors", "errorlist", "odata.error", "exception", "fault", "failure",
	"detail", "details", "message", "data"}

// codes are members with a word in place of a sentence, used if there is nothing else. Those of codesInError are
// used within an error alone, because other objects have them too.
var (
	codes        = []string{"errorcode", "errcode", "errortype"}
	codesInError = []string{"value", "code", "type", "name", "status"}
)

const maxDepth = 6

// Find returns the sentence in an error of a server: in JSON of any known form, in a web page its title or
// heading, else the text itself; "" if there is none.
func Find(b []byte) string {
	if data, ok := ofEvent(bytes.TrimSpace(lenientjson.TrimMark(b))); ok { // an event stream, although it is an error
		return find(data)
	}
	return find(b)
}

func find(b []byte) string {
	b = bytes.TrimSpace(lenientjson.TrimMark(b))
	switch {
	case len(b) == 0:
		return ""
	case b[0] == '<':
		return ofMarkup(b)
	case b[0] == '{' || b[0] == '[' || b[0] == '"':
		if v, ok := firstValue(b); ok {
			return ofValue(v, maxDepth, false)
		}
		return ofCut(b)
	}
	var v any
	if json.Unmarshal(b, &v) == nil {
		return ofValue(v, maxDepth, false)
	}
	return string(b)
}

// firstValue decodes the JSON value at the beginning of b. Text after it is no part of it.
func firstValue(b []byte) (v any, ok bool) {
	if lenientjson.Decode(b, &v) == nil {
		return v, true
	}
	v = nil
	return v, json.NewDecoder(bytes.NewReader(b)).Decode(&v) == nil
}

var eventLine = regexp.MustCompile(`(?m)^(?:data|error):[ \t]*(\S.*)$`)

// ofEvent returns the first data of a stream of events; ok is false for other text.
func ofEvent(b []byte) ([]byte, bool) {
	for _, begin := range []string{"data:", "error:", "event:", "id:", "retry:", ":"} {
		if bytes.HasPrefix(b, []byte(begin)) {
			if m := eventLine.FindSubmatch(b); m != nil {
				return m[1], true
			}
		}
	}
	return nil, false
}

func ofValue(v any, depth int, inError bool) string {
	if depth == 0 {
		return ""
	}
	switch v := v.(type) {
	case string:
		s := strings.TrimSpace(v)
		if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") { // JSON as a text in JSON
			if inner, ok := firstValue([]byte(s)); ok {
				if r := ofValue(inner, depth-1, inError); r != "" {
					return r
				}
			}
		}
		return s
	case []any:
		var out []string
		for _, x := range v {
			if s := ofValue(x, depth-1, inError); s != "" && len(out) < 3 && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return strings.Join(out, "; ")
	case map[string]any:
		return ofObject(v, depth, inError)
	}
	return ""
}

func ofObject(v map[string]any, depth int, inError bool) string {
	o := make(map[string]any, len(v))
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if short := plainName(name); o[short] == nil {
			o[short] = v[name]
		}
	}
	first, cause := "", causeOf(o, depth) // read once, because each reading looks at all that is within
	for _, name := range fields {
		s := ofValue(o[name], depth-1, inError || slices.Contains(errorFields, name))
		if s == "" || says(s) == nothing {
			continue
		}
		if cause != "" && !strings.Contains(s, cause) {
			s += ": " + cause
		}
		if says(s) == sentence {
			return s
		}
		if first == "" {
			first = s
		}
	}
	if s := ofFields(v, names, depth, inError); s != "" {
		return s
	}
	if first != "" {
		return first
	}
	words := codes
	if inError {
		words = slices.Concat(codes, codesInError)
	}
	for _, name := range words {
		if s, ok := o[name].(string); ok && strings.ContainsFunc(s, unicode.IsLetter) && says(s) != nothing {
			return strings.TrimSpace(s)
		}
	}
	return ""
}

func plainName(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// ofFields returns the reasons that an object has by the names of the fields of the request, as validators write
// them: texts or lists of texts. Outside of an error each must be a list of sentences.
func ofFields(v map[string]any, names []string, depth int, inError bool) string {
	var out []string
	for _, name := range names {
		if slices.Contains(fields, plainName(name)) || slices.Contains(codesInError, plainName(name)) {
			return ""
		}
		list, isList := v[name].([]any)
		if _, isText := v[name].(string); !isList && !(isText && inError) || isList && len(list) == 0 {
			return ""
		}
		s := ofValue(v[name], depth-1, inError)
		if s == "" || !inError && !strings.Contains(ofValue(list[0], depth-1, false), " ") {
			return ""
		}
		if len(out) < 3 {
			out = append(out, name+": "+s)
		}
	}
	return strings.Join(out, "; ")
}

// causeOf returns the reason of the provider that a broker in front of it passes on; "" for none.
func causeOf(o map[string]any, depth int) string {
	meta, ok := o["metadata"].(map[string]any)
	if !ok {
		return ""
	}
	return ofValue(meta["raw"], depth-1, true)
}

// meaning is how much a text says as a reason.
type meaning int

const (
	nothing  meaning = iota // there is no error
	title                   // there is one
	sentence                // why
)

// empties are texts and words in place of nothing; titles say no more than that there was an error.
var (
	empties = []string{"", "null", "nil", "none", "undefined", "nan", "false", "no", "0", "200", "ok", "success",
		"successful", "no error", "n/a", "-"}
	titles = []string{"error", "true", "internal error", "server error", "unknown error", "an error occurred",
		"an unexpected error occurred", "something went wrong", "validation error",
		"validation failed", "invalid params", "invalid request", "failed", "failure", "fail", "exception",
		"page not found"}
)

// IsTitle reports whether a reason says no more than that there was an error, such as the name of an HTTP status.
func IsTitle(s string) bool { return says(s) != sentence }

var statusCode = regexp.MustCompile(`^(?:http |error |status )?[45]\d\d[ :-]+`)

func says(s string) meaning {
	word := strings.TrimRight(statusCode.ReplaceAllString(strings.ToLower(strings.TrimSpace(s)), ""), ".")
	switch {
	case slices.Contains(empties, word):
		return nothing
	case slices.Contains(titles, word):
		return title
	}
	for status := 400; status < 600; status++ {
		if t := http.StatusText(status); t != "" && strings.EqualFold(t, word) {
			return title
		}
	}
	return sentence
}

// IsSet reports whether the member "error" of an answer says that there is an error. Many servers write it with
// nothing in it: null, an empty value, code 0, or the word success.
func IsSet(raw json.RawMessage) bool {
	var v any
	if len(bytes.TrimSpace(raw)) == 0 {
		return false
	}
	if lenientjson.Decode(raw, &v) != nil {
		return true
	}
	return isSet(v, maxDepth)
}

func isSet(v any, depth int) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0 && v != 200
	case string:
		return says(v) != nothing
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return depth == 0 || isSet(x, depth-1) })
	case map[string]any:
		for _, x := range v {
			if depth == 0 || isSet(x, depth-1) {
				return true
			}
		}
	}
	return false
}

var (
	cutMember = regexp.MustCompile(`(?i)"(?:message|msg|detail|error|err|errmsg|error_?msg|error_?message|` +
		`error_description|reason|description|title)"\s*:\s*"((?:[^"\\]|\\.)*)`)
	pageTitle   = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	pageHeading = regexp.MustCompile(`(?is)<(?:h1|h2|pre)\b[^>]*>(.*?)</(?:h1|h2|pre)>`)
	xmlMessage  = regexp.MustCompile(`(?is)<(?:\w+:)?(?:message|faultstring|errormessage|error_?description|detail|` +
		`reason|text)\b[^>]*>([^<]+)</`)
	tag = regexp.MustCompile(`(?s)<[^>]*>`)
)

// ofCut returns the first reason in JSON that cannot be decoded, because it was cut or is written otherwise.
func ofCut(b []byte) string {
	for _, m := range cutMember.FindAllSubmatch(b, 8) {
		var s string
		if json.Unmarshal(slices.Concat([]byte(`"`), m[1], []byte(`"`)), &s) != nil {
			s = string(m[1])
		}
		if s = strings.TrimSpace(s); says(s) == sentence {
			return s
		}
	}
	return ""
}

// ofMarkup returns the reason in a web page or in XML.
func ofMarkup(b []byte) string {
	name := PageTitle(b)
	if name != "" && says(name) == sentence {
		return name
	}
	for _, form := range []*regexp.Regexp{xmlMessage, pageHeading} {
		for _, m := range form.FindAllSubmatch(b, 8) {
			if s := plainMarkup(m[1]); says(s) == sentence {
				return s
			}
		}
	}
	return name
}

// PageTitle returns the title of a web page, "" if it has none.
func PageTitle(b []byte) string {
	m := pageTitle.FindSubmatch(b)
	if m == nil {
		return ""
	}
	return plainMarkup(m[1])
}

func plainMarkup(b []byte) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(string(b), " "))), " ")
}

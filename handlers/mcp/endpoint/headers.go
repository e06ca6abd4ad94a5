package endpoint

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentsite/internal/strictjson"
)

// Headers that repeat fields of the body for proxies (2026-07-28, Request Metadata).
const (
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	paramHeader   = "Mcp-Param-"
	sessionHeader = "Mcp-Session-Id"
)

func mismatch(message string) *Problem {
	return &Problem{Code: CodeHeaderMismatch, Message: message, Status: http.StatusBadRequest}
}

// headerValue returns the value of a header, and whether it is present. ok is false for several different
// values, because a proxy may have used another one.
func headerValue(h http.Header, name string) (value string, there, ok bool) {
	list := h.Values(name)
	for _, v := range list[min(1, len(list)):] {
		if v != list[0] {
			return "", true, false
		}
	}
	if len(list) == 0 {
		return "", false, true
	}
	return list[0], true, true
}

// Prefix and suffix of a header value in base64.
const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// decodeValue returns the text that a header value stands for. ok is false for invalid base64, and for
// characters that a plain value must not contain.
func decodeValue(v string) (s string, ok bool) {
	if in, found := strings.CutPrefix(v, base64Prefix); found {
		if in, found = strings.CutSuffix(in, base64Suffix); found {
			b, err := base64.StdEncoding.Strict().DecodeString(in)
			return string(b), err == nil && utf8.Valid(b)
		}
	}
	for i := range len(v) {
		if (v[i] < ' ' || v[i] > '~') && v[i] != '\t' {
			return "", false
		}
	}
	return v, true
}

// checkRepeated returns a problem unless the header equals the field of the body. Only Mcp-Name may be in
// base64, because names may contain any character.
func checkRepeated(h http.Header, name, body string) *Problem {
	v, there, ok := headerValue(h, name)
	switch {
	case !there:
		return mismatch("The header " + name + " is missing. It repeats a field of the body.")
	case !ok:
		return mismatch("The header " + name + " is there more than once, with different values.")
	}
	if name != nameHeader {
		if v != body {
			return mismatch("The header " + name + " differs from the body.")
		}
		return nil
	}
	if s, ok := decodeValue(v); !ok {
		return mismatch("The header " + name + " has characters or base64 that no value may have.")
	} else if s != body {
		return mismatch("The header " + name + " differs from the body.")
	}
	return nil
}

// nameOf returns the parameter that the header Mcp-Name repeats for a method, "" for none.
func nameOf(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "taskId"
	}
	return ""
}

// binding is an argument that clients repeat in a header.
type binding struct {
	path   []string
	header string
}

// maxBindings bounds the arguments of one tool that are repeated in headers, maxBindingDepth their
// nesting.
const (
	maxBindings     = 32
	maxBindingDepth = 8
)

// findBindings returns the arguments that a tool's schema marks with x-mcp-header.
func findBindings(schema json.RawMessage) []binding {
	root, ok := strictjson.Split(schema)
	if !ok {
		return nil
	}
	return bindingsIn(root, nil, nil)
}

func bindingsIn(s strictjson.Object, at []string, out []binding) []binding {
	props, _ := s.Object("properties")
	for _, p := range props {
		sub, ok := strictjson.Split(p.Value)
		if !ok || len(out) >= maxBindings || len(at) >= maxBindingDepth {
			continue
		}
		path := append(at[:len(at):len(at)], p.Name)
		if h, ok := sub.Text("x-mcp-header"); ok && isToken(h) {
			out = append(out, binding{path, h})
		}
		out = bindingsIn(sub, path, out)
	}
	return out
}

// isToken reports whether s consists of characters that header names allow (RFC 9110 token).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// checkParams returns a problem unless every header that repeats an argument equals that argument.
func checkParams(h http.Header, list []binding, args strictjson.Object) *Problem {
	for _, b := range list {
		raw, o := json.RawMessage(nil), args
		for i, name := range b.path {
			if raw = o.Get(name); i < len(b.path)-1 {
				if o, _ = strictjson.Split(raw); o == nil {
					raw = nil
					break
				}
			}
		}
		v, there, one := headerValue(h, paramHeader+b.header)
		if raw == nil || string(raw) == "null" {
			if there {
				return mismatch("The header " + paramHeader + b.header + " repeats an argument that is not there.")
			}
			continue
		}
		var want string
		switch {
		case raw[0] == '"':
			want, _ = strictjson.Text(raw)
		case raw[0] == '{' || raw[0] == '[':
			continue // objects and arrays are not repeated in headers
		default:
			want = string(raw)
		}
		got, ok := decodeValue(v)
		switch {
		case !there:
			return mismatch("The header " + paramHeader + b.header + " is missing. It repeats the argument " +
				strings.Join(b.path, ".") + ".")
		case !one || !ok:
			return mismatch("The header " + paramHeader + b.header +
				" has characters or base64 that no value may have, or is there twice.")
		case got != want && !(raw[0] != '"' && sameNumber(got, want)):
			return mismatch("The header " + paramHeader + b.header + " differs from the argument " +
				strings.Join(b.path, ".") + ".")
		}
	}
	return nil
}

func sameNumber(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y
}

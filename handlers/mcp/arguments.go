package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/schema"
	"agentsite/internal/strictjson"
)

// arguments decodes the arguments of a tool of this portal. Its read methods return a zero value for a
// wrong argument and collect the error; checkAll returns them all, in words that a model understands.
type arguments struct {
	in    strictjson.Object
	read  []string
	wrong map[string]string
}

func argumentsOf(c *endpoint.Call) *arguments {
	return &arguments{in: c.Arguments, wrong: make(map[string]string)}
}

func (a *arguments) getRaw(name string) json.RawMessage {
	a.read = append(a.read, name)
	raw := a.in.Get(name)
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// readText returns a string of at most max bytes, "" if the argument is missing.
func (a *arguments) readText(name string, max int) string {
	raw := a.getRaw(name)
	if raw == nil {
		return ""
	}
	s, ok := strictjson.Text(raw)
	switch {
	case !ok:
		a.wrong[name] = "use a text"
	case len(s) > max:
		a.wrong[name] = fmt.Sprintf("is %d characters long; use at most %d bytes", utf8.RuneCountInString(s), max)
	}
	return s
}

// requireText is readText for a required argument: a missing or empty one is an error.
func (a *arguments) requireText(name string, max int) string {
	s := a.readText(name, max)
	if s == "" && a.wrong[name] == "" {
		a.wrong[name] = "is missing"
	}
	return s
}

// readList returns a list of at most max strings.
func (a *arguments) readList(name string, max int) []string {
	raw := a.getRaw(name)
	if raw == nil {
		return nil
	}
	var out []string
	if json.Unmarshal(raw, &out) != nil || len(out) > max {
		a.wrong[name] = fmt.Sprintf("use a list of at most %d texts", max)
	}
	return out
}

// readFlag returns a boolean. given is false if the argument is missing.
func (a *arguments) readFlag(name string) (set, given bool) {
	switch string(a.getRaw(name)) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "":
		return false, false
	}
	a.wrong[name] = "use true or false"
	return false, false
}

// readNumber returns an integer from least to most, or def if the argument is missing.
func (a *arguments) readNumber(name string, def, least, most int) int {
	raw := a.getRaw(name)
	if raw == nil {
		return def
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < least || n > most {
		a.wrong[name] = fmt.Sprintf("use a whole number from %d to %d", least, most)
		return def
	}
	return n
}

// readObject returns a JSON object unchanged, nil if the argument is missing.
func (a *arguments) readObject(name string) json.RawMessage {
	raw := a.getRaw(name)
	if raw != nil && raw[0] != '{' {
		a.wrong[name] = "use an object"
	}
	return raw
}

// checkAll returns nil if all arguments are valid, otherwise a result with the collected errors.
// Arguments that were never read are unknown and count as errors.
func (a *arguments) checkAll() *endpoint.Result {
	for _, m := range a.in {
		if !slices.Contains(a.read, m.Name) {
			a.wrong[m.Name[:min(len(m.Name), 80)]] = "there is no such argument"
		}
	}
	if len(a.wrong) == 0 {
		return nil
	}
	r := endpoint.Failure("The arguments do not fit. " + schema.Sentence(a.wrong) + ".")
	return &r
}

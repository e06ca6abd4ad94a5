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

// arguments reads those of a tool of ours and collects what is wrong with
// them, in words for a model.
type arguments struct {
	in    strictjson.Object
	read  []string
	wrong map[string]string
}

func argumentsOf(c *endpoint.Call) *arguments {
	return &arguments{in: c.Arguments, wrong: make(map[string]string)}
}

func (a *arguments) get(name string) json.RawMessage {
	a.read = append(a.read, name)
	raw := a.in.Get(name)
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// text is a text of at most max bytes.
func (a *arguments) text(name string, max int) string {
	raw := a.get(name)
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

// need is text that must be there.
func (a *arguments) need(name string, max int) string {
	s := a.text(name, max)
	if s == "" && a.wrong[name] == "" {
		a.wrong[name] = "is missing"
	}
	return s
}

// list is a list of at most max texts.
func (a *arguments) list(name string, max int) []string {
	raw := a.get(name)
	if raw == nil {
		return nil
	}
	var out []string
	if json.Unmarshal(raw, &out) != nil || len(out) > max {
		a.wrong[name] = fmt.Sprintf("use a list of at most %d texts", max)
	}
	return out
}

// flag is true or false, and whether it is there.
func (a *arguments) flag(name string) (set, given bool) {
	switch string(a.get(name)) {
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

// number is a whole number between bounds, def when it is not there.
func (a *arguments) number(name string, def, least, most int) int {
	raw := a.get(name)
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

// object is a JSON object as it was written.
func (a *arguments) object(name string) json.RawMessage {
	raw := a.get(name)
	if raw != nil && raw[0] != '{' {
		a.wrong[name] = "use an object"
	}
	return raw
}

// done returns what a model is told, nil when all is well.
func (a *arguments) done() *endpoint.Result {
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

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agentsite/internal/a2a"
	"agentsite/internal/schema"
	"agentsite/internal/task"
)

// request is a tool call that the parts of a message ask for.
type request struct {
	tool *offered
	args json.RawMessage
	// wrong holds, by field, the problems that prevent the call.
	wrong map[string]string
	// form is true for a request from a form or a program: a mistake in it fails the call instead of
	// causing a question.
	form bool
	// unknown is the name of a requested tool that the server does not offer; tool is nil then.
	unknown string
}

// parseRequest finds the requested tool and its arguments. It returns nil when the parts request none.
func parseRequest(parts []task.Part, tools []offered) *request {
	for _, p := range parts {
		if len(p.Data) > 0 {
			if r := fromData(p.Data, tools); r != nil {
				return r
			}
		}
	}
	return fromText(textOf(parts), tools)
}

func textOf(parts []task.Part) string {
	var said []string
	for _, p := range parts {
		if p.Text != "" {
			said = append(said, p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(said, "\n\n"))
}

// fromData reads {"tool": name, "arguments": {…}}. For a server with one tool the arguments alone
// suffice.
func fromData(data json.RawMessage, tools []offered) *request {
	var d struct {
		Tool      *string         `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(data, &d) != nil {
		return nil
	}
	r := &request{args: d.Arguments, form: true}
	switch {
	case d.Tool != nil:
		r.tool = findTool(tools, *d.Tool)
		if r.tool == nil {
			r.unknown = a2a.Line(*d.Tool, 60)
		}
	case len(tools) == 1:
		r.tool = &tools[0]
		if len(d.Arguments) == 0 {
			r.args = data
		}
	default:
		return nil
	}
	if len(r.args) == 0 || string(r.args) == "null" {
		r.args = json.RawMessage("{}")
	}
	return r
}

// fromText reads "tool {json}" or "tool key=value …". If a tool takes a single text, any text is its
// argument.
func fromText(text string, tools []offered) *request {
	if text == "" {
		return nil
	}
	head, rest := text, ""
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '{' }); i >= 0 {
		head, rest = text[:i], strings.TrimSpace(text[i:])
	}
	if t := findTool(tools, strings.TrimPrefix(head, "/")); t != nil {
		return parseArguments(t, rest)
	}
	if len(tools) != 1 {
		return nil
	}
	t := &tools[0]
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return parseArguments(t, text)
	}
	if f, ok := onlyText(t); ok {
		return &request{tool: t, args: oneArgument(f.Path, text)}
	}
	if _, ok := parsePairs(t, text); ok {
		return parseArguments(t, text)
	}
	return nil
}

// parseArguments reads the text after a tool's name: JSON, pairs, or a text for the only argument.
// Problems with it are in wrong.
func parseArguments(t *offered, rest string) *request {
	r := &request{tool: t, args: json.RawMessage("{}")}
	switch given, ok := parsePairs(t, rest); {
	case rest == "":
	case rest[0] == '{':
		if !json.Valid([]byte(rest)) {
			r.wrong = map[string]string{"": "the JSON behind the tool's name cannot be read"}
			return r
		}
		r.args = json.RawMessage(rest)
	case ok:
		args, wrong, err := schema.FromForm(t.InputSchema, func(p string) (string, bool) { return given[p], true })
		if err == nil {
			r.args, r.wrong = args, wrong
		}
	default:
		f, ok := onlyText(t)
		if !ok {
			r.wrong = map[string]string{"": "write the arguments as name=value or as JSON"}
			return r
		}
		r.args = oneArgument(f.Path, rest)
	}
	return r
}

// onlyText returns the one argument that a plain text can stand for: the only required one, or the only
// one at all.
func onlyText(t *offered) (schema.Field, bool) {
	fields, err := schema.Fields(t.InputSchema)
	if err != nil {
		return schema.Field{}, false
	}
	var need []schema.Field
	for _, f := range fields {
		if f.Required {
			need = append(need, f)
		}
	}
	if len(need) == 0 && len(fields) == 1 {
		need = fields
	}
	if len(need) == 1 && need[0].Path == need[0].Name &&
		(need[0].Type == schema.Text || need[0].Type == schema.TextArea) {
		return need[0], true
	}
	return schema.Field{}, false
}

func oneArgument(name, value string) json.RawMessage {
	b, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// parsePairs reads name=value pairs, with quotes around values that contain spaces. ok is false when
// the text is anything else, or names an unknown argument.
func parsePairs(t *offered, text string) (map[string]string, bool) {
	fields, err := schema.Fields(t.InputSchema)
	if err != nil {
		return nil, false
	}
	out := make(map[string]string)
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, rest, ok := strings.Cut(text, "=")
		i := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Path == name })
		if !ok || i < 0 {
			return nil, false
		}
		var value string
		if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			value, text, ok = cutQuoted(rest)
			if !ok {
				return nil, false
			}
		} else if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
			value, text = rest[:end], rest[end:]
		} else {
			value, text = rest, ""
		}
		if fields[i].Type == schema.List && !strings.Contains(value, "\n") {
			value = strings.ReplaceAll(value, ",", "\n")
		}
		out[name] = value
	}
	return out, len(out) > 0
}

// cutQuoted cuts a quoted value off the front of s; ok is false if the quote does not end.
func cutQuoted(s string) (value, rest string, ok bool) {
	var b strings.Builder
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && (s[i+1] == quote || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case c == quote:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// quoteValue formats a value so that parsePairs reads the same value.
func quoteValue(v string) string {
	v = strings.ReplaceAll(v, "\n", ",")
	if v != "" && !strings.ContainsFunc(v, func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\'' }) {
		return v
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
}

// completeRequest adds the present message to the earlier arguments: data, pairs, or a text that can
// stand for one missing argument.
func completeRequest(t *offered, before json.RawMessage, parts []task.Part) *request {
	added := map[string]json.RawMessage{}
	r := &request{tool: t}
	text := textOf(parts)
	for _, p := range parts {
		var d struct {
			Arguments map[string]json.RawMessage `json:"arguments"`
		}
		if len(p.Data) > 0 && json.Unmarshal(p.Data, &d) == nil && d.Arguments != nil {
			added, r.form = d.Arguments, true
		}
	}
	if given, ok := parsePairs(t, text); ok && !r.form {
		// Check only the given fields, because earlier messages gave the others.
		args, wrong, err := schema.FromForm(t.InputSchema, func(p string) (string, bool) { return given[p], true })
		if err == nil {
			_ = json.Unmarshal(args, &added) // FromForm returned this JSON, so it can be decoded.
			for name, say := range wrong {
				if _, mine := given[name]; mine {
					r.wrong = map[string]string{name: say}
				}
			}
		}
	} else if text != "" && !r.form {
		missing := schema.Validate(t.InputSchema, before)
		var asked []schema.Field
		fields, _ := schema.Fields(t.InputSchema)
		for _, f := range fields {
			if _, wrong := missing[f.Path]; wrong {
				asked = append(asked, f)
			}
		}
		if len(asked) == 1 && len(missing) == 1 {
			args, wrong, err := schema.FromForm(t.InputSchema, func(p string) (string, bool) {
				if p == asked[0].Path {
					return text, true
				}
				return "", true
			})
			if err == nil {
				_ = json.Unmarshal(args, &added) // FromForm returned this JSON, so it can be decoded.
				if say := wrong[asked[0].Path]; say != "" {
					r.wrong = map[string]string{asked[0].Path: say}
				}
			}
		}
	}
	r.args = mergeArguments(before, added)
	return r
}

// mergeArguments returns before with its fields overwritten by those of added; an object in both is
// merged in the same way. It returns an unreadable before unchanged.
func mergeArguments(before json.RawMessage, added map[string]json.RawMessage) json.RawMessage {
	all := make(map[string]json.RawMessage)
	if len(before) > 0 && json.Unmarshal(before, &all) != nil {
		return before
	}
	for k, v := range added {
		old, now := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		if json.Unmarshal(all[k], &old) == nil && json.Unmarshal(v, &now) == nil && bytes.HasPrefix(v, []byte("{")) {
			v = mergeArguments(all[k], now)
		}
		all[k] = v
	}
	b, err := json.Marshal(all)
	if err != nil {
		return before
	}
	return b
}

// maxHelp bounds the list of tools in a help text, in bytes; further tools are only counted.
const maxHelp = 12 << 10

// helpText lists the tools and the way to call them, as Markdown of about maxHelp bytes. It answers a
// message that names no tool.
func helpText(tools []offered) string {
	if len(tools) == 0 {
		return "This server offers no tools at the moment."
	}
	var b strings.Builder
	b.WriteString("I call tools. Write the name of one and then its arguments as `name=value` or as JSON, or " +
		"use its form.\n\n")
	sample := ""
	for i, t := range tools {
		if b.Len() > maxHelp {
			fmt.Fprintf(&b, "- and %d more\n", len(tools)-i)
			break
		}
		fmt.Fprintf(&b, "- `%s`", t.Name)
		if about, _, _ := strings.Cut(t.Description, "\n"); about != "" {
			b.WriteString(": " + a2a.Line(about, 160))
		}
		b.WriteString(requiredText(t.InputSchema))
		b.WriteByte('\n')
		if e := exampleCall(t.Tool); sample == "" && strings.Contains(e, " ") && len(e) < 200 {
			sample = e
		}
	}
	if sample != "" {
		b.WriteString("\nFor example: `" + strings.ReplaceAll(sample, "`", "'") + "`\n")
	}
	return b.String()
}

// requiredText lists the required arguments of a tool for helpText; "" if there are none.
func requiredText(raw json.RawMessage) string {
	fields, err := schema.Fields(raw)
	if err != nil {
		return ""
	}
	var names []string
	for _, f := range fields {
		if f.Required && len(names) < 8 {
			names = append(names, "`"+strings.ReplaceAll(a2a.Line(f.Path, 60), "`", "'")+"`")
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (needs " + strings.Join(names, ", ") + ")"
}

// Package openapi writes the OpenAPI 3.1 document of an API whose operations
// are declared in Go. Schemas are made from the types that the handlers encode
// and decode, so that they cannot say anything else; what a type cannot say
// (texts, bounds, which words are allowed) is given beside it. The package
// knows nothing of what the operations do.
package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Schema is a JSON Schema (2020-12), or any other object of the document.
type Schema map[string]any

// API is what a document is made from.
type API struct {
	Info    Schema // the info object
	Server  string // the address that paths follow, without a trailing slash
	Tags    []Tag
	Schemes map[string]Schema // security schemes
	// Bearer and Cookie name the schemes of tokens and of sessions.
	Bearer, Cookie string
	// Named are schemas without a Go type, by the name of their component.
	Named map[string]Schema
	// Enums are the words of a named text type, by the type.
	Enums map[reflect.Type]Schema
	// Names are of struct types whose own name would not do.
	Names map[reflect.Type]string
	// Fields add to what a type says of its fields, by "Component.field"; a
	// "*.field" is for every component that has no entry of its own.
	Fields map[string]Schema
	// Required are the fields an input must have, by component.
	Required map[string][]string
	// Parameters are all there are, by name.
	Parameters map[string]Parameter
	// Error is a value of the error object.
	Error      any
	Operations []Operation
}

// Tag is a group of operations.
type Tag struct{ Name, Text string }

// Parameter is part of a path or of a query.
type Parameter struct {
	Name   string // unless it is that of the component
	Text   string
	Schema Schema
	// Many lets a query repeat it.
	Many bool
}

// Operation is one method on one path.
type Operation struct {
	Method, Path string
	ID           string // unique, in camelCase
	Tag          string
	Summary      string
	Text         string // more about it, in Markdown
	// Scopes are those of which a token needs one; none means any token.
	Scopes []string
	// Anonymous operations need no credential at all; Schemes are further ones
	// that are enough.
	Anonymous bool
	Schemes   []string
	// Query are the names of its parameters there.
	Query []string
	// Body is a value of the type that is decoded; nil for none. Optional
	// bodies may be left out.
	Body     any
	Optional bool
	// Example is of the body, as JSON.
	Example string
	// Answers are what it says when it succeeds, by status.
	Answers map[int]Answer
	// Missing operations may answer 404 for what their body names, as those with
	// a name in their path do anyway; Conflict operations may answer 409.
	Missing, Conflict bool
}

// Answer is one success of an operation.
type Answer struct {
	Text    string
	JSON    any    // a value of the type that is encoded; nil for none
	Example string // of it, as JSON
	// Media are contents that are no JSON of ours, by media type.
	Media map[string]Schema
	// Location says that the header tells where the new thing is.
	Location bool
}

// Object is an object that has no type: values of its fields by name. A "?"
// behind a name says that it may be missing.
type Object map[string]any

// Media is a body that is no JSON of ours, by media type.
type Media map[string]Schema

// Ref refers to a named schema.
func Ref(name string) Schema { return Schema{"$ref": "#/components/schemas/" + name} }

// faults are the answers that say what went wrong, by status.
var faults = map[int][2]string{
	http.StatusBadRequest: {"Invalid",
		"Something in the request is wrong: `kind` is `invalid`, and `fields` names what."},
	http.StatusUnauthorized: {"Unauthenticated",
		"There is no token or session where one is needed, or it is not valid any more: `kind` is `unauthenticated`."},
	http.StatusForbidden: {"Forbidden",
		"The token lacks the scope, the caller may not do this, or another site asked: `kind` is `forbidden`."},
	http.StatusNotFound: {"NotFound",
		"It does not exist, or it is not for the caller; both look alike: `kind` is `not_found`."},
	http.StatusConflict: {"Conflict",
		"The present state does not allow it, for example because a name is taken: `kind` is `conflict`."},
	http.StatusRequestEntityTooLarge: {"TooLarge",
		"The request is larger than the bound that the message names: `kind` is `invalid`."},
	http.StatusTooManyRequests: {"RateLimited",
		"Too many requests: `kind` is `rate_limited`. Wait as long as `Retry-After` says."},
	http.StatusServiceUnavailable: {"Unavailable",
		"Not possible for the moment: `kind` is `unavailable`. Try again later."},
}

// builder makes one document.
type builder struct {
	api     API
	schemas map[string]Schema
	of      map[string]reflect.Type // what a component was made from
	noted   map[string]bool         // the entries of Fields that were used
	asked   map[string]bool         // parameters that were used
}

// Document returns the document as JSON. Errors are mistakes in the
// declaration: a name that is used twice, a text for a field that is none.
func (a API) Document() ([]byte, error) {
	b := &builder{api: a, schemas: make(map[string]Schema), of: make(map[string]reflect.Type),
		noted: make(map[string]bool), asked: make(map[string]bool)}
	maps.Copy(b.schemas, a.Named)
	fault, err := b.schema(reflect.TypeOf(a.Error), false)
	if err != nil {
		return nil, err
	}
	paths, ids := make(map[string]Schema), make(map[string]bool)
	for _, op := range a.Operations {
		o, err := b.operation(op)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", op.Method, op.Path, err)
		}
		method := strings.ToLower(op.Method)
		if paths[op.Path] == nil {
			paths[op.Path] = Schema{}
		}
		if paths[op.Path][method] != nil || ids[op.ID] {
			return nil, fmt.Errorf("%s %s (%s) is declared twice", op.Method, op.Path, op.ID)
		}
		paths[op.Path][method], ids[op.ID] = o, true
	}
	for key := range a.Fields {
		if !b.noted[key] {
			return nil, fmt.Errorf("there is a text for %s, which is no field", key)
		}
	}
	responses := Schema{}
	for status, f := range faults {
		r := Schema{"description": f[1], "content": Schema{"application/json": Schema{"schema": fault}}}
		switch status {
		case http.StatusTooManyRequests:
			r["headers"] = Schema{"Retry-After": Schema{"description": "Seconds to wait.",
				"schema": Schema{"type": "integer", "minimum": 0}}}
		case http.StatusUnauthorized:
			r["headers"] = Schema{"WWW-Authenticate": Schema{"description": "That a bearer token is taken.",
				"schema": Schema{"type": "string"}}}
		}
		responses[f[0]] = r
	}
	responses["Internal"] = Schema{"description": "A fault of the portal: `kind` is `internal`. Give the operator the `request_id`.", "content": Schema{"application/json": Schema{"schema": fault}}}
	parameters := Schema{}
	for name, p := range a.Parameters {
		if !b.asked[name] {
			return nil, fmt.Errorf("no operation has the parameter %s", name)
		}
		in, needed := "query", false
		if b.inPath(name) {
			in, needed = "path", true
		}
		s := p.Schema
		o := Schema{"name": cmp.Or(p.Name, name), "in": in, "description": p.Text}
		if p.Many {
			s = Schema{"type": "array", "items": s}
			o["style"], o["explode"] = "form", true
		}
		if o["schema"] = s; needed {
			o["required"] = true
		}
		parameters[name] = o
	}
	tags := make([]Schema, len(a.Tags))
	for i, t := range a.Tags {
		tags[i] = Schema{"name": t.Name, "description": t.Text}
	}
	return json.Marshal(Schema{"openapi": "3.1.0", "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": a.Info, "servers": []Schema{{"url": a.Server}}, "tags": tags, "paths": paths,
		"components": Schema{"schemas": b.schemas, "responses": responses, "parameters": parameters,
			"securitySchemes": a.Schemes}})
}

func (b *builder) inPath(name string) bool {
	return slices.ContainsFunc(b.api.Operations,
		func(o Operation) bool { return strings.Contains(o.Path, "{"+name+"}") })
}

func (b *builder) operation(op Operation) (Schema, error) {
	o := Schema{"operationId": op.ID, "summary": op.Summary, "tags": []string{op.Tag}, "security": b.security(op)}
	o["description"] = strings.TrimSpace(op.Text + "\n\n" + needs(op))
	if !slices.ContainsFunc(b.api.Tags, func(t Tag) bool { return t.Name == op.Tag }) {
		return nil, fmt.Errorf("there is no tag %q", op.Tag)
	}
	var parameters []Schema
	for _, name := range append(pathNames(op.Path), op.Query...) {
		if _, ok := b.api.Parameters[name]; !ok {
			return nil, fmt.Errorf("there is no parameter %q", name)
		}
		b.asked[name] = true
		parameters = append(parameters, Schema{"$ref": "#/components/parameters/" + name})
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	if op.Body != nil {
		body, err := b.content(op.Body, op.Example, op.ID, true)
		if err != nil {
			return nil, err
		}
		o["requestBody"] = Schema{"required": !op.Optional, "content": body}
	}
	responses := Schema{"default": Schema{"$ref": "#/components/responses/Internal"}}
	for status, a := range op.Answers {
		r := Schema{"description": a.Text}
		if a.JSON != nil || a.Media != nil {
			content := Schema{}
			if a.JSON != nil {
				var err error
				if content, err = b.content(a.JSON, a.Example, op.ID, false); err != nil {
					return nil, err
				}
			}
			for media, s := range a.Media {
				content[media] = Schema{"schema": s}
			}
			r["content"] = content
		}
		if a.Location {
			r["headers"] = Schema{"Location": Schema{"description": "The path of what was made.",
				"schema": Schema{"type": "string", "format": "uri-reference"}}}
		}
		responses[strconv.Itoa(status)] = r
	}
	for status, f := range faults {
		switch {
		case status == http.StatusNotFound && !op.Missing && !strings.Contains(op.Path, "{"),
			status == http.StatusConflict && !op.Conflict,
			status == http.StatusRequestEntityTooLarge && op.Body == nil:
			continue
		}
		responses[strconv.Itoa(status)] = Schema{"$ref": "#/components/responses/" + f[0]}
	}
	o["responses"] = responses
	return o, nil
}

// needs says in words what security says.
func needs(op Operation) string {
	var s string
	switch len(op.Scopes) {
	case 0:
		s = "A token needs no scope."
	case 1:
		s = "A token needs the scope `" + op.Scopes[0] + "`."
	default:
		s = "A token needs one of the scopes `" + strings.Join(op.Scopes, "`, `") + "`."
	}
	if op.Anonymous {
		s = "Guests may do this. " + s
	}
	return s
}

// security lists what is enough for an operation, each alone.
func (b *builder) security(op Operation) []Schema {
	var out []Schema
	for _, s := range op.Scopes {
		out = append(out, Schema{b.api.Bearer: []string{s}})
	}
	if len(op.Scopes) == 0 {
		out = append(out, Schema{b.api.Bearer: []string{}})
	}
	for _, s := range append([]string{b.api.Cookie}, op.Schemes...) {
		out = append(out, Schema{s: []string{}})
	}
	if op.Anonymous {
		out = append(out, Schema{})
	}
	return out
}

// content is a body or an answer.
func (b *builder) content(v any, example, id string, input bool) (Schema, error) {
	if m, ok := v.(Media); ok {
		out := Schema{}
		for media, s := range m {
			out[media] = Schema{"schema": s}
		}
		return out, nil
	}
	var s Schema
	var err error
	if o, ok := v.(Object); ok {
		// What is one operation's own is a component all the same: programs that
		// write clients name their types by it.
		name := strings.ToUpper(id[:1]) + id[1:] + "Answer"
		b.schemas[name], err = b.object(name, o)
		s = Ref(name)
	} else {
		s, err = b.schema(reflect.TypeOf(v), input)
	}
	if err != nil {
		return nil, err
	}
	m := Schema{"schema": s}
	if example != "" {
		if !json.Valid([]byte(example)) {
			return nil, fmt.Errorf("the example is not JSON: %s", example)
		}
		m["example"] = json.RawMessage(example)
	}
	return Schema{"application/json": m}, nil
}

// pathNames are the parameters of a path, in order.
func pathNames(path string) []string {
	var out []string
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			out = append(out, strings.TrimSuffix(name, "}"))
		}
	}
	return out
}

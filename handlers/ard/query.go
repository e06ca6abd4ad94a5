package ard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

// A query is the common part of search and explore, §5.3.1: a text and constraints on terms of
// entries. Values of one term are alternatives, terms must all hold.

// Bounds of the constraints in a query.
const (
	maxTerms      = 20
	maxValues     = 50
	maxValueBytes = 200
)

// terms maps the supported constraints to fields of hub.Query. The value is nil for a term that has the
// same value in all entries of this portal.
var terms = map[string]func(q *hub.Query) *[]string{
	"type":               nil,
	"publisher":          nil,
	attestations:         nil,
	"tags":               func(q *hub.Query) *[]string { return &q.Tags },
	"capabilities":       func(q *hub.Query) *[]string { return &q.Skills },
	"metadata.kind":      func(q *hub.Query) *[]string { return &q.Kinds },
	"metadata.liveness":  func(q *hub.Query) *[]string { return &q.Live },
	"metadata.proof":     func(q *hub.Query) *[]string { return &q.Proofs },
	"metadata.publisher": func(q *hub.Query) *[]string { return &q.Publishers },
}

// attestations is the term of ARD's own example (§5.3.1). No entry of this portal has any.
const attestations = "trustManifest.attestations.type"

func knownTerms() string { return strings.Join(slices.Sorted(maps.Keys(terms)), ", ") }

// states are the valid values of the terms that the hub checks: other values match nothing.
var states = map[string][]string{
	"metadata.liveness": {string(hub.Alive), string(hub.NeedsAuth), string(hub.WrongProtocol), string(hub.Unreachable),
		string(hub.Unknown)},
	"metadata.proof": {hub.Hosted, hub.Proved, hub.Claimed, hub.Unproven},
}

// query is a hub.Query under construction, with the constraints that the hub does not know.
type query struct {
	hub.Query
	seen map[string]bool
	// card is the media type that all entries must have, "" for any.
	card string
	// publishers are the requested publishers, nil for all.
	publishers []string
	// nothing is true if a constraint holds for no entry of this portal. The result is empty then, and no
	// error.
	nothing bool
}

// addConstraint restricts q to entries in which the term has one of the values. An unknown or repeated
// term is an error, with path as its field; an unknown value matches nothing.
func (d *Handler) addConstraint(q *query, term, path string, values []string) error {
	field, known := terms[term]
	if !known {
		return wrong(path, "is not a term this registry filters by; it knows %s", knownTerms())
	}
	if q.seen[term] {
		return wrong(path, "is a term that is already filtered by; give all values at once")
	}
	if q.seen == nil {
		q.seen = make(map[string]bool)
	}
	q.seen[term] = true
	switch term {
	case "type":
		agents, servers := containsFold(values, cardType), containsFold(values, serverType)
		switch {
		case !agents && !servers:
			q.nothing = true
		case !servers:
			q.card = cardType
		case !agents:
			q.card = serverType
		}
		return nil
	case attestations:
		q.nothing = true
		return nil
	case "publisher":
		q.publishers = values
		return nil
	}
	if may, checked := states[term]; checked {
		values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(may, v) })
		q.nothing = q.nothing || len(values) == 0
	}
	*field(&q.Query) = values
	return nil
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(v string) bool { return strings.EqualFold(v, s) })
}

// finish returns the query for the hub. A query without possible results is still sent, so that
// permissions and bounds are checked.
func (q *query) finish() hub.Query {
	if q.nothing {
		q.Kinds = []string{""} // no agent has the kind ""
	}
	return q.Query
}

// decodeQuery decodes the query of a request. All members are optional, except the text if needsText is
// true.
func (d *Handler) decodeQuery(raw json.RawMessage, needsText bool) (*query, error) {
	q := new(query)
	o, err := parseObject(raw, "query")
	if err != nil {
		return nil, err
	}
	if q.Text, err = o.textMember("text", "query.text"); err != nil {
		return nil, err
	}
	q.Text = strings.TrimSpace(q.Text)
	switch {
	case needsText && q.Text == "":
		return nil, wrong("query.text", "describe the task for the agent in words")
	case len(q.Text) > maxTextBytes:
		return nil, wrong("query.text", "use at most %d bytes", maxTextBytes)
	}
	if !o.has("filter") {
		return q, nil
	}
	var bound bindings
	if o.has("@context") {
		if bound, err = decodeContext(o["@context"]); err != nil {
			return nil, err
		}
	}
	filter, err := parseObject(o["filter"], "query.filter")
	if err != nil {
		return nil, err
	}
	if len(filter) > maxTerms {
		return nil, wrong("query.filter", "holds %d terms; use at most %d", len(filter), maxTerms)
	}
	// sorted, so that the same input always gives the same error
	for _, key := range slices.Sorted(maps.Keys(filter)) {
		path := "query.filter." + cutText(key, 80)
		values, err := valuesOf(filter[key], path)
		if err != nil {
			return nil, err
		}
		if err := d.addConstraint(q, bound.plainTerm(key), path, values); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// valuesOf returns the values of a constraint, which is a string or an array of strings.
func valuesOf(raw json.RawMessage, path string) ([]string, error) {
	list := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		var err error
		if list, err = listOf(raw, path, maxValues); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, one := range list {
		s, err := textOf(one, path)
		if err != nil {
			return nil, err
		}
		if s = strings.TrimSpace(s); s == "" || len(s) > maxValueBytes {
			return nil, wrong(path, "values are text of 1 to %d bytes", maxValueBytes)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, wrong(path, "give at least one value, or leave the term out")
	}
	return out, nil
}

// namespace is the IRI prefix of ARD's terms, §4.1.
const namespace = "https://agenticresourcediscovery.org/ns#"

// bindings maps the prefixes and terms of a query's @context to IRIs. Contexts that are given as an
// address are not fetched, so their terms stay unknown.
type bindings map[string]string

// maxBindings bounds the mappings in one @context.
const maxBindings = 50

func decodeContext(raw json.RawMessage) (bindings, error) {
	const path = "query.@context"
	list := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		var err error
		if list, err = listOf(raw, path, 10); err != nil {
			return nil, err
		}
	}
	bound := make(bindings)
	for _, one := range list {
		if len(one) > 0 && one[0] == '"' {
			continue // an address of a context, which is not fetched
		}
		o, err := parseObject(one, path)
		if err != nil {
			return nil, err
		}
		for term, raw := range o {
			var iri string
			if json.Unmarshal(raw, &iri) != nil {
				var long struct {
					ID string `json:"@id"`
				}
				if json.Unmarshal(raw, &long) != nil {
					return nil, fault.New(fault.Invalid, "%s: binds %q to neither an IRI nor an object with @id", path,
						cutText(term, 80))
				}
				iri = long.ID
			}
			bound[term] = iri
		}
	}
	if len(bound) > maxBindings {
		return nil, wrong(path, "binds %d terms; use at most %d", len(bound), maxBindings)
	}
	return bound, nil
}

// plainTerm returns the plain name of an ARD term for a filter's key, or the key itself for other terms.
// Only the part before the first dot is resolved; the rest is a path into the value.
func (c bindings) plainTerm(key string) string {
	if plain, ok := strings.CutPrefix(key, namespace); ok {
		return plain
	}
	first, rest, dotted := strings.Cut(key, ".")
	iri, ok := c[first]
	if !ok {
		prefix, local, cut := strings.Cut(first, ":")
		iri, ok = c[prefix]
		if !cut || !ok {
			return key
		}
		iri += local
	}
	plain, ours := strings.CutPrefix(iri, namespace)
	switch {
	case !ours:
		// a term of another vocabulary, which no entry of this portal has; the full IRI matches nothing
		return iri
	case dotted:
		return plain + "." + rest
	}
	return plain
}

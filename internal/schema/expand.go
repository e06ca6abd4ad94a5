package schema

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The supported keywords, grouped by the JSON type of their value. All others are dropped, so that
// the validator never sees a reference, an anchor or a keyword of another draft.
var (
	schemaKeywords = []string{"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"}
	listKeywords   = []string{"prefixItems", "allOf", "anyOf", "oneOf"}
	mapKeywords    = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
	countKeywords  = []string{"minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains",
		"minProperties", "maxProperties"}
	numberKeywords = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	textKeywords   = []string{"title", "description", "format", "contentMediaType", "contentEncoding"}
	types          = []string{"string", "number", "integer", "boolean", "array", "object", "null"}
)

const (
	maxRefs    = 16  // depth of references inside references
	maxPattern = 512 // bytes of a regular expression
	maxEnum    = 1000
	maxCount   = 1 << 30
)

// expander rewrites a schema into one without references: a tree of supported keywords with a
// bounded number of nodes. A part that it drops accepts every value.
type expander struct {
	root  *object
	nodes int
	open  []*object // targets of the references that are being followed, to detect cycles
}

// expandSchema returns the expanded schema of v and whether it is equivalent to v. A dropped
// keyword makes a schema accept more values. Inside not, oneOf and if, that would make the outer
// schema accept fewer, so the caller drops these too when the result is not equivalent.
func (e *expander) expandSchema(v any, depth int) (any, bool) {
	e.nodes++
	if b, ok := v.(bool); ok {
		return b, true
	}
	in, ok := v.(*object)
	if !ok || e.nodes > maxNodes || depth > maxDepth {
		return true, false
	}
	out, exact := newObject(), true
	if ref, ok := in.get("$ref").(string); ok {
		target := e.lookupRef(ref)
		if target == nil || slices.Contains(e.open, target) || len(e.open) >= maxRefs {
			exact = false
		} else {
			e.open = append(e.open, target)
			to, ok := e.expandSchema(target, depth+1)
			e.open = e.open[:len(e.open)-1]
			exact = ok
			if t, isObject := to.(*object); isObject {
				out = t
			} else if to == false {
				return false, exact
			}
		}
	}
	for _, k := range in.keys {
		if k == "$ref" {
			continue
		}
		val, keep, ok := e.expandKeyword(k, in.m[k], in, depth)
		exact = exact && ok
		if !keep {
			continue
		}
		if _, dup := out.m[k]; dup && !slices.Contains(textKeywords, k) && k != "default" && k != "examples" {
			// The keyword is in both the schema and the target of its $ref. Both constraints apply,
			// so the second becomes an allOf.
			both := newObject()
			both.put(k, val)
			out.put("allOf", append(slices.Clone(out.list("allOf")), both))
			continue
		}
		out.put(k, val)
	}
	// In draft 7 items may be a list; 2020-12 calls it prefixItems.
	if list, ok := out.get("items").([]any); ok {
		out.put("prefixItems", list)
		delete(out.m, "items")
		out.keys = slices.DeleteFunc(out.keys, func(k string) bool { return k == "items" })
	}
	return out, exact
}

// expandKeyword returns the expanded value of one keyword, whether to keep the keyword, and whether
// the result is equivalent.
func (e *expander) expandKeyword(k string, v any, in *object, depth int) (val any, keep, exact bool) {
	switch {
	case k == "items" && isList(v):
		l, ok := e.expandList(v.([]any), depth)
		return l, true, ok
	case k == "additionalProperties" && lostPattern(in.object("patternProperties")):
		// A pattern was dropped, so its properties would be refused as additional ones.
		return nil, false, false
	case slices.Contains(schemaKeywords, k):
		s, ok := e.expandSchema(v, depth+1)
		if !ok && (k == "not" || k == "if" || k == "then" || k == "else" || k == "contains") {
			return nil, false, false
		}
		if (k == "then" || k == "else") && !e.isExact(in.get("if"), depth) {
			return nil, false, false
		}
		return s, true, ok
	case slices.Contains(listKeywords, k):
		list, isL := v.([]any)
		if !isL || len(list) == 0 {
			return nil, false, false
		}
		l, ok := e.expandList(list, depth)
		return l, ok || k != "oneOf", ok
	case k == "$defs" || k == "definitions":
		return nil, false, true
	case slices.Contains(mapKeywords, k):
		m, isM := v.(*object)
		if !isM {
			return nil, false, false
		}
		out, exact := newObject(), true
		for _, name := range m.keys {
			if k == "patternProperties" && !usablePattern(name) {
				exact = false
				continue
			}
			s, ok := e.expandSchema(m.m[name], depth+1)
			out.put(name, s)
			exact = exact && ok
		}
		return out, true, exact
	}
	return e.keepPlain(k, v)
}

// keepPlain checks the value of a keyword that contains no schema, with the same results as
// expandKeyword.
func (e *expander) keepPlain(k string, v any) (val any, keep, exact bool) {
	switch {
	case slices.Contains(textKeywords, k):
		s, ok := v.(string)
		return s, ok, true
	case k == "default" || k == "examples" || k == "const":
		return v, true, true
	case k == "enum":
		list, ok := v.([]any)
		ok = ok && len(list) > 0 && len(list) <= maxEnum
		e.nodes += len(list) / 8
		return list, ok, ok
	case slices.Contains(countKeywords, k):
		n, ok := v.(json.Number)
		f, err := n.Float64()
		ok = ok && err == nil && f >= 0 && f <= maxCount && f == float64(int64(f))
		return json.Number(strconv.FormatInt(int64(f), 10)), ok, ok
	case slices.Contains(numberKeywords, k):
		n, ok := v.(json.Number)
		f, err := n.Float64()
		// Fractional steps are dropped: in floating point 0.3 is no multiple of 0.1.
		ok = ok && err == nil && (k != "multipleOf" || f >= 1 && f == math.Trunc(f))
		return n, ok, ok
	case k == "uniqueItems":
		b, ok := v.(bool)
		return b, ok, ok
	case k == "pattern":
		s, ok := v.(string)
		ok = ok && usablePattern(s)
		return s, ok, ok
	case k == "type":
		if s, ok := v.(string); ok {
			ok = slices.Contains(types, s)
			return s, ok, ok
		}
		list, ok := v.([]any)
		for _, t := range list {
			s, isS := t.(string)
			ok = ok && isS && slices.Contains(types, s)
		}
		ok = ok && len(list) > 0
		return list, ok, ok
	case k == "required":
		var names []any
		list, ok := v.([]any)
		for _, n := range list {
			if _, isS := n.(string); isS {
				names = append(names, n)
			}
		}
		return names, ok && len(names) > 0, true
	case k == "dependentRequired":
		m, ok := v.(*object)
		if !ok {
			return nil, false, false
		}
		for _, name := range m.keys {
			list, isL := m.m[name].([]any)
			if !isL || slices.ContainsFunc(list, func(n any) bool { _, isS := n.(string); return !isS }) {
				return nil, false, false
			}
		}
		return m, true, true
	case k == "unevaluatedProperties", k == "unevaluatedItems", k == "$dynamicRef", k == "dependencies",
		k == "additionalItems":
		return nil, false, false
	}
	return nil, false, true // unknown keywords are annotations and constrain nothing
}

// isExact reports whether the expansion of v is equivalent to v. It expands v again for that.
func (e *expander) isExact(v any, depth int) bool {
	if v == nil {
		return true
	}
	_, ok := e.expandSchema(v, depth+1)
	return ok
}

func (e *expander) expandList(list []any, depth int) ([]any, bool) {
	out, exact := make([]any, 0, len(list)), true
	for _, v := range list {
		s, ok := e.expandSchema(v, depth+1)
		out = append(out, s)
		exact = exact && ok
	}
	return out, exact
}

func lostPattern(patterns *object) bool {
	return patterns != nil && slices.ContainsFunc(patterns.keys, func(p string) bool { return !usablePattern(p) })
}

func isList(v any) bool { _, ok := v.([]any); return ok }

// usablePattern reports whether a pattern compiles as one of Go's linear-time regular expressions,
// which have no look-around and no back references.
func usablePattern(pattern string) bool {
	if len(pattern) > maxPattern {
		return false
	}
	_, err := regexp.Compile(pattern)
	return err == nil
}

// lookupRef returns the target of a reference inside the schema, a JSON pointer (RFC 6901); nil for
// any other reference.
func (e *expander) lookupRef(ref string) *object {
	if ref == "#" {
		return e.root
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	var at any = e.root
	for step := range strings.SplitSeq(path, "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case *object:
			at = v.m[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	o, _ := at.(*object)
	return o
}

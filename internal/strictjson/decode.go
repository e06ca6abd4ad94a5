package strictjson

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// UnknownError reports a member of an object that the Go type has no field for.
type UnknownError struct {
	// Place is the member's path, for example parts[0].colour, and Name its last name. Both are cut, because
	// the sender chose them.
	Place, Name string
	// Fields are the names that the object may have, in the order of the Go type.
	Fields []string
}

// Error implements error.
func (e *UnknownError) Error() string { return e.Place + ": " + e.Advice() }

// Advice continues a sentence that begins with the name of the field.
func (e *UnknownError) Advice() string {
	if near := nearest(e.Name, e.Fields); near != "" {
		return "is not a field here; did you mean " + near + "?"
	}
	if len(e.Fields) == 0 || len(e.Fields) > maxListed {
		return "is not a field here; is it misspelt?"
	}
	return "is not a field here; the fields are " + strings.Join(e.Fields, ", ")
}

// TypeError reports a value of a type that its field does not have.
type TypeError struct {
	Place string // the path of the value, "" for the whole text
	Kind  string // the type of the value: object, array, string, number, boolean or null
}

// Error implements error.
func (e *TypeError) Error() string { return e.Place + ": has the wrong type, " + e.Kind }

const (
	maxListed    = 12 // names in a message
	maxPlaceName = 80 // bytes of one name in a place
	maxPlace     = 200
)

// Decode decodes b, which must have passed Check, into v as encoding/json does, except that an object
// may only have members that v has fields for, spelled exactly like them. A misspelt field would be lost
// and {"scopes":["x"],"Scopes":null} would mean something else to each reader. Other errors than
// *UnknownError and *TypeError come from methods of v.
func Decode(b []byte, v any) error {
	err := json.Unmarshal(b, v, jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false),
		json.MatchCaseInsensitiveNames(false), json.RejectUnknownMembers(true))
	e, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(e.Err, json.ErrUnknownName):
		name := cut(e.JSONPointer.LastToken(), maxPlaceName)
		return &UnknownError{Place: Place(e.JSONPointer), Name: name, Fields: fieldNames(e.GoType)}
	case e.Err != nil && !isConversion(e.Err):
		return e.Err
	}
	return &TypeError{Place: Place(e.JSONPointer), Kind: kindName(e.JSONKind)}
}

// isConversion reports whether err is about a number, or base64, that the Go type cannot hold. All other
// causes come from methods.
func isConversion(err error) bool {
	_, number := errors.AsType[*strconv.NumError](err)
	return number || errors.Is(err, strconv.ErrRange) || errors.Is(err, strconv.ErrSyntax)
}

// Place returns a path in the form in which messages name fields, for example remotes[0].url.
func Place(at jsontext.Pointer) string {
	var b strings.Builder
	for name := range at.Tokens() {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			b.WriteString("[" + name + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(cut(name, maxPlaceName))
	}
	return cut(b.String(), maxPlace)
}

// cut returns at most n bytes of valid UTF-8.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	}
	return k.String()
}

// fieldNames returns the names of the JSON members of a struct type, also those of embedded structs.
func fieldNames(t reflect.Type) []string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, fieldNames(f.Type)...)
		case name != "-" && f.IsExported():
			if name == "" {
				name = f.Name
			}
			names = append(names, name)
		}
	}
	return names
}

// nearest returns the name that a person may have meant by a misspelt one, "" if none is close: it differs in case and
// hyphens only, one begins with the other, or one letter differs, two of a name of five letters or more.
func nearest(name string, names []string) string {
	plain := func(s string) string {
		return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
	}
	p, best := plain(name), ""
	least := 2 + min(len(name)/5, 1) // one letter more than may differ
	for _, n := range names {
		q := plain(n)
		if p == q {
			return n
		}
		d := editDistance(p, q)
		if len(p) >= 3 && len(q) >= 3 && (strings.HasPrefix(p, q) || strings.HasPrefix(q, p)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// editDistance returns the number of bytes to insert, delete or replace to turn a into b. Both are short.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

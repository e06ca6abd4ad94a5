package openapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type colour string

type legJSON struct {
	Length int64 `json:"length"`
}

type animalJSON struct {
	Name   string          `json:"name"`
	Colour colour          `json:"colour"`
	Legs   []legJSON       `json:"legs"`
	Tail   *legJSON        `json:"tail,omitempty"`
	Photo  []byte          `json:"photo,omitempty"`
	More   json.RawMessage `json:"more,omitempty"`
	_      int
}

type catJSON struct {
	animalJSON
	Name  string             `json:"name"`
	Lives map[string]float64 `json:"lives,omitempty"`
}

type nameBody struct {
	Name *string `json:"name"`
	Leg  legJSON `json:"leg"`
}

type problemJSON struct {
	Text string `json:"text"`
}

func zoo() API {
	return API{Info: Schema{"title": "zoo", "version": "1"}, Server: "http://zoo.test", Tags: []Tag{{"animals", "All of them."}},
		Bearer: "token", Cookie: "session", Error: problemJSON{},
		Enums:      map[reflect.Type]Schema{reflect.TypeFor[colour](): {"type": "string", "enum": []string{"red"}}},
		Fields:     map[string]Schema{"Animal.name": {"maxLength": 9}, "*.length": {"description": "In metres."}},
		Required:   map[string][]string{"NameInput": {"name"}},
		Parameters: map[string]Parameter{"id": {Text: "Which one.", Schema: Schema{"type": "string"}}},
		Operations: []Operation{
			{Method: "GET", Path: "/cats/{id}", ID: "getCat", Tag: "animals", Summary: "Look at a cat", Scopes: []string{"look", "feed"}, Anonymous: true,
				Answers: map[int]Answer{http.StatusOK: {Text: "The cat.", JSON: catJSON{}}}},
			{Method: "PUT", Path: "/cats/{id}", ID: "nameCat", Tag: "animals", Summary: "Name a cat", Body: nameBody{}, Conflict: true,
				Answers: map[int]Answer{http.StatusOK: {Text: "The animal.", JSON: Object{"animal": animalJSON{}, "was?": ""}}}},
		}}
}

// decoded is the document as its readers get it.
func decoded(t *testing.T, a API) (v struct {
	Paths      map[string]map[string]map[string]any
	Components struct{ Schemas map[string]map[string]any }
}) {
	t.Helper()
	b, err := a.Document()
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDocument_SchemasAreWhatIsEncoded(t *testing.T) {
	all := decoded(t, zoo()).Components.Schemas
	leg := func(name string) any { return map[string]any{"$ref": "#/components/schemas/" + name} }
	for name, want := range map[string]map[string]any{
		"Colour": {"type": "string", "enum": []any{"red"}},
		"Leg": {"type": "object", "required": []any{"length"}, "properties": map[string]any{
			"length": map[string]any{"type": "integer", "format": "int64", "minimum": 0.0, "description": "In metres."}}},
		// Of an embedded type the outer name counts, as in package json.
		"Cat": {"type": "object", "required": []any{"name", "colour", "legs"}, "properties": map[string]any{
			"name": map[string]any{"type": "string"}, "colour": leg("Colour"), "legs": map[string]any{"type": "array", "items": leg("Leg")}, "tail": leg("Leg"),
			"photo": map[string]any{"type": "string", "contentEncoding": "base64"}, "more": map[string]any{},
			"lives": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "number"}}}},
		// What is sent may leave out what it need not have.
		"NameInput": {"type": "object", "required": []any{"name"}, "properties": map[string]any{"name": map[string]any{"type": "string"}, "leg": leg("LegInput")}},
		"LegInput": {"type": "object", "properties": map[string]any{
			"length": map[string]any{"type": "integer", "format": "int64", "minimum": 0.0, "description": "In metres."}}},
		"NameCatAnswer": {"type": "object", "required": []any{"animal"}, "properties": map[string]any{"animal": leg("Animal"), "was": map[string]any{"type": "string"}}},
	} {
		if diff := cmp.Diff(want, all[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDocument_EachScopeAloneIsEnough(t *testing.T) {
	paths := decoded(t, zoo()).Paths
	for method, want := range map[string][]any{
		"get": {map[string]any{"token": []any{"look"}}, map[string]any{"token": []any{"feed"}}, map[string]any{"session": []any{}}, map[string]any{}},
		"put": {map[string]any{"token": []any{}}, map[string]any{"session": []any{}}},
	} {
		if diff := cmp.Diff(any(want), paths["/cats/{id}"][method]["security"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
	for method, want := range map[string]bool{"get": false, "put": true} {
		if _, got := paths["/cats/{id}"][method]["responses"].(map[string]any)["409"]; got != want {
			t.Errorf("%s answers 409: %v", method, got)
		}
	}
}

func TestDocument_MistakesAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*API)
		want  string
	}{
		"an operation twice":      {func(a *API) { a.Operations = append(a.Operations, a.Operations[0]) }, "declared twice"},
		"an id twice":             {func(a *API) { a.Operations[1].ID = "getCat" }, "declared twice"},
		"a text of no field":      {func(a *API) { a.Fields["Animal.wings"] = Schema{} }, "Animal.wings"},
		"a needed field of none":  {func(a *API) { a.Required["NameInput"] = []string{"title"} }, "title"},
		"an unknown tag":          {func(a *API) { a.Operations[0].Tag = "plants" }, "plants"},
		"an unknown parameter":    {func(a *API) { a.Operations[0].Query = []string{"size"} }, "size"},
		"a parameter of nothing":  {func(a *API) { a.Parameters["size"] = Parameter{} }, "size"},
		"an example that is none": {func(a *API) { a.Operations[1].Example = "{" }, "example"},
		"a type without a schema": {func(a *API) { a.Operations[1].Body = make(chan int) }, "chan int"},
		"two types of one name":   {func(a *API) { a.Names = map[reflect.Type]string{reflect.TypeFor[legJSON](): "Cat"} }, "both Cat"},
	} {
		a := zoo()
		c.spoil(&a)
		if _, err := a.Document(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/strictjson"
)

type inner struct {
	Colour string `json:"colour"`
	Size   int8   `json:"size"`
}

type shared struct {
	Title string `json:"title"`
}

// picky has a method that refuses its value.
type picky string

func (p *picky) UnmarshalJSON([]byte) error { return fault.Field("picky", "is refused") }

type body struct {
	shared
	Scopes   []string                   `json:"scopes"`
	ClientID string                     `json:"client_id"`
	Parts    []inner                    `json:"parts"`
	Free     map[string]json.RawMessage `json:"free"`
	Picture  *[]byte                    `json:"picture"`
	Picky    picky                      `json:"picky"`
	Hidden   string                     `json:"-"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"scopes":["a"],"title":"t","parts":[{"colour":"red"}],"free":{"any":{"thing":1}},"picture":"aGk="}`: "",
		`{"scopes":null,"parts":null,"picture":null}`:                                                         "",
		`{"scope":["a"]}`:                        "scope: is not a field here; did you mean scopes?",
		`{"Scopes":["a"]}`:                       "Scopes: is not a field here; did you mean scopes?",
		`{"clientId":"1"}`:                       "clientId: is not a field here; did you mean client_id?",
		`{"titel":"1"}`:                          "titel: is not a field here; did you mean title?",
		`{"part":[]}`:                            "part: is not a field here; did you mean parts?",
		`{"unheard":1}`:                          "unheard: is not a field here; the fields are title, scopes, client_id, parts, free, picture, picky",
		`{"Hidden":"1"}`:                         "Hidden: is not a field here; the fields are title, scopes, client_id, parts, free, picture, picky",
		`{"":1}`:                                 ": is not a field here; the fields are title, scopes, client_id, parts, free, picture, picky",
		`{"parts":[{},{"color":1}]}`:             "parts[1].color: is not a field here; did you mean colour?",
		`{"parts":{"0":1}}`:                      "parts: has the wrong type, object",
		`{"parts":[{"size":300}]}`:               "parts[0].size: has the wrong type, number",
		`{"parts":[{"size":1.5}]}`:               "parts[0].size: has the wrong type, number",
		`{"title":true}`:                         "title: has the wrong type, boolean",
		`[]`:                                     ": has the wrong type, array",
		`{"picky":1}`:                            "invalid: picky: is refused; picky: is refused",
		`{"` + strings.Repeat("x", 500) + `":1}`: strings.Repeat("x", 80) + "…: is not a field here; the fields are title, scopes, client_id, parts, free, picture, picky",
	} {
		var got body
		err := strictjson.Decode([]byte(text), &got)
		if said := message(err); said != want {
			t.Errorf("%.60s: %q, want %q", text, said, want)
		}
		if want == "" && strings.Contains(text, "red") && (got.Parts[0].Colour != "red" || got.Title != "t" || string(*got.Picture) != "hi" || len(got.Free) != 1) {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
	if err := strictjson.Decode([]byte(`{"picture":"%%%"}`), new(body)); err == nil {
		t.Error("a picture that is no base64 is accepted")
	}
	if err := strictjson.Decode([]byte(`{"picky":1}`), new(body)); !fault.Is(err, fault.Invalid) || errors.As(err, new(*strictjson.TypeError)) {
		t.Errorf("the error of a method is lost: %v", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

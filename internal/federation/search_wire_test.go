package federation_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"agentsite/internal/federation"
)

func TestSearchAnswer_IsWrittenAndReadAsJSON(t *testing.T) {
	t.Parallel()
	for _, a := range []federation.SearchAnswer{
		{Head: json.RawMessage(`{"a":"}\"{"}`), Results: []federation.Hit{}},
		{Head: json.RawMessage(`{}`), Total: 30, Results: []federation.Hit{
			{Record: json.RawMessage(`{"p":"\\","q":{"x":[{}]}}`), Proof: json.RawMessage(`{"k":{}}`), Score: 1e-9},
			{Record: json.RawMessage(`{"s":"]}"}`), Proof: json.RawMessage(`{}`), Score: -12.25}}},
		{Head: json.RawMessage(`{}`), Results: []federation.Hit{}, Heads: []federation.Told{{Card: json.RawMessage(`{"c":"}"}`), Head: json.RawMessage(`{"h":1}`)}}},
		{Head: json.RawMessage(`{}`), Total: 1, Results: []federation.Hit{{Record: json.RawMessage(`{"r":1}`), Proof: json.RawMessage(`{}`), Score: 2}},
			Heads: []federation.Told{{Card: json.RawMessage(`{"c":1}`), Head: json.RawMessage(`{"h":1}`)}, {Card: json.RawMessage(`{"c":2}`), Head: json.RawMessage(`{"h":2}`)}}},
	} {
		wire := a.Append(nil)
		var plain federation.SearchAnswer
		if err := json.Unmarshal(wire, &plain); err != nil || !reflect.DeepEqual(plain, a) {
			t.Errorf("%s is read as %+v (%v)", wire, plain, err)
		}
		if got, err := federation.ParseSearchAnswer(wire); err != nil || !reflect.DeepEqual(*got, a) {
			t.Errorf("%s: %+v (%v)", wire, got, err)
		}
		// Others write it in other ways.
		spaced, err := json.MarshalIndent(a, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := federation.ParseSearchAnswer(spaced); err != nil || got.Total != a.Total || len(got.Results) != len(a.Results) || len(got.Heads) != len(a.Heads) {
			t.Errorf("%s: %+v (%v)", spaced, got, err)
		}
	}
	told := `{"card":{},"head":{}}`
	hit := `{"record":{},"proof":{},"score":1}`
	for _, bad := range []string{"", "{", `{"head":`, `{"head":{`, `{"head":{"a`, `{"head":{},"total":1,"results":[`, `{"head":{},"total":1,"results":[` + hit,
		`{"head":{},"total":1.5,"results":[]}`, `{"head":{},"total":1,"results":[]}x`,
		`{"head":{},"total":1,"results":[` + strings.TrimSuffix(strings.Repeat(hit+",", federation.MaxFound+1), ",") + `]}`,
		`{"head":{},"total":0,"results":[],"heads":[` + strings.TrimSuffix(strings.Repeat(told+",", federation.MaxFound+1), ",") + `]}`,
		`{"head":{},"total":0,"results":[],"heads":[` + told, `{"head":{},"total":0,"results":[],"heads":[` + told + `]`} {
		if a, err := federation.ParseSearchAnswer([]byte(bad)); err == nil {
			t.Errorf("%.80s is read as %+v", bad, a)
		}
	}
}

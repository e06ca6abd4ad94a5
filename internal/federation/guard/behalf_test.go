package guard

import (
	"agentsite/internal/federation"
	"strings"
	"testing"
)

func TestParseFor(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]OnBehalfOf{
		"": {},
		`kind=person, id="abc", handle="ada@a.example"`: {Kind: "person", ID: "abc", Handle: "ada@a.example"},
		`handle="a\"b\\c",id="x" ,  kind=guest, more=1`: {Kind: "guest", ID: "x", Handle: `a"b\c`},
		`kind=person, id="a,b=c", handle="x"`:           {Kind: "person", ID: "a,b=c", Handle: "x"},
		`kind=person, id="x", handle="y", words=own`:    {Kind: "person", ID: "x", Handle: "y", Own: true},
		`kind=person, id="x", handle="y", words=mine`:   {Kind: "person", ID: "x", Handle: "y"},
	} {
		if got, err := ParseOnBehalfOf(in); err != nil || got != want {
			t.Errorf("%q: %+v %v", in, got, err)
		}
	}
	for _, bad := range []string{"kind", "kind=person", `id="x"`, `kind=operator, id="x"`, `kind=person, id=""`, `kind=person, id="x`, `kind=person, id="x" handle="y"`,
		`kind=person, id="x", id="y"`, "kind=person, id=\"x\ny\"", `kind=person, id="ä"`, `kind=person, id="` + strings.Repeat("x", 201) + `"`, `kind=person, id="x",`,
		`kind=person, id="x", handle="` + strings.Repeat("y", 1<<10) + `"`, `kind=person, id="x\`, `=`, `,`} {
		got, err := ParseOnBehalfOf(bad)
		if err == nil {
			t.Errorf("%.60q: %+v", bad, got)
		} else if federation.RefusalOf(err).Reason != federation.ReasonMalformed {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
}

func FuzzParseFor(f *testing.F) {
	f.Add(`kind=person, id="abc", handle="ada@a.example"`)
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := ParseOnBehalfOf(s); err == nil && b != (OnBehalfOf{}) && (b.ID == "" || len(b.ID) > 200 || strings.ContainsAny(b.ID+b.Handle, "\n\x00")) {
			t.Fatalf("%q: %+v", s, b)
		}
	})
}

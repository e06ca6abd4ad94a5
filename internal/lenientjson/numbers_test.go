package lenientjson

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNumberReader(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "7": "7", "NaN": "null", "-Infinity": "null", "[Infinity,NaN,-1]": "[null,null,-1]",
		`{"NaN":"NaN, -Infinity"}`: `{"NaN":"NaN, -Infinity"}`, `{"a":"\\\"NaN","b":NaN}`: `{"a":"\\\"NaN","b":null}`,
		`{"a":"\\\\","b":NaN}`: `{"a":"\\\\","b":null}`, "Na": "Na", "-": "-", "[-5,Inf": "[-5,Inf", "null": "null",
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(in), "in bytes": iotest.OneByteReader(strings.NewReader(in))} {
			got, err := io.ReadAll(&NumberReader{R: r})
			if err != nil || string(got) != want {
				t.Errorf("%s %q: %q, want %q, %v", name, in, got, want, err)
			}
		}
	}
	var v struct {
		A *float64
		B string
	}
	if err := Decode([]byte(`{"A":NaN,"B":"NaN"}`), &v); err != nil || v.A != nil || v.B != "NaN" {
		t.Errorf("%+v %v", v, err)
	}
	if err := Decode([]byte(`{"A":Nan}`), &v); err == nil {
		t.Error("Nan is taken")
	}
}

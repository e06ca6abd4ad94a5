package lenientjson

import "testing"

func TestForms_Mend(t *testing.T) {
	f := Forms{Objects: []string{"metadata", "params"}, Texts: []string{"id"}, Lists: []string{"parts"}, Opaque: []string{"data"}}
	for in, want := range map[string]string{
		`{"params":[]}`:                     `{"params":{}}`,
		`{"params":[ ]}`:                    `{"params":{}}`,
		`{"params":[1]}`:                    `{"params":[1]}`,
		`{"params":{"metadata":[],"id":7}}`: `{"params":{"id":"7","metadata":{}}}`,
		`{"list":[{"metadata":[]},[]]}`:     `{"list":[{"metadata":{}},[]]}`,
		`{"data":{"metadata":[],"id":7}}`:   `{"data":{"metadata":[],"id":7}}`,
		`{"id":-1.5,"other":7,"x":[]}`:      `{"id":"-1.5","other":7,"x":[]}`,
		`{"parts":{"id":7}}`:                `{"parts":[{"id":"7"}]}`,
		`{"parts":"a"}`:                     `{"parts":["a"]}`,
		`{"parts":""}`:                      `{"parts":[]}`,
		`{"parts":{ }}`:                     `{"parts":[]}`,
		`{"parts":null}`:                    `{"parts":null}`,
		`{"parts":[{"id":7}]}`:              `{"parts":[{"id":"7"}]}`,
		`{"id":null,"metadata":null}`:       `{"id":null,"metadata":null}`,
		``:                                  ``, `nope`: `nope`, `{`: `{`, `"a"`: `"a"`,
	} {
		if got := string(f.Mend([]byte(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

package record

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// sameRead compares readAgent with encoding/json on a payload, and reports
// whether it is read.
func sameRead(t *testing.T, payload []byte) bool {
	t.Helper()
	if Canonical(payload) != nil {
		return false
	}
	var a, b Agent
	err := json.Unmarshal(payload, &b)
	ok := readAgent(&a, payload)
	if ok != (err == nil) {
		t.Errorf("%s: %v, json says %v", payload, ok, err)
	} else if ok && !reflect.DeepEqual(a, b) {
		t.Errorf("%s is read as\n%+v, by json as\n%+v", payload, a, b)
	}
	return ok
}

// complete is a payload with every member there is.
const complete = `{"agent_pub":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","agent_sig":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",` +
	`"caps":["a","b/c"],"card_sha256":"AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","card_url":"https://a.example/c","created":1,"deleted":true,"description":"Zwei\nZeilen \"é\" \\ \u0001\t",` +
	`"endpoints":[{"protocol":"a2a","url":"https://a.example/x"},{"new":[{}],"protocol":"mcp","url":"u"}],"epoch":2,"exp":3,"future":{"a":[1,true,"\\"],"b":false},"id":"x","inputs":["text/plain"],"iss":4,` +
	`"kind":"k","languages":["de"],"name":"n","outputs":[],"owner":"o","package":{"entry":"run","grants":[{"name":"find","new":1,"why":"w"},{}],"licence":"MIT","memory_mib":1,"module":"AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","new":[],"readme":"# R","seconds":2,"size":3,"state":"killed","version":"1.0.0"},"portal":"p1","pricing":"free","proof":{"at":-5,"origin":"https://o","way":"hosted","why":"so"},"publisher":"a.example","runs":{"module":"AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","name":"n","new":{},"portal":"p1","version":"1"},"seq":9007199254740991,` +
	`"skills":[{"description":"d","examples":["e"],"id":"i","name":"n","new":1,"tags":["t","u"]},{"id":"","name":"\\\\"},{},{},{},{}],"status":"deprecated","status_note":"s","terms":"t","title":"\b\f\r\n","updated":0}`

func TestReadAgent_AsJSON(t *testing.T) {
	if !sameRead(t, []byte(complete)) {
		t.Error("a complete record is not read")
	}
	// Every member with every kind of value, right or wrong.
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(complete), &members); err != nil {
		t.Fatal(err)
	}
	if n := reflect.TypeFor[Agent]().NumField() - 1 + reflect.TypeFor[Header]().NumField(); len(members) != n+1 {
		t.Errorf("%d members, of %d fields and one of the future", len(members), n)
	}
	values := []string{`""`, `"x"`, `"\\"`, `"\""`, `"\u001f"`, `0`, `-1`, `12345678901`, `true`, `false`, `[]`, `[""]`, `["a","b","c","d","e"]`, `[1]`, `[[]]`, `[{}]`, `{}`, `{"at":1}`,
		`{"way":1}`, `[{"id":1}]`, `[{"tags":"x"}]`, `[{"url":[]}]`, `"` + strings.Repeat("A", 43) + `"`, `"` + strings.Repeat("A", 42) + `B"`, `"` + strings.Repeat("A", 86) + `"`, `"` + strings.Repeat("A", 41) + `\n"`}
	read := 0
	for name := range members {
		for _, v := range values {
			if sameRead(t, []byte(`{"`+name+`":`+v+`}`)) {
				read++
			}
		}
	}
	if read < 150 {
		t.Errorf("only %d are read", read)
	}
	for i := range complete { // cut short, and without a byte
		sameRead(t, []byte(complete[:i]+`"}`))
		sameRead(t, []byte(complete[:i]+complete[i+1:]))
	}
}

func TestReadAgent_Vectors(t *testing.T) {
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for text := range strings.SplitSeq(string(b), `"`) { // whatever the file calls it
		if payload, err := encoding.DecodeString(text); err == nil && len(payload) > 0 && payload[0] == '{' && sameRead(t, payload) {
			read++
		}
	}
	for text := range strings.SplitSeq(string(b), `\"`) {
		if payload, err := encoding.DecodeString(text); err == nil && len(payload) > 0 && payload[0] == '{' && sameRead(t, payload) {
			read++
		}
	}
	if read < 5 {
		t.Errorf("%d payloads found", read)
	}
}

func FuzzReadAgent(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte(`{"skills":[{"tags":[]}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) { sameRead(t, payload) })
}

package agents

import (
	"encoding/json"
	"reflect"
	"testing"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// texts are what may stand in a spec, some with what JSON escapes.
var specTexts = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "plain", `a "quoted" \ one`, "line\nand\ttab", "a<b>&c", "Zürich 東京 😀", "\u2028\u0000\u007f", "\xff\xc3"}))

func drawSpec(t *rapid.T) hub.Agent {
	list := func(label string) []string {
		if rapid.Bool().Draw(t, label+" none") {
			return nil
		}
		return rapid.SliceOfN(specTexts, 0, 3).Draw(t, label)
	}
	a := hub.Agent{Description: specTexts.Draw(t, "description"), Endpoint: specTexts.Draw(t, "endpoint"), InputModes: list("in"), OutputModes: list("out"),
		Languages: list("languages"), Icon: specTexts.Draw(t, "icon"), Publisher: specTexts.Draw(t, "publisher")}
	for range rapid.IntRange(0, 3).Draw(t, "skills") {
		a.Skills = append(a.Skills, hub.Skill{ID: specTexts.Draw(t, "id"), Name: specTexts.Draw(t, "name"), Description: specTexts.Draw(t, "about"), Tags: list("tags"), Examples: list("examples")})
	}
	if rapid.Bool().Draw(t, "limited") {
		a.Limits = hub.Limits{Callers: specTexts.Draw(t, "callers"), Listed: list("listed"), PerDay: rapid.Int().Draw(t, "day")}
	}
	if rapid.Bool().Draw(t, "embedded") {
		a.EmbedOrigins = list("origins")
	}
	if rapid.Bool().Draw(t, "settings") {
		b, err := json.Marshal(map[string]any{"a": specTexts.Draw(t, "value"), "b": []any{1, "]", map[string]any{"}": nil}}})
		if err != nil {
			t.Fatal(err)
		}
		a.Config = b
	}
	return a
}

// sameSpec compares what is read with what encoding/json reads.
func sameSpec(t interface{ Fatalf(string, ...any) }, r *specReader, text string) (read bool) {
	var got, want AgentSpec
	err := json.Unmarshal([]byte(text), &want)
	want.Config = nil
	if read = r.readSpec(text, &got); !read {
		return false
	}
	if err != nil {
		t.Fatalf("%s\nread, but %v", text, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\n got %#v\nwant %#v", text, got, want)
	}
	return true
}

// TestSpecReader_ReadsAsJSONDoes reads what is stored, and that with a few
// bytes changed.
func TestSpecReader_ReadsAsJSONDoes(t *testing.T) {
	var r specReader
	rapid.Check(t, func(t *rapid.T) {
		text, err := specOf(drawSpec(t))
		if err != nil {
			t.Fatal(err)
		}
		if !sameSpec(t, &r, text) {
			t.Fatalf("gave up on %s", text)
		}
		b := []byte(text)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			b[i] = rapid.SampledFrom([]byte("\"\\{}[],: u0n\x00\xffa1")).Draw(t, "byte")
		}
		sameSpec(t, &r, string(b))
		sameSpec(t, &r, text[:rapid.IntRange(0, len(text)).Draw(t, "cut")])
	})
}

func TestSpecReader_GivesUp(t *testing.T) {
	var r specReader
	for _, text := range []string{
		"", "{", "null", "[]", `{"description":"a"} `, ` {"description":"a"}`, `{"description": "a"}`, `{"Description":"a"}`, `{"description":null}`,
		`{"description":"a","description":"b"}`, `{"new":1}`, `{"description":"a",}`, `{"description":"` + "\n" + `"}`, `{"description":"\ud83d\ude00"}`, `{"description":"\x"}`,
		`{"config":{]}`, `{"config":}`, `{"config":[1 2]}`, `{"limits":[]}`, `{"skills":[{"id":"a","id":"b"}]}`, `{"skills":[{"tags":[,]}]}`, `{"skills":[null]}`, "{\"description\":\"\xff\"}",
	} {
		if r.readSpec(text, new(AgentSpec)) {
			t.Errorf("read %s", text)
		}
		sameSpec(t, &r, text)
	}
	if !r.readSpec("{}", new(AgentSpec)) {
		t.Error("what came before spoils what comes")
	}
}

func FuzzSpecReader(f *testing.F) {
	f.Add(`{"description":"a \"b\"","skills":[{"id":"a","name":"","description":"","tags":null,"examples":["x"]}],"config":{"a":[1]},"limits":{"per_day":1}}`)
	f.Add(`{"description":"\u003c\n"}`)
	f.Fuzz(func(t *testing.T, text string) { sameSpec(t, new(specReader), text) })
}

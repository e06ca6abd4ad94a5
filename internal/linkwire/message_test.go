package linkwire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecode_TakesWhatIsRightAndNothingElse(t *testing.T) {
	for in, ok := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"done","params":{}}`:                     true,
		`{"jsonrpc":"2.0","id":"a","method":"done"}`:                               true,
		`{"jsonrpc":"2.0","method":"delta","params":{"a":[1,{"b":"]}"}]},"new":1}`: true,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                     true,
		`{"jsonrpc":"2.0","id":1,"result":null}`:                                   true,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`:             true,
		`{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}`:     false,
		`{"jsonrpc":"2.0","id":1,"method":"done","result":{}}`:                     false,
		`{"jsonrpc":"1.0","id":1,"method":"done"}`:                                 false,
		`{"jsonrpc":"2.0","id":[1],"method":"done"}`:                               false,
		`{"jsonrpc":"2.0","id":true,"method":"done"}`:                              false,
		`{"jsonrpc":"2.0"}`:                false,
		`{}`:                               false,
		`[]`:                               false,
		`null`:                             false,
		``:                                 false,
		`{"jsonrpc":"2.0","method":"a"} x`: false,
		"{\"jsonrpc\":\"2.0\",\"method\":\"a\xff\"}":                                                              false,
		`{"jsonrpc":"2.0","method":"a","params":` + strings.Repeat("[", 70) + `1` + strings.Repeat("]", 70) + `}`: false,
		`{"jsonrpc":"2.0","method":"a","params":"` + strings.Repeat("[", 70) + `"}`:                               true,
		`{"jsonrpc":"2.0","method":"a","params":"` + strings.Repeat("a", MaxMessage) + `"}`:                       false,
	} {
		if _, err := DecodeMessage([]byte(in)); (err == nil) != ok {
			t.Errorf("%.80s: %v", in, err)
		}
	}
}

func TestEncode_ReadsBack(t *testing.T) {
	d := Done{Task: "t", Lease: 7, State: Completed, Text: "<b>&amp; \u2028 ☃", Parts: []Part{{Raw: []byte("x")}}}
	m, err := DecodeMessage(EncodeRequest(9, MethodDone, d))
	var got Done
	if err != nil || json.Unmarshal(m.Params, &got) != nil || got.Text != d.Text || string(m.ID) != "9" || string(got.Parts[0].Raw) != "x" {
		t.Errorf("%+v %v", got, err)
	}
	if b := string(EncodeNotification(MethodDelta, Delta{Text: "<>&"})); !strings.Contains(b, "<>&") {
		t.Error(b)
	}
	for _, b := range [][]byte{EncodeResponse(m.ID, Accepted{true}), EncodeFailure(m.ID, &Error{Code: 1, Message: "x"})} {
		if m, err := DecodeMessage(b); err != nil || string(m.ID) != "9" {
			t.Errorf("%s: %v", b, err)
		}
	}
}

func TestLine_ShowsWhatItSays(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\t c\u2028d":    "a b c d",
		"x\u202ey\x1b[31m\a": "xy[31m",
		"  ":                 "",
		"👩\u200d🚀":           "👩\u200d🚀",
	} {
		if got := Line(in, 100); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for n := 4; n < 12; n++ {
		if got := Line("ä☃ä☃ä☃ä☃", n); len(got) > n || !utf8.ValidString(got) {
			t.Errorf("%d: %q", n, got)
		}
	}
	for in, want := range map[string]string{"": "", "why": "why.", "why?": "why?", "so.": "so."} {
		if got := Sentence(in, 50); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// FuzzDecode looks for bytes that make Decode panic, or that it takes although
// no message can be made of them.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"done","params":{"task":"a","lease":1}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		if err != nil {
			return
		}
		if m.Method == "" && m.ID == nil && m.Error == nil {
			t.Errorf("%q is neither", b)
		}
		if again, err := json.Marshal(m); err != nil {
			t.Errorf("%q: %v", b, err)
		} else if _, err := DecodeMessage(again); err != nil && len(again) <= MaxMessage {
			t.Errorf("%q became %q: %v", b, again, err)
		}
	})
}

// units are texts to repeat: each makes a reader slow that backtracks, or that
// allocates memory for every repetition.
var units = map[string]string{"quotes": `\"`, "braces": `{`, "numbers": "1,"}

func repeated(unit string, n int) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"a","params":["` + strings.Repeat(unit, n/len(unit)) + `"]}`)
}

func TestDecode_AllocationsDoNotGrow(t *testing.T) {
	for name, unit := range units {
		allocs := func(n int) float64 {
			in := repeated(unit, n)
			return testing.AllocsPerRun(3, func() { DecodeMessage(in) })
		}
		if small, large := allocs(1<<10), allocs(1000<<10); large > small+5 {
			t.Errorf("%s: %.0f allocations, then %.0f", name, small, large)
		}
	}
}

// BenchmarkDecode has the same rate for every size, as reading is linear.
func BenchmarkDecode(b *testing.B) {
	for name, unit := range units {
		for _, n := range []int{128 << 10, 1000 << 10} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, n>>10), func(b *testing.B) {
				in := repeated(unit, n)
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					DecodeMessage(in)
				}
			})
		}
	}
}

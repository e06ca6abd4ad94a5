package task

import (
	"encoding/json"
	"testing"
)

func TestDropRepeats(t *testing.T) {
	t.Parallel()
	text, data := TextPart, func(s string) Part { return Part{Data: json.RawMessage(s)} }
	file := Part{Text: `{"a":1}`, Filename: "a.json"}
	for name, tt := range map[string]struct {
		in   []Part
		want string
	}{
		"text alone":               {[]Part{text(`{"a":1}`)}, `{"a":1}`},
		"data alone":               {[]Part{data(`{"a":1}`)}, `{"a":1}`},
		"text, then the same data": {[]Part{text(`{"a":1}`), data(`{"a":1}`)}, `{"a":1}`},
		"data, then the same text": {[]Part{data(`{"a":1}`), text(`{"a":1}`)}, `{"a":1}`},
		"spaces":                   {[]Part{text("{\n  \"a\" : 1\n}\n"), data(`{"a":1}`)}, `{"a":1}`},
		"spaces in the data":       {[]Part{text(`{"a":1}`), data(`{ "a": 1 }`)}, `{ "a": 1 }`},
		"order of keys":            {[]Part{text(`{"b":2,"a":1}`), data(`{"a":1,"b":2}`)}, `{"a":1,"b":2}`},
		"escapes":                  {[]Part{text(`{"a":"\u00e9"}`), data(`{"a":"é"}`)}, `{"a":"é"}`},
		"a number as text":         {[]Part{text("5"), data("5")}, "5"},
		"twice the same data":      {[]Part{data(`{"a":1}`), data(`{"a": 1}`)}, `{"a":1}`},
		"a list":                   {[]Part{text(`[1, 2]`), data(`[1,2]`)}, `[1,2]`},
		"other data":               {[]Part{text(`{"a":1}`), data(`{"a":2}`)}, "{\"a\":1}\n\n{\"a\":2}"},
		"words beside data":        {[]Part{text("One a:"), data(`{"a":1}`)}, "One a:\n\n{\"a\":1}"},
		"words around JSON":        {[]Part{text(`a is {"a":1}`), data(`{"a":1}`)}, "a is {\"a\":1}\n\n{\"a\":1}"},
		"the same text twice":      {[]Part{text("yes"), text("yes")}, "yes\n\nyes"},
		"a file":                   {[]Part{file, data(`{"a":1}`)}, "{\"a\":1}\n\n{\"a\":1}"},
		"not JSON":                 {[]Part{text(`{"a":`), data(`{"a":1}`)}, "{\"a\":\n\n{\"a\":1}"},
	} {
		if got := PlainText(DropRepeats(tt.in)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

package openai

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"agentsite/internal/egress"
)

func TestContent_TakesEveryForm(t *testing.T) {
	for in, want := range map[string]string{
		`"hi"`: "hi", `null`: "", `[]`: "", `["a","b"]`: "ab",
		`[{"type":"text","text":"a"},{"type":"input_audio"},{"type":"text","text":"b"}]`: "ab",
		`[{"type":"text","text":{"value":"a","annotations":[]}}]`:                        "a",
		`[{"text":null},7,{"text":9}]`:                                                   "79", `7`: "7", `true`: "", `{}`: "", `{"text":"a"}`: "a",
	} {
		var m Message
		if err := json.Unmarshal([]byte(`{"role":"user","content":`+in+`}`), &m); err != nil || string(m.Content) != want {
			t.Errorf("%s: %q %v", in, m.Content, err)
		}
	}
	if b, _ := json.Marshal(Message{Role: User, Content: "x"}); string(b) != `{"role":"user","content":"x"}` {
		t.Errorf("%s", b)
	}
}

func TestReader_TellsEndsApart(t *testing.T) {
	for in, want := range map[string]error{
		"data: {}\n\ndata: [DONE]\n\n": io.EOF,
		"data: {}\n\n":                 io.ErrUnexpectedEOF,
		"data: {}\n\ndata: {nope\n\n":  ErrGarbage,
		"data: [DONE]\n\ndata: {}\n\n": io.EOF,
	} {
		r := NewReader(strings.NewReader(in))
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, want) {
			t.Errorf("%q: %v", in, err)
		}
	}
	r := NewReader(strings.NewReader("data: " + strings.Repeat("x", 2<<20)))
	if _, err := r.Next(); egress.CodeOf(err) != egress.TooLarge {
		t.Errorf("%v", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n")
	f.Add("data: {\"error\":\"x\"}\r\n\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		r := NewReader(strings.NewReader(s))
		for range len(s) + 1 {
			if _, err := r.Next(); err != nil {
				return
			}
		}
		t.Error("more events than bytes")
	})
}

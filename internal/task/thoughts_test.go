package task

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPart_KeepsThoughtsToItself(t *testing.T) {
	p := TextPart("42").WithThoughts("secret plan")
	if p.Thoughts() != "secret plan" || PlainText([]Part{p}) != "42" || p.SharedMetadata() != nil {
		t.Errorf("%q %q %s", p.Thoughts(), PlainText([]Part{p}), p.SharedMetadata())
	}
	p.Metadata = json.RawMessage(`{"a":1,"thoughts":"secret plan"}`)
	if got := string(p.SharedMetadata()); got != `{"a":1}` {
		t.Errorf("shared: %s", got)
	}
	for _, meta := range []string{``, `null`, `[]`, `7`, `{"thoughts":7}`, `{"thoughts":""}`, `{`} {
		p.Metadata = json.RawMessage(meta)
		if p.Thoughts() != "" || string(p.SharedMetadata()) != meta {
			t.Errorf("%s: %q %s", meta, p.Thoughts(), p.SharedMetadata())
		}
	}
	if n := len(TextPart("x").WithThoughts(strings.Repeat("ä", MaxThoughts)).Thoughts()); n != MaxThoughts {
		t.Errorf("%d bytes", n)
	}
}

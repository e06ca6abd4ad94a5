package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func read(s string) (in completionRequest, err error) {
	if err = json.Unmarshal([]byte(s), &in); err == nil {
		err = in.check()
	}
	return in, err
}

// spoken are the lines between the quotations of what was said before.
func spoken(s string) (out []string) {
	for line := range strings.Lines(s) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "> ") {
			out = append(out, line)
		}
	}
	return out
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"calc","messages":[{"role":"user","content":"2+2"}]}`,
		`{"model":"calc","messages":[{"role":"system","content":"be\r\n\nuser:\n> x"},{"role":"assistant","content":null},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
		`{"model":"a","n":2,"tools":[{}],"tool_choice":"none","messages":[{"role":"tool","content":"\u2028system:\u0085x"},{"role":"user","content":["x"]}]}`,
		`{"messages":[{"role":"user","content":[[[]]]}],"response_format":{"type":"json_schema"}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in, err := read(s)
		if err != nil {
			return
		}
		parts, err := in.questionParts()
		var p *problem
		if err != nil && (!errors.As(err, &p) || p.body.Param == nil || p.body.Message == "") {
			t.Fatalf("%v does not name what is wrong", err)
		}
		for _, x := range parts {
			if (x.Text != "") == (x.Raw != nil) || len(x.Raw) > chat.MaxRawBytes {
				t.Fatalf("part %+v", x)
			}
		}
		for kind, bound := range map[ident.ActorKind]int{ident.Guest: beforeGuest, ident.Person: beforePerson} {
			text := in.textBefore(ident.Actor{Kind: kind})
			if len(text) > bound || !utf8.ValidString(text) {
				t.Fatalf("%d bytes for a %s", len(text), kind)
			}
			// No text of a message stands outside of a quotation.
			lines := spoken(text)
			for i, l := range lines {
				role, _ := strings.CutSuffix(l, ":")
				known := false
				for _, r := range roles {
					known = known || r == role
				}
				if !known && l != leftOut && (i > 0 || l != beforeHead) {
					t.Fatalf("%q stands on its own in %q", l, text)
				}
			}
			if n := len(lines); n > len(in.Messages)+1 {
				t.Fatalf("%d speakers of %d messages", n, len(in.Messages))
			}
		}
	})
}

func TestBefore_KeepsTheInstructionsAndTheNewest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<10)
	msg := func(role, text string) map[string]string { return map[string]string{"role": role, "content": text} }
	list := []map[string]string{msg("system", "Be brief. "+strings.Repeat("y", 9<<10))}
	for i := range 20 {
		list = append(list, msg([]string{"user", "assistant"}[i%2], long+string(rune('a'+i))))
	}
	b, _ := json.Marshal(map[string]any{"model": "m", "messages": append(list, msg("user", "?"))})
	in, err := read(string(b))
	if err != nil {
		t.Fatal(err)
	}
	for kind, bound := range map[ident.ActorKind]int{ident.Guest: beforeGuest, ident.Person: beforePerson} {
		text := in.textBefore(ident.Actor{Kind: kind})
		lines := spoken(text)
		if len(text) > bound || len(text) < bound/2 || len(lines) < 4 || lines[0] != beforeHead || lines[1] != "system:" || lines[2] != leftOut ||
			!strings.Contains(text, "> Be brief.") || !strings.HasSuffix(text, long+"t") || strings.Contains(text, long+"a") {
			t.Errorf("%s: %d bytes, %q", kind, len(text), lines)
		}
	}
	in.Messages = in.Messages[len(in.Messages)-1:]
	if text := in.textBefore(ident.Actor{}); text != "" {
		t.Errorf("nothing was said before: %q", text)
	}
}

func TestProblem_NoRoomAndNoModelDiffer(t *testing.T) {
	t.Parallel()
	var p *problem
	for room, want := range map[string]string{"": "model_not_found", "x": "conversation_not_found"} {
		if err := notFound(fault.New(fault.NotFound, "None."), room); !errors.As(err, &p) || p.body.Code != want {
			t.Errorf("%q: %v", room, err)
		}
	}
}

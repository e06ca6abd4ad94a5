package model

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/openai"
)

var thoughtCases = map[string][2]string{
	"hello":                                  {"hello", ""},
	"":                                       {"", ""},
	"<think>\nplan\n</think>\n\n42":          {"42", "plan"},
	"\n <think>plan</think>42":               {"\n 42", "plan"},
	"<thinking>a</thinking>b":                {"b", "a"},
	"<Think>a</THINK>b":                      {"b", "a"},
	"<thought>a</thought> b":                 {"b", "a"},
	"<reasoning>a</reasoning>b":              {"b", "a"},
	"[THINK]a[/THINK]b":                      {"b", "a"},
	"◁think▷a◁/think▷b":                      {"b", "a"},
	"<think>a</think>b\n<think>c</think>\nd": {"b\n\n\nd", "ac"},
	"<think>a":                               {"", "a"},
	"<think>a</thi":                          {"", "a</thi"},
	"<think></think>":                        {"", ""},
	"<think>\n\n</think>\n\nb":               {"b", ""},
	"plan\n</think>\n\n42":                   {"42", "plan"},
	"plan</think>42":                         {"42", "plan"},
	"the tag `</think>` ends thoughts":       {"the tag `</think>` ends thoughts", ""},
	"use <think> and see":                    {"use <think> and see", ""},
	"```\n<think>x</think>\n```":             {"```\n<think>x</think>\n```", ""},
	"a < b and <thin":                        {"a < b and <thin", ""},
	"<thimble>":                              {"<thimble>", ""},
	"<think>a < b </ think></think>c":        {"c", "a < b </ think>"},
	"<think>>]a</think>b":                    {"b", ">]a"},
	"[1] is a list":                          {"[1] is a list", ""},
	"<div>\n[x](y)\n</div>":                  {"<div>\n[x](y)\n</div>", ""},
}

// split returns the answer and the thoughts of pieces.
func split(pieces []string) (answer, thoughts string) {
	var s thoughtSplitter
	for _, p := range pieces {
		a, h, all := s.addText(p)
		if all {
			thoughts, answer = thoughts+answer, ""
		}
		answer, thoughts = answer+a, thoughts+h
	}
	a, h := s.flushRest()
	return answer + a, strings.TrimSpace(thoughts + h)
}

func TestThoughtSplitter(t *testing.T) {
	for in, want := range thoughtCases {
		for size := 1; size <= len(in)+1; size++ {
			var pieces []string
			for rest := in; rest != ""; {
				n := min(size, len(rest))
				for n < len(rest) && rest[n]&0xC0 == 0x80 {
					n++ // The Joiner gives whole characters.
				}
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			if answer, thoughts := split(pieces); answer != want[0] || thoughts != want[1] {
				t.Errorf("%q in %d: %q, %q", in, size, answer, thoughts)
			}
		}
	}
}

// No text is lost, and the way in which it is divided does not matter.
func TestThoughtSplitter_LosesNothing(t *testing.T) {
	word := rapid.SampledFrom([]string{"<think>", "</think>", "<", "think", ">", "\n", "a", " ", "```", "[", "[/THINK]", "[THINK]", "◁", "`"})
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(word, 0, 12).Draw(t, "words")
		answer, thoughts := split(words)
		a, h := split([]string{strings.Join(words, "")})
		if answer != a || thoughts != h {
			t.Fatalf("%q: %q %q, at once %q %q", words, answer, thoughts, a, h)
		}
		if n := strings.Count(strings.Join(words, ""), "a"); strings.Count(answer+thoughts, "a") != n {
			t.Fatalf("%q: %q %q", words, answer, thoughts)
		}
	})
}

func TestChat_KeepsThoughtsOutOfTheAnswer(t *testing.T) {
	for name, tt := range map[string]struct{ body, text, thoughts, why string }{
		"tags":        {`data: {"choices":[{"delta":{"content":"<thi"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"nk>a</think>b"},"finish_reason":"stop"}]}` + "\n\n", "b", "a", ""},
		"field":       {`data: {"choices":[{"delta":{"reasoning":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n", "b", "a", ""},
		"whole":       {`{"choices":[{"message":{"content":"<think>a</think>\nb"},"finish_reason":"stop"}]}`, "b", "a", ""},
		"late end":    {`data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"</think>b"},"finish_reason":"stop"}]}` + "\n\n", "b", "a", ""},
		"alone":       {`data: {"choices":[{"delta":{"reasoning":"a"},"finish_reason":"stop"}]}` + "\n\n", "", "a", "nothing but its thoughts"},
		"cut":         {`data: {"choices":[{"delta":{"content":"<think>a"},"finish_reason":"length"}]}` + "\n\n", "", "a", "length limit in its thoughts"},
		"nothing":     {`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", "", "", "with nothing."},
		"cut at once": {`data: {"choices":[{"delta":{},"finish_reason":"MAX_TOKENS"}]}` + "\n\n", "", "", "length limit before"},
	} {
		got, err := server(t, "", says(200, sse, tt.body)).Chat(t.Context(), question, nil)
		if err != nil || got.Text != tt.text || got.Thoughts != tt.thoughts || !strings.Contains(got.EmptyReason(), tt.why) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	long := strings.Repeat("x", 3*maxThoughts)
	got, err := server(t, "", says(200, sse, `{"choices":[{"message":{"content":"b","reasoning":"`+long+`"}}]}`)).Chat(t.Context(), question, nil)
	if err != nil || got.Text != "b" || len(got.Thoughts) != maxThoughts {
		t.Errorf("%d bytes of thoughts, %v", len(got.Thoughts), err)
	}
	if c := (openai.Message{Role: openai.Assistant, Content: openai.Content(got.Text)}); strings.Contains(string(c.Content), "x") {
		t.Error("thoughts are in the text")
	}
}

package speech

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/task"
)

func turn(kind, who, text string) task.Turn {
	return task.Turn{Kind: kind, Speaker: who, Parts: []task.Part{task.TextPart(text)}}
}

func TestFrame_AddsNothingBetweenTwo(t *testing.T) {
	t.Parallel()
	call := task.Call{Caller: task.Caller{Kind: "operator", Handle: "ada"}, History: []task.Turn{
		turn("person", "ada", "hi"), {Mine: true, Kind: "agent", Speaker: "bot"},
	}}
	f := NewFrame(call)
	if f.HasSeveral() || f.FormatMessage(task.Speaker{Handle: "ada"}, "x") != "x" || f.ExplainRules() != "" || f.Mark() != "" {
		t.Errorf("%+v", f)
	}
	// A turn without a kind, as tests and older state have it, is a person's.
	call.History = append(call.History, turn("", "ada", "hi"))
	if NewFrame(call).HasSeveral() {
		t.Error("one person is taken for two")
	}
	for _, other := range []task.Turn{turn("person", "bob", "x"), turn("agent", "ada", "x"), turn("guest", "guest", "x")} {
		c := call
		c.History = append([]task.Turn{other}, call.History...)
		if !NewFrame(c).HasSeveral() {
			t.Errorf("%+v is not told apart", other)
		}
	}
	call.Speaker = task.Speaker{Kind: "agent", Handle: "guide"}
	if !NewFrame(call).HasSeveral() {
		t.Error("an agent that asks for ada is not told from her")
	}
}

func TestFrame_MarksAreNew(t *testing.T) {
	t.Parallel()
	call := task.Call{Caller: task.Caller{Handle: "ada"}, History: []task.Turn{turn("person", "bob", "x")}}
	seen := make(map[string]bool)
	for range 100 {
		m := NewFrame(call).Mark()
		if seen[m] || len(m) != markLen {
			t.Fatal(m)
		}
		seen[m] = true
	}
}

// Whatever somebody writes, and however they call themselves, each message has
// one line with the mark, before it, and that names its speaker.
func TestFrame_CannotBeForged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := FrameWithMark("abcdefgh2345")
		piece := rapid.SampledFrom([]string{"[#abcdefgh2345 bob (person)]", "abcdefgh2345", "abcdefabcdefgh2345gh2345", "\n", "[#", "bob: ", "system: ", `{"speaker":"bob"}`, "\u202e", "\r", "x", "[#zzzz bob (person)]\n", ")]"})
		var whole strings.Builder
		n := rapid.IntRange(1, 5).Draw(rt, "messages")
		for range n {
			who := strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(rt, "who"), "")
			said := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(rt, "text"), "")
			whole.WriteString(f.FormatMessage(task.Speaker{Kind: rapid.SampledFrom([]string{"person", "agent", "guest", "x"}).Draw(rt, "kind"), Handle: f.RemoveMark(who)}, said) + "\n\n")
		}
		heads := 0
		for line := range strings.Lines(whole.String()) {
			if strings.HasPrefix(line, "[#abcdefgh2345 ") {
				heads++
			}
		}
		if heads != n || strings.Count(whole.String(), "abcdefgh2345") != n {
			rt.Fatalf("%d messages, %d heads: %q", n, heads, whole.String())
		}
	})
}

func TestName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"ada": "ada", "a-1_B": "a-1_B", "": "", "ada@far.example": "", "a b": "", "é": "", strings.Repeat("x", 65): ""} {
		if got := MessageName(task.Speaker{Handle: in}); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

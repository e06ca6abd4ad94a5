package agentruntime

import (
	"testing"

	"agentsite/internal/task"
)

func TestWithoutOwnMention(t *testing.T) {
	for _, c := range []struct{ handle, text, want string }{
		{"calc", "@calc 2+2", "2+2"},
		{"calc", "  @Calc: 2+2", "2+2"},
		{"calc", "@calc@home.example, what is 2+2?", "@calc@home.example, what is 2+2?"},
		{"calc", "@guide @calc compare", "@guide compare"},
		{"calc", "@calc @guide compare", "@guide compare"},
		{"calc", "@calc", "@calc"},
		{"calc", "@calc  ", "@calc  "},
		{"calc", "@calculator 2+2", "@calculator 2+2"},
		{"calc", "@calc@far.example 2+2", "@calc@far.example 2+2"},
		{"calc", "Ask @calc 2+2", "Ask @calc 2+2"},
		{"tide@far.example", "@tide when?", "when?"},
		{"tide@far.example", "@tide@far.example\nwhen?", "when?"},
		{"tide@far.example", "@tide@home.example when?", "@tide@home.example when?"},
	} {
		in := []task.Part{{URL: "/files/x"}, task.TextPart(c.text)}
		got := withoutOwnMention(in, c.handle)
		if got[1].Text != c.want {
			t.Errorf("%s reads %q of %q, want %q", c.handle, got[1].Text, c.text, c.want)
		}
		if in[1].Text != c.text {
			t.Errorf("the message itself became %q", in[1].Text)
		}
	}
}

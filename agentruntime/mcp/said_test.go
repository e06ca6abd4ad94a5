package mcp

import (
	"strings"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

func TestSaidTo(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"person", "weather Bern", "weather Bern"},
		{"person", "@tools weather Bern", "weather Bern"},
		{"person", "@Tools@home.example: weather Bern", "weather Bern"},
		{"person", "@tools, weather Bern", "weather Bern"},
		{"person", "@toolsmith weather", "@toolsmith weather"},
		{"person", "hi @tools weather", "hi @tools weather"},
		{"person", "@other weather", "@other weather"},
		{"person", "@tools", ""},
		{"person", "@tools ", ""},
		{"agent", "I shall ask.\n\n@tools weather Bern", "weather Bern"},
		{"agent", "Nothing to ask.", "Nothing to ask."},
		{"agent", "İ İ İ @tools x", "x"},
	} {
		call := task.Call{Caller: task.Caller{Kind: "person", Handle: "ada"}, Speaker: task.Speaker{Kind: c.kind, Handle: "x"},
			Agent: task.Target{Handle: "tools", Name: "tools"}, Parts: []task.Part{task.TextPart(c.text)}}
		if got := task.PlainText(saidTo(call)); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.kind, c.text, got, c.want)
		}
		if call.Parts[0].Text != c.text {
			t.Errorf("%q was changed", c.text)
		}
	}
}

// What an agent says does not change anything in a person's name.
func TestRun_AgentsDoNotUseToolsInSomebodysName(t *testing.T) {
	s, d := agenttest.NewMCPServer(t, true), newDriver(t)
	call := textCall(s.Endpoint(agenttest.Echo), nil, "@tools echo text=hello")
	call.Agent.Handle, call.Agent.Name = "tools", "tools"
	res, _ := do(t, d, call)
	if res.State != task.Completed || !strings.Contains(task.PlainText(res.Parts), "hello") {
		t.Fatalf("a person: %+v", res)
	}
	call.Speaker = task.Speaker{Kind: "agent", Handle: "guide"}
	if res, _ = do(t, d, call); res.State != task.Rejected || !strings.Contains(res.Reason, "guide asked for it") {
		t.Errorf("an agent: %+v", res)
	}
	if why := forbidReason(call, &offered{Tool: hub.Tool{Name: "look", ReadOnly: true}}); why != "" {
		t.Errorf("a tool that only reads: %s", why)
	}
}

package mcp_test

import (
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestSDK_AsksInEachEra is what the protocol's own client does at both
// addresses.
func TestSDK_AsksInEachEra(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	token := p.User(t, "ada").NewToken("agents:read", "chat:write")
	for _, version := range []string{modern, legacy, oldest} {
		s := connect(t, p, token, "/mcp", version, nil)
		if got := s.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("agreed on %s, want %s", got, version)
		}
		list, err := s.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 7 {
			t.Fatal(version, list, err)
		}
		r := call(t, s, "search_agents", map[string]any{"query": "calculator"})
		if !strings.Contains(text(r), "calc") || r.IsError {
			t.Errorf("%s: %s", version, text(r))
		}
		r = call(t, s, "ask_agent", map[string]any{"agent": "calc", "text": "6*7"})
		a := dataOf(t, r)
		if !strings.Contains(a.Answer, "42") || !strings.Contains(text(r), "42") || a.State != "completed" || a.Agent != "calc" || r.IsError {
			t.Errorf("%s: %+v %s", version, a, text(r))
		}
		if r = call(t, s, "get_task", map[string]any{"task_id": a.TaskID}); dataOf(t, r) != a {
			t.Errorf("%s: %+v, want %+v", version, dataOf(t, r), a)
		}
		if r = call(t, s, "ask_agents", map[string]any{"agents": []string{"calc", "nobody"}, "text": "1+1"}); r.IsError || !strings.Contains(text(r), "2") || !strings.Contains(text(r), "nobody") {
			t.Errorf("%s: %s", version, text(r))
		}

		own := connect(t, p, token, "/agents/calc/mcp", version, nil)
		if list, err = own.ListTools(t.Context(), nil); err != nil || len(list.Tools) == 0 {
			t.Fatal(version, list, err)
		}
		r = call(t, own, list.Tools[0].Name, map[string]any{"text": "40+2"})
		if !strings.Contains(text(r), "42") || r.IsError {
			t.Errorf("%s: %s", version, text(r))
		}
	}
}

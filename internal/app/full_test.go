package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/storetest"
)

// On a disk that is nearly full each door answers a long text with 507 and the time to try again, in the
// terms of its protocol.
func TestFullDisk_EachDoorSaysSo(t *testing.T) {
	t.Parallel()
	storetest.SkipOnPostgres(t)
	p := apptest.Start(t, func(c *app.Config) { c.Limits = "disk-free=1000000G,disk-reserve=0" })
	bob := p.User(t, "bob").NewToken()
	room := bob.Conversation("calc")
	text := strings.Repeat("2 + 2 ", 4000)
	message := `{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"` + text + `"}]}`
	tool := func(name string, args map[string]any) map[string]any {
		return map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}}
	}
	for name, c := range map[string]struct {
		path string
		body any
		says string
	}{
		"API":           {"/api/v1/conversations/" + room + "/messages", map[string]any{"client_id": "1", "text": text}, `"unavailable"`},
		"A2A JSON-RPC":  {"/agents/calc/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` + message + `}}`, `"code":-32000`},
		"A2A HTTP+JSON": {"/agents/calc/a2a/message:send", `{"message":` + message + `}`, `"status":"UNAVAILABLE"`},
		"MCP":           {"/mcp", tool("ask_agent", map[string]any{"agent": "calc", "text": text}), `"code":-32000`},
		"OpenAI":        {"/v1/chat/completions", map[string]any{"model": "calc", "messages": []any{map[string]string{"role": "user", "content": text}}}, `"code":"unavailable"`},
	} {
		a := bob.Do(http.MethodPost, c.path, c.body)
		if a.Status != http.StatusInsufficientStorage || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, c.says) {
			t.Errorf("%s: %d %q %.300s", name, a.Status, a.Header.Get("Retry-After"), a.Body)
		}
	}
}

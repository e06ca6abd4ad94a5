package mcp_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// set is an edit that sets headers, or removes those that are "".
func set(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			if r.Header.Del(pairs[i]); pairs[i+1] != "" {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
}

// TestModern_Rules holds the door against what 2026-07-28 says of requests.
func TestModern_Rules(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	search := tool("search_agents", map[string]any{})
	meta := func(m string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":` + m + `}}`
	}
	const version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	const caps = `"io.modelcontextprotocol/clientCapabilities":{}`
	for name, test := range map[string]struct {
		method, rest, body string
		edit               func(*http.Request)
		status, code       int
	}{
		"a list":                        {method: "tools/list", status: 200},
		"a call":                        {method: "tools/call", rest: search, status: 200},
		"a name in base64":              {method: "tools/call", rest: search, edit: set("Mcp-Name", "=?base64?"+base64.StdEncoding.EncodeToString([]byte("search_agents"))+"?="), status: 200},
		"discovery":                     {method: "server/discover", status: 200},
		"any Accept":                    {method: "tools/list", edit: set("Accept", "*/*"), status: 200},
		"no Accept":                     {method: "tools/list", edit: set("Accept", ""), status: 200},
		"another Accept":                {method: "tools/list", edit: set("Accept", "text/html"), status: 406, code: -32600},
		"another content type":          {method: "tools/list", edit: set("Content-Type", "text/plain"), status: 415, code: -32600},
		"no params":                     {body: `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, status: 400, code: -32602},
		"no _meta":                      {body: `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`, status: 400, code: -32602},
		"_meta of another type":         {body: meta(`[]`), status: 400, code: -32602},
		"no version in _meta":           {body: meta(`{` + caps + `}`), status: 400, code: -32602},
		"no capabilities":               {body: meta(`{` + version + `}`), status: 400, code: -32602},
		"capabilities of another type":  {body: meta(`{` + version + `,"io.modelcontextprotocol/clientCapabilities":7}`), status: 400, code: -32602},
		"no version header":             {method: "tools/list", edit: set("MCP-Protocol-Version", ""), status: 400, code: -32020},
		"another version header":        {method: "tools/list", edit: set("MCP-Protocol-Version", "2025-11-25"), status: 400, code: -32020},
		"no method header":              {method: "tools/list", edit: set("Mcp-Method", ""), status: 400, code: -32020},
		"another method header":         {method: "tools/list", edit: set("Mcp-Method", "tools/call"), status: 400, code: -32020},
		"a method header in capitals":   {method: "tools/list", edit: set("Mcp-Method", "TOOLS/LIST"), status: 400, code: -32020},
		"two method headers":            {method: "tools/list", edit: func(r *http.Request) { r.Header.Add("Mcp-Method", "tools/call") }, status: 400, code: -32020},
		"no name header":                {method: "tools/call", rest: search, edit: set("Mcp-Name", ""), status: 400, code: -32020},
		"another name header":           {method: "tools/call", rest: search, edit: set("Mcp-Name", "ask_agent"), status: 400, code: -32020},
		"a name in broken base64":       {method: "tools/call", rest: search, edit: set("Mcp-Name", "=?base64?c2Vhcm?="), status: 400, code: -32020},
		"a name that is no ASCII":       {method: "tools/call", rest: search, edit: set("Mcp-Name", "s\xc3\xbcarch"), status: 400, code: -32020},
		"no name":                       {method: "tools/call", rest: `"arguments":{}`, status: 200, code: -32602},
		"an unknown tool":               {method: "tools/call", rest: `"name":"nothing"`, status: 200, code: -32602},
		"arguments of another type":     {method: "tools/call", rest: `"name":"search_agents","arguments":[1]`, status: 200, code: -32602},
		"an unknown version":            {body: `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01",` + caps + `}}}`, edit: set("MCP-Protocol-Version", "2099-01-01"), status: 400, code: -32022},
		"an unknown version header":     {body: `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`, edit: set("MCP-Protocol-Version", "2099-01-01"), status: 400, code: -32022},
		"an unknown method":             {method: "no/such", status: 404, code: -32601},
		"a method that was":             {method: "ping", status: 404, code: -32601},
		"the handshake that was":        {method: "initialize", status: 404, code: -32601},
		"prompts, of which none are":    {method: "prompts/list", status: 404, code: -32601},
		"a removed method of tasks":     {method: "tasks/list", status: 404, code: -32601},
		"tasks, not declared":           {method: "tasks/get", rest: `"taskId":"x"`, edit: set("Mcp-Name", "x"), status: 400, code: -32021},
		"a cursor of another list":      {method: "tools/list", rest: `"cursor":"x"`, status: 200, code: -32602},
		"a resource that is not there":  {method: "resources/read", rest: `"uri":"agentsite://agents/nobody"`, status: 200, code: -32602},
		"inputs of another type":        {method: "tools/call", rest: search + `,"inputResponses":5`, status: 200, code: -32602},
		"inputs that are a number":      {method: "tools/call", rest: search + `,"inputResponses":7`, status: 200, code: -32602},
		"an input that is none":         {method: "tools/call", rest: search + `,"inputResponses":{"a":1}`, status: 200, code: -32602},
		"a state that is not ours":      {method: "tools/call", rest: tool("ask_agent", map[string]any{"agent": "calc", "text": "1"}) + `,"requestState":"AAAA"`, status: 200, code: -32602},
		"an agent that is not there":    {method: "tools/list", status: 404, code: -32000},
		"a feed for who takes no feeds": {method: "subscriptions/listen", rest: `"notifications":{}`, edit: set("Accept", "application/json"), status: 406, code: -32600},
	} {
		path := "/mcp"
		if strings.HasPrefix(name, "an agent that") {
			path = "/agents/nobody/mcp"
		}
		body := test.body
		if body == "" {
			body = `{"jsonrpc":"2.0","id":7,"method":"` + test.method + `","params":` + params(noCaps, test.rest) + `}`
		}
		edits := []func(*http.Request){standard}
		if test.edit != nil {
			edits = append(edits, test.edit)
		}
		a := raw(t, c, path, body, edits...)
		if a.status != test.status || a.code() != test.code || string(a.ID) != "7" && test.status != 415 {
			t.Errorf("%s: %d, error %d, id %s; want %d, %d: %+v", name, a.status, a.code(), a.ID, test.status, test.code, a.Error)
		}
		if a.code() == -32022 {
			var data struct {
				Supported []string
				Requested string
			}
			if err := json.Unmarshal(a.Error.Data, &data); err != nil || len(data.Supported) != 5 || data.Supported[0] != modern || data.Requested != "2099-01-01" {
				t.Errorf("%s: %s %v", name, a.Error.Data, err)
			}
		}
	}
	if a := raw(t, c, "/mcp", `{"jsonrpc":"2.0","method":"notifications/whatever"}`, set("MCP-Protocol-Version", modern)); a.status != http.StatusAccepted {
		t.Errorf("a notification: %d", a.status)
	}
}

// TestPost_RefusesWhatIsNoMessage sends what no client should.
func TestPost_RefusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	for name, test := range map[string]struct {
		body         string
		status, code int
	}{
		"nothing":                  {``, 400, -32700},
		"half of it":               {`{"jsonrpc":"2.0","id":1,"method":"to`, 400, -32700},
		"two":                      {`{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, 400, -32700},
		"bytes":                    {"\x00\x01\xff", 400, -32600},
		"a text":                   {`"ping"`, 400, -32600},
		"no UTF-8":                 {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}", 400, -32600},
		"a NUL":                    {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\u0000"}}`, 400, -32600},
		"half a pair":              {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\ud800"}}`, 400, -32600},
		"a name twice":             {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, 400, -32600},
		"a name twice, deep down":  {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[{"b":1,"\u0062":2}]}}`, 400, -32600},
		"too deep":                 {`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 70) + `}`, 400, -32600},
		"other letters":            {`{"JSONRPC":"2.0","id":1,"METHOD":"ping"}`, 400, -32600},
		"another version":          {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, 400, -32600},
		"no method":                {`{"jsonrpc":"2.0","id":1}`, 400, -32600},
		"an empty method":          {`{"jsonrpc":"2.0","id":1,"method":""}`, 400, -32600},
		"a method of another type": {`{"jsonrpc":"2.0","id":1,"method":5}`, 400, -32600},
		"a long method":            {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 200) + `"}`, 400, -32600},
		"an id of another type":    {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600},
		"an id that is null":       {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, 400, -32600},
		"an id that is a fraction": {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, 400, -32600},
		"a long id":                {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, 400, -32600},
		"params of another type":   {`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, 400, -32602},
		"an answer nobody wants":   {`{"jsonrpc":"2.0","id":1,"result":{}}`, 400, -32600},
		"two outcomes":             {`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, 400, -32600},
		"an empty batch":           {`[]`, 400, -32600},
		"a batch of nothing":       {`[1]`, 400, -32600},
		"a large batch":            {`[` + strings.Repeat(`{"jsonrpc":"2.0","method":"a"},`, 30) + `{"jsonrpc":"2.0","method":"a"}]`, 400, -32600},
		"too much":                 {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`, 413, -32600},
	} {
		if a := raw(t, c, "/mcp", test.body); a.status != test.status || a.code() != test.code {
			t.Errorf("%s: %d, error %d, want %d, %d: %+v", name, a.status, a.code(), test.status, test.code, a.Error)
		}
	}
	if a := c.Do(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, set("Origin", "https://evil.example")); a.Status != http.StatusForbidden {
		t.Errorf("of another site: %d", a.Status)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if a := c.Do(method, "/mcp", nil); a.Status != http.StatusMethodNotAllowed || a.Header.Get("Allow") == "" {
			t.Errorf("%s: %d, Allow %q", method, a.Status, a.Header.Get("Allow"))
		}
	}
}

// TestHandshake_Rules is what the versions before 2026-07-28 want.
func TestHandshake_Rules(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	hello := func(version string) rpcAnswer {
		return raw(t, c, "/mcp", `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	}
	for asked, want := range map[string]string{"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05", "2099-01-01": "2025-11-25", modern: "2025-11-25"} {
		var out struct {
			ProtocolVersion string
			Capabilities    map[string]any
			ServerInfo      struct{ Name, Version string }
			ResultType      string
		}
		a := hello(asked)
		if a.result(t, &out); out.ProtocolVersion != want || out.Capabilities["tools"] == nil || out.Capabilities["extensions"] != nil || out.ServerInfo.Name == "" || out.ResultType != "" || a.header.Get("Mcp-Session-Id") == "" {
			t.Errorf("%s: %+v", asked, out)
		}
	}
	session := hello("2025-06-18").header.Get("Mcp-Session-Id")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	batch := `[` + ping + `,{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":2,"method":"no/such"},{"jsonrpc":"2.0","id":3,"method":"initialize"}]`
	for name, test := range map[string]struct {
		body         string
		edit         func(*http.Request)
		status, code int
	}{
		"without a session":              {ping, nil, 200, 0},
		"with a session":                 {ping, set("Mcp-Session-Id", session), 200, 0},
		"with the version":               {ping, set("MCP-Protocol-Version", "2025-11-25"), 200, 0},
		"a session that is not ours":     {ping, set("Mcp-Session-Id", "x"+session[1:]), 404, -32000},
		"a version that is none":         {ping, set("MCP-Protocol-Version", "1.0"), 400, -32022},
		"an unknown method":              {`{"jsonrpc":"2.0","id":1,"method":"no/such"}`, nil, 200, -32601},
		"a method of later":              {`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x"}}`, set("Mcp-Session-Id", session), 200, -32601},
		"a batch where there are none":   {batch, set("Mcp-Session-Id", session), 400, -32600},
		"a batch of a later version":     {batch, set("MCP-Protocol-Version", "2025-11-25"), 400, -32600},
		"a resource that is not there":   {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://y"}}`, nil, 200, -32002},
		"a handshake without version":    {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil, 200, -32602},
		"a notification":                 {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, set("Mcp-Session-Id", session), 202, 0},
		"an end of what never began":     {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, set("Mcp-Session-Id", session), 202, 0},
		"a batch of notifications alone": {`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, nil, 202, 0},
	} {
		var edits []func(*http.Request)
		if test.edit != nil {
			edits = append(edits, test.edit)
		}
		if a := raw(t, c, "/mcp", test.body, edits...); a.status != test.status || a.code() != test.code {
			t.Errorf("%s: %d, error %d, want %d, %d: %+v", name, a.status, a.code(), test.status, test.code, a.Error)
		}
	}
	var list []rpcAnswer
	got := c.Do(http.MethodPost, "/mcp", batch, set("MCP-Protocol-Version", "2025-03-26"))
	if err := json.Unmarshal([]byte(got.Body), &list); err != nil || len(list) != 3 || list[0].code() != 0 || list[1].code() != -32601 || list[2].code() != -32600 {
		t.Errorf("a batch: %d %s", got.Status, got.Body)
	}
}

// TestPost_TellsWhoMayNot looks at credentials that do not fit.
func TestPost_TellsWhoMayNot(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	bad := p.Bearer(t, "agst_nothing")
	a := rpc(t, bad, "/agents/calc/mcp", noCaps, "tools/list", "")
	if h := a.header.Get("WWW-Authenticate"); a.status != 401 || !strings.Contains(h, `resource_metadata="`+p.URL()+`/.well-known/oauth-protected-resource/agents/calc/mcp"`) {
		t.Errorf("%d %q", a.status, h)
	}
	var meta struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
	}
	for _, path := range []string{"", "/mcp", "/agents/calc/mcp"} {
		bad.Get(http.MethodGet, "/.well-known/oauth-protected-resource"+path, nil, 200, &meta)
		if meta.Resource != p.URL()+path || meta.Servers != nil || len(meta.Methods) != 1 {
			t.Errorf("%q: %+v", path, meta)
		}
	}
	ada := p.User(t, "ada").NewToken("tasks")
	a = rpc(t, ada, "/mcp", noCaps, "tools/call", tool("ask_agent", map[string]any{"agent": "calc", "text": "1+1"}))
	if a.status != 403 || a.code() != -32000 || !strings.Contains(a.header.Get("WWW-Authenticate"), "insufficient_scope") {
		t.Errorf("%d %+v", a.status, a.Error)
	}
}

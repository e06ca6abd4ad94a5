package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestResources_AreTheCallers reads cards and transcripts, as who may and as
// who may not.
func TestResources_AreTheCallers(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	model := agenttest.NewOpenAIServer(t)
	private := ada.Agent("private", model.Base(agenttest.Echo))
	c, eve := ada.NewToken("agents:read", "chat:write"), p.User(t, "eve").NewToken("agents:read", "chat:write")
	s := connect(t, p, c, "/mcp", modern, nil)
	a := dataOf(t, call(t, s, "ask_agent", map[string]any{"agent": "calc", "text": "6*7"}))

	list, err := s.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	uris := make(map[string]bool)
	for _, r := range list.Resources {
		uris[r.URI] = true
	}
	room := "agentsite://conversations/" + a.ContextID
	if !uris[room] || !uris["agentsite://agents/calc"] || uris["agentsite://agents/"+private] {
		t.Errorf("%v", uris)
	}
	templates, err := s.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 2 {
		t.Errorf("%+v %v", templates, err)
	}
	for uri, want := range map[string]string{room: "42", "agentsite://agents/calc": `"/agents/calc/a2a"`, "agentsite://agents/" + private: private} {
		r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, strings.Trim(want, `"`)) || r.Contents[0].URI != uri {
			t.Errorf("%s: %+v %v", uri, r, err)
		}
	}
	for who, other := range map[string]*apptest.Client{"eve": eve, "a visitor": p.Guest(t)} {
		for _, uri := range []string{room, "agentsite://agents/" + private, "agentsite://conversations/01ARZ3NDEKTSV4RRFFQ69G5FAV", "agentsite://agents/", "agentsite://other", "file:///etc/passwd"} {
			got := rpc(t, other, "/mcp", noCaps, "resources/read", `"uri":"`+uri+`"`)
			if got.code() != -32602 || got.status != 200 || string(got.Error.Data) != `{"uri":"`+uri+`"}` || got.Error.Message != "There is no such resource, or it is not yours to read." {
				t.Errorf("%s reads %s: %+v", who, uri, got)
			}
		}
	}
	var done struct {
		Completion struct{ Values []string }
	}
	rpc(t, c, "/mcp", noCaps, "completion/complete", `"ref":{"type":"ref/resource","uri":"agentsite://agents/{name}"},"argument":{"name":"name","value":"cal"}`).result(t, &done)
	if len(done.Completion.Values) == 0 || done.Completion.Values[0] != "calc" {
		t.Errorf("%+v", done)
	}
	// At an agent's address there is that agent's card alone.
	if got := rpc(t, c, "/agents/calc/mcp", noCaps, "resources/read", `"uri":"`+room+`"`); got.code() != -32602 {
		t.Errorf("%+v", got)
	}
}

// TestListen_TellsOfConversations is told when something is said.
func TestListen_TellsOfConversations(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "ada").NewToken("agents:read", "chat:write")
	eve := p.User(t, "eve").NewToken("agents:read", "chat:write")
	s := connect(t, p, c, "/mcp", modern, nil)
	a := dataOf(t, call(t, s, "ask_agent", map[string]any{"agent": "calc", "text": "1+1"}))
	uri := "agentsite://conversations/" + a.ContextID
	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":` + params(noCaps, `"notifications":{"promptsListChanged":true,"resourceSubscriptions":["`+uri+`","x://y"]}`) + `}`
	e := stream(t, c, "/mcp", listen, standard)
	if m, _ := e.next(t); m.Method != "notifications/subscriptions/acknowledged" || !strings.Contains(string(m.Params), `"notifications":{"resourceSubscriptions":["`+uri+`"]}`) {
		t.Fatalf("%s %s", m.Method, m.Params)
	}
	call(t, s, "ask_agent", map[string]any{"agent": "calc", "text": "2+2", "context_id": a.ContextID})
	for range 2 { // the question and the answer
		if m, _ := e.next(t); m.Method != "notifications/resources/updated" || !strings.Contains(string(m.Params), uri) || !strings.Contains(string(m.Params), `"io.modelcontextprotocol/subscriptionId":"l"`) {
			t.Errorf("%s %s", m.Method, m.Params)
		}
	}
	e = stream(t, eve, "/mcp", listen, standard)
	if m, _ := e.next(t); !strings.Contains(string(m.Params), `"notifications":{}`) {
		t.Errorf("another's conversation: %s", m.Params)
	}
	if a := rpc(t, c, "/mcp", noCaps, "subscriptions/listen", `"notifications":{"taskIds":["x"]}`); a.code() != -32021 {
		t.Errorf("undeclared: %+v", a.Error)
	}
}

// TestAgent_OffersItsOwnTools is an agent that is an MCP server itself.
func TestAgent_OffersItsOwnTools(t *testing.T) {
	t.Parallel()
	const pick = `{"type":"object","properties":{"size":{"type":"integer","minimum":1,"maximum":9}},"required":["size"],"additionalProperties":false}`
	server := agenttest.NewMCPServerWith(t, true, func(s *sdk.Server) {
		s.AddTool(&sdk.Tool{Name: "pick.one", Title: "Pick", Description: "Picks.", InputSchema: json.RawMessage(pick)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if r.Params.InputResponses["color"] == nil {
				return &sdk.CallToolResult{RequestState: "s", InputRequests: sdk.InputRequestMap{"color": &sdk.ElicitParams{Message: "Which color?",
					RequestedSchema: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string","enum":["red","blue"]}},"required":["color"]}`)}}}, nil
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "picked " + r.Params.InputResponses["color"].(*sdk.ElicitResult).Content["color"].(string) + string(r.Params.Arguments)}}}, nil
		})
	})
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	c := ada.NewToken("agents:read", "chat:write")
	name := apptest.Fresh("tools")
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Tools.", "kind": "mcp", "endpoint": server.Endpoint(agenttest.Echo), "visibility": "public"}, http.StatusCreated)
	for _, version := range []string{modern, legacy} {
		s := connect(t, p, c, "/agents/"+name+"/mcp", version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			b, _ := json.Marshal(r.Params.RequestedSchema)
			if !strings.Contains(string(b), `"blue"`) {
				t.Errorf("%s: asked with %s", version, b)
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"color": "blue"}}, nil
		}})
		list, err := s.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "pick_one" || list.Tools[0].Title != "Pick" {
			t.Fatalf("%s: %+v %v", version, list, err)
		}
		if b, _ := json.Marshal(list.Tools[0].InputSchema); !strings.Contains(string(b), `"maximum":9`) {
			t.Errorf("%s: %s", version, b)
		}
		if r := call(t, s, "pick_one", map[string]any{"size": 12}); !r.IsError || !strings.Contains(text(r), "size: use 9 or less") {
			t.Errorf("%s: %s", version, text(r))
		}
		if r := call(t, s, "pick_one", map[string]any{"size": 3}); r.IsError || !strings.Contains(text(r), `picked blue{"size":3}`) {
			t.Errorf("%s: %s", version, text(r))
		}
	}
}

// TestVisitors_GoOnWhereTheyWere: without a token, from the same address.
func TestVisitors_GoOnWhereTheyWere(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	s := connect(t, p, c, "/mcp", legacy, nil)
	first := dataOf(t, call(t, s, "ask_agent", map[string]any{"agent": "calc", "text": "6*7"}))
	if again := dataOf(t, call(t, s, "ask_agent", map[string]any{"agent": "calc", "text": "1+1", "context_id": first.ContextID})); again.ContextID != first.ContextID || again.State != "completed" {
		t.Errorf("%+v", again)
	}
	if got := dataOf(t, call(t, s, "get_task", map[string]any{"task_id": first.TaskID})); got != first {
		t.Errorf("%+v", got)
	}
	other := connect(t, p, p.Guest(t), "/mcp", legacy, nil)
	for tool, args := range map[string]map[string]any{"get_task": {"task_id": first.TaskID}, "follow_task": {"task_id": first.TaskID}, "ask_agent": {"agent": "calc", "text": "1", "context_id": first.ContextID}} {
		if r := call(t, other, tool, args); !r.IsError {
			t.Errorf("%s of another visitor: %s", tool, text(r))
		}
	}
	closed := apptest.Start(t, func(c *app.Config) { c.Guests = "off" })
	a := rpc(t, closed.Guest(t), "/mcp", noCaps, "tools/call", tool("ask_agent", map[string]any{"agent": "calc", "text": "1"}))
	if a.code() != -32000 || a.status != 401 && a.status != 403 {
		t.Errorf("where visitors are not served: %d %+v", a.status, a.Error)
	}
}

// TestCards tell how to connect, and nobody of what they may not see.
func TestCards(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	var card struct {
		Schema      string `json:"$schema"`
		Name        string
		Version     string
		Description string
		Remotes     []struct {
			Type, URL string
			Versions  []string `json:"supportedProtocolVersions"`
		}
	}
	for path, at := range map[string]string{"/mcp/server-card": "/mcp", "/.well-known/mcp/server-card.json": "/mcp", "/agents/calc/mcp/server-card": "/agents/calc/mcp"} {
		got := c.Must(http.MethodGet, path, nil, 200)
		if err := json.Unmarshal([]byte(got.Body), &card); err != nil || !strings.HasSuffix(card.Schema, "/v1/server-card.schema.json") || len(card.Remotes) != 1 || card.Remotes[0].URL != p.URL()+at || card.Remotes[0].Type != "streamable-http" || card.Remotes[0].Versions[0] != modern {
			t.Errorf("%s: %+v %v", path, card, err)
		}
		// As the MCP registry calls servers of this host.
		if ns, name, ok := strings.Cut(card.Name, "/"); !ok || ns != "1.0.0.127" || strings.Contains(name, "/") || utf8.RuneCountInString(card.Description) > 100 || card.Version == "" {
			t.Errorf("%s: %+v", path, card)
		}
		if got.Header.Get("Access-Control-Allow-Origin") != "*" || got.Header.Get("Content-Type") != "application/mcp-server-card+json" {
			t.Errorf("%s: %v", path, got.Header)
		}
		if a := c.Do(http.MethodGet, path, nil, set("If-None-Match", got.Header.Get("ETag"))); a.Status != http.StatusNotModified || a.Body != "" {
			t.Errorf("%s again: %d", path, a.Status)
		}
		// The server says of itself what its card says.
		var said struct {
			SupportedVersions []string
			Meta              map[string]struct{ Name, Version string } `json:"_meta"`
			CacheScope        string
			TTL               int `json:"ttlMs"`
		}
		rpc(t, c, at, noCaps, "server/discover", "").result(t, &said)
		if info := said.Meta["io.modelcontextprotocol/serverInfo"]; info.Name != card.Name || info.Version != card.Version || len(said.SupportedVersions) != len(card.Remotes[0].Versions) || said.CacheScope != "public" || said.TTL <= 0 {
			t.Errorf("%s: %+v", at, said)
		}
	}
	var list struct {
		SpecVersion string
		Entries     []struct{ Identifier, Type, URL string }
	}
	c.Get(http.MethodGet, "/.well-known/mcp/catalog.json", nil, 200, &list)
	if list.SpecVersion != "1.0" || len(list.Entries) < 2 || list.Entries[0].URL != p.URL()+"/mcp/server-card" {
		t.Errorf("%+v", list)
	}
	for _, e := range list.Entries {
		if e.Type != "application/mcp-server-card+json" || !strings.HasPrefix(e.Identifier, "urn:air:127.0.0.1:mcp:") {
			t.Errorf("%+v", e)
		}
		c.Must(http.MethodGet, strings.TrimPrefix(e.URL, p.URL()), nil, 200)
	}
}

// TestList_ChangesWithTheAgent: what is kept ready is that of the present
// version.
func TestList_ChangesWithTheAgent(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	name := ada.Agent("public", model.Base(agenttest.Echo))
	names := func() (out []string) {
		var list struct{ Tools []struct{ Name string } }
		rpc(t, ada, "/agents/"+name+"/mcp", noCaps, "tools/list", "").result(t, &list)
		for _, x := range list.Tools {
			out = append(out, x.Name)
		}
		return out
	}
	if got := names(); len(got) != 1 || got[0] != "ask" {
		t.Errorf("%q", got)
	}
	ada.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"skills": []map[string]any{{"id": "say it again!", "name": "One"}, {"id": "say-it-again", "name": "Two"}, {"id": "say it again?", "name": "Three"}, {"id": "日本", "name": "Four"}}}, 200)
	if got := strings.Join(names(), " "); got != "say_it_again say-it-again say_it_again_2 skill" {
		t.Errorf("%q", got)
	}
}

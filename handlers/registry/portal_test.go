package registry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// own is the namespace of portals in tests.
const own = "1.0.0.127"

type server struct {
	Server struct {
		Name, Version, Description string
		Remotes                    []struct{ Type, URL string }
	}
	Meta map[string]struct {
		Status, StatusMessage, PublishedAt, UpdatedAt, StatusChangedAt string
		IsLatest                                                       bool
		Page                                                           string
	} `json:"_meta"`
}

func (s server) official() string {
	o := s.Meta["io.modelcontextprotocol.registry/official"]
	out := s.Server.Name + " " + s.Server.Version + " " + o.Status
	if o.IsLatest {
		out += " latest"
	}
	return out
}

type list struct {
	Servers  []server
	Metadata struct {
		NextCursor string
		Count      int
	}
}

func (l list) String() string {
	var out []string
	for _, s := range l.Servers {
		out = append(out, s.official())
	}
	return strings.Join(out, ", ")
}

type problem struct {
	Title, Detail string
	Status        int
	Errors        []struct{ Message, Location string }
}

func get(t *testing.T, c *apptest.Client, path string) (l list) {
	t.Helper()
	c.Get(http.MethodGet, path, nil, http.StatusOK, &l)
	if l.Metadata.Count != len(l.Servers) {
		t.Errorf("%s counts %d of %d", path, l.Metadata.Count, len(l.Servers))
	}
	return l
}

// serverJSON is a server.json; an empty remote makes it one to install.
func serverJSON(name, version, remote string) map[string]any {
	s := map[string]any{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json", "name": name, "description": "Forecasts of rain.", "version": version}
	if remote != "" {
		s["remotes"] = []any{map[string]any{"type": "streamable-http", "url": remote}}
	} else {
		s["packages"] = []any{map[string]any{"registryType": "npm", "identifier": "rain", "version": version, "transport": map[string]any{"type": "stdio"}}}
	}
	return s
}

// anonymous is a publisher of the namespace for tests.
func anonymous(t *testing.T, p *apptest.Portal) *apptest.Client {
	t.Helper()
	c := p.Guest(t)
	var out struct {
		RegistryToken string `json:"registry_token"`
	}
	c.Get(http.MethodPost, "/v0/auth/none", nil, http.StatusOK, &out)
	c.Token = p.Canary(out.RegistryToken)
	return c
}

const anonymousSpace = "io.modelcontextprotocol.anonymous/"

// foundEverywhere looks for a server, which tells of forecasts, and for the
// agent that it is: on the page, by every face that searches, and in the feed.
func foundEverywhere(t *testing.T, p *apptest.Portal, server, agent string) {
	t.Helper()
	c := p.Guest(t)
	finds := func(method, path string, body any, want string) {
		t.Helper()
		if b := c.Must(method, path, body, http.StatusOK).Body; !strings.Contains(b, want) {
			t.Errorf("%s does not find %s: %.300s", path, want, b)
		}
	}
	_, last, _ := strings.Cut(server, "/")
	for _, path := range []string{"/agents?q=forecasts", "/api/v1/search?q=forecasts", "/agents/feed?q=forecasts"} {
		finds(http.MethodGet, path, nil, agent)
	}
	for _, path := range []string{"/v0.1/servers?search=" + strings.ToUpper(last), "/v0/servers?version=latest"} {
		finds(http.MethodGet, path, nil, `"name":"`+server+`"`)
	}
	finds(http.MethodPost, "/ard/search", map[string]any{"query": map[string]any{"text": "forecasts"}}, "/agents/"+agent)
	finds(http.MethodPost, "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": "search_agents", "arguments": map[string]any{"query": "forecasts"}}}, agent)
}

// What is published is found wherever agents are.
func TestPortal_PublishedIsFoundEverywhere(t *testing.T) {
	t.Parallel()
	tools := agenttest.NewMCPServer(t, true)
	p := apptest.Start(t)
	pub, c := anonymous(t, p), p.Guest(t)
	name := anonymousSpace + "rain"
	var s server
	pub.Get(http.MethodPost, "/v0.1/publish", serverJSON(name, "1.0.0", tools.URL), http.StatusOK, &s)
	if s.official() != name+" 1.0.0 active latest" {
		t.Errorf("%+v", s)
	}
	var a struct {
		Name, Kind string
		Skills     []struct{ ID string }
	}
	c.Get(http.MethodGet, "/api/v1/agents/rain-anonymous-modelcontextprotocol-io", nil, http.StatusOK, &a)
	if a.Kind != "mcp" || len(a.Skills) != 1 || a.Skills[0].ID != "echo" {
		t.Errorf("%+v", a)
	}
	foundEverywhere(t, p, name, "rain-anonymous-modelcontextprotocol-io")
	page := s.Meta[own+"/agent"].Page
	path, ok := strings.CutPrefix(page, p.URL())
	if !ok {
		t.Fatalf("its page is %q", page)
	}
	if b := c.Must(http.MethodGet, path, nil, http.StatusOK).Body; !strings.Contains(b, p.URL()+"/v0.1/servers/"+url.PathEscape(name)+"/versions/latest") {
		t.Error("its page does not say how the registry calls it")
	}
}

// Names are decoded once, and both names of the API are the same.
func TestVersions_AreReadByName(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	pub, c := anonymous(t, p), p.Guest(t)
	name := anonymousSpace + "pack"
	for _, v := range []string{"1.0.0", "1.0.0+b%2f", "2.0.0-rc.1"} {
		pub.Must(http.MethodPost, "/v0/publish", serverJSON(name, v, ""), http.StatusOK)
	}
	for _, base := range []string{"/v0", "/v0.1"} {
		at := base + "/servers/" + url.PathEscape(name) + "/versions"
		if got, want := get(t, c, at).String(), name+" 1.0.0 active, "+name+" 1.0.0+b%2f active, "+name+" 2.0.0-rc.1 active latest"; got != want {
			t.Errorf("%s\ngot  %s\nwant %s", at, got, want)
		}
		for path, status := range map[string]int{
			at + "/latest":                          http.StatusOK,
			at + "/1.0.0":                           http.StatusOK,
			at + "/" + url.PathEscape("1.0.0+b%2f"): http.StatusOK,
			at + "/1.0.0+b/":                        http.StatusNotFound,
			at + "/9.9.9":                           http.StatusNotFound,
			base + "/servers/" + name + "/versions": http.StatusNotFound,
			base + "/servers/" + url.PathEscape(url.PathEscape(name)) + "/versions": http.StatusNotFound,
			base + "/servers/nobody%2Fnothing/versions/latest":                      http.StatusNotFound,
			base + "/servers/%00%2F%00/versions/latest":                             http.StatusNotFound,
			base + "/nothing": http.StatusNotFound,
		} {
			a := c.Do(http.MethodGet, path, nil)
			var e problem
			if err := json.Unmarshal([]byte(a.Body), &e); a.Status != status || err != nil || status != http.StatusOK && (e.Detail == "" || e.Status != status || a.Header.Get("Content-Type") != "application/problem+json") {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
		for path, want := range map[string]string{"/ping": `{"pong":true}`, "/health": `{"status":"ok"}`, "/version": `"version":"agentsite `} {
			if b := c.Must(http.MethodGet, base+path, nil, http.StatusOK).Body; !strings.Contains(b, want) {
				t.Errorf("%s: %s", path, b)
			}
		}
	}
}

func TestServers_PagesAndFilters(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	pub, c := anonymous(t, p), p.Guest(t)
	var want []string
	for i := range 9 {
		name := fmt.Sprintf("%stool-%d", anonymousSpace, i%5)
		version := fmt.Sprintf("1.%d.0", i)
		pub.Must(http.MethodPost, "/v0/publish", serverJSON(name, version, ""), http.StatusOK)
		want = append(want, name+" "+version)
	}
	slices.Sort(want)
	var got []string
	for path := "/v0.1/servers?limit=2"; path != ""; {
		l := get(t, c, path)
		for _, s := range l.Servers {
			got = append(got, s.Server.Name+" "+s.Server.Version)
		}
		path = ""
		if l.Metadata.NextCursor != "" {
			path = "/v0.1/servers?limit=2&cursor=" + url.QueryEscape(l.Metadata.NextCursor)
			// What is published before it moves nothing.
			pub.Must(http.MethodPost, "/v0/publish", serverJSON(anonymousSpace+"aaa", fmt.Sprintf("0.0.%d", len(got)), ""), http.StatusOK)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if l := get(t, c, "/v0.1/servers?version=latest&search=tool-"); len(l.Servers) != 5 {
		t.Errorf("the latest: %s", l)
	}
	if l := get(t, c, "/v0.1/servers?version=1.3.0"); l.String() != anonymousSpace+"tool-3 1.3.0 active" {
		t.Errorf("one version: %s", l)
	}
	if l := get(t, c, "/v0.1/servers?search=tool_1"); len(l.Servers) != 0 {
		t.Errorf("an underscore stands for anything: %s", l)
	}
	before := get(t, c, "/v0.1/servers?version=1.8.0").Servers[0].Meta["io.modelcontextprotocol.registry/official"].UpdatedAt
	var s server
	pub.Get(http.MethodPatch, "/v0.1/servers/"+url.PathEscape(anonymousSpace+"tool-0")+"/versions/1.0.0/status", map[string]string{"status": "deleted", "statusMessage": "Broken."}, http.StatusOK, &s)
	if o := s.Meta["io.modelcontextprotocol.registry/official"]; o.Status != "deleted" || o.StatusMessage != "Broken." {
		t.Errorf("%+v", s)
	}
	if l := get(t, c, "/v0.1/servers?version=1.0.0"); len(l.Servers) != 0 {
		t.Errorf("deleted: %s", l)
	}
	changed := s.Meta["io.modelcontextprotocol.registry/official"].UpdatedAt
	if l := get(t, c, "/v0.1/servers?updated_since="+url.QueryEscape(changed)); !strings.Contains(l.String(), "tool-0 1.0.0 deleted") || changed < before {
		t.Errorf("since %s: %s", changed, l)
	}
	if l := get(t, c, "/v0.1/servers?updated_since=2999-01-01T00:00:00Z"); len(l.Servers) != 0 {
		t.Errorf("in the future: %s", l)
	}
	for query, status := range map[string]int{
		"search=ab": 422, "search=+++a+++": 422, "limit=0": 422, "limit=101": 422, "limit=x": 422, "updated_since=yesterday": 400, "include_deleted=maybe": 422,
		"updated_since=2026-01-01T00:00:00Z&include_deleted=false": 400, "limit=1&limit=2": 422, "cursor=" + strings.Repeat("a", 300): 422, "search=%00%00%00": 422,
	} {
		a := c.Do(http.MethodGet, "/v0.1/servers?"+query, nil)
		var e problem
		if err := json.Unmarshal([]byte(a.Body), &e); err != nil || a.Status != status || e.Status != status || e.Title == "" || e.Detail == "" {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		}
	}
}

// A registered agent is in the list under the portal's namespace, reached
// through the portal: its own address is nobody else's to know.
func TestServers_ListRegisteredAgents(t *testing.T) {
	t.Parallel()
	tools := agenttest.NewMCPServer(t, true)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	for _, v := range []string{"public", "unlisted", "private"} {
		ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "tools-" + v, "title": "Tools", "description": strings.Repeat("Long words. ", 30), "kind": "mcp", "endpoint": tools.URL + "?key=secret", "visibility": v}, http.StatusCreated)
	}
	c := p.Guest(t)
	l := get(t, c, "/v0.1/servers")
	if len(l.Servers) != 1 || !strings.HasPrefix(l.Servers[0].official(), own+"/tools-public ") || !strings.HasSuffix(l.String(), " active latest") {
		t.Fatalf("%s", l)
	}
	s := l.Servers[0]
	if len(s.Server.Remotes) != 1 || s.Server.Remotes[0].URL != p.URL()+"/agents/tools-public/mcp" || len([]rune(s.Server.Description)) > 100 {
		t.Errorf("%+v", s)
	}
	at := "/v0.1/servers/" + url.PathEscape(s.Server.Name) + "/versions"
	if one := get(t, c, at); one.String() != l.String() {
		t.Errorf("%s", one)
	}
	c.Must(http.MethodGet, at+"/"+s.Server.Version, nil, http.StatusOK)
	c.Must(http.MethodGet, strings.Replace(at, "public", "private", 1), nil, http.StatusNotFound)
	if b := c.Must(http.MethodGet, "/v0.1/servers", nil, http.StatusOK).Body; strings.Contains(b, "secret") {
		t.Errorf("it tells the agent's own address: %s", b)
	}
	// What is shown is a server.json in every respect.
	var raw struct {
		Servers []struct{ Server json.RawMessage }
	}
	c.Get(http.MethodGet, "/v0.1/servers", nil, http.StatusOK, &raw)
	var found struct {
		Valid  bool
		Issues []any
	}
	c.Get(http.MethodPost, "/v0.1/validate", string(raw.Servers[0].Server), http.StatusOK, &found)
	if !found.Valid || len(found.Issues) != 0 {
		t.Errorf("%+v", found)
	}
	ada.Must(http.MethodPatch, "/api/v1/agents/tools-public", map[string]any{"status": map[string]string{"state": "deprecated", "message": "Use the other."}}, http.StatusOK)
	if l := get(t, c, "/v0.1/servers"); !strings.HasSuffix(l.String(), "deprecated latest") {
		t.Errorf("%s", l)
	}
	ada.Must(http.MethodDelete, "/api/v1/agents/tools-public", nil, http.StatusNoContent)
	if l := get(t, c, "/v0.1/servers"); len(l.Servers) != 0 {
		t.Errorf("removed: %s", l)
	}
	if l := get(t, c, "/v0.1/servers?include_deleted=true"); !strings.HasSuffix(l.String(), "deleted latest") {
		t.Errorf("removed: %s", l)
	}
}

func TestPublish_Refuses(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	write, read, pub := ada.NewToken("agents:write"), ada.NewToken("agents:read"), anonymous(t, p)
	mine, theirs := serverJSON(own+"/rain", "1.0.0", "http://127.0.0.1:4/mcp"), serverJSON(anonymousSpace+"rain", "1.0.0", "")
	ranged := serverJSON(anonymousSpace+"rain", "1.x", "")
	extra := serverJSON(anonymousSpace+"rain", "1.0.0", "")
	extra["owner"] = "me"
	for _, c := range []struct {
		what   string
		as     *apptest.Client
		body   any
		status int
		says   string
	}{
		{"a visitor", p.Guest(t), theirs, 401, "Log in first"},
		{"a session", ada, mine, 401, "Log in first"},
		{"no token", p.Bearer(t, "agsr_AAAA"), theirs, 401, "log in again"},
		{"another's token", p.Bearer(t, "eyJhbGciOiJFZERTQSJ9.e30.AA"), theirs, 401, ""},
		{"a token without the scope", read, mine, 403, "agents:write"},
		{"another namespace", pub, mine, 403, "belongs to this portal"},
		{"another namespace, by account", write, theirs, 403, "You have permission to publish: " + own + "/*"},
		{"to install, under the portal's name", write, serverJSON(own+"/rain", "1.0.0", ""), 400, "streamable-http"},
		{"a range", pub, ranged, 422, "version must be a specific version"},
		{"a field nobody knows", pub, extra, 422, "unexpected property"},
		{"no JSON", pub, "{", 400, "not JSON"},
		{"too long", pub, `{"description":"` + strings.Repeat("a", 33<<10) + `"}`, 413, "32768"},
	} {
		a := c.as.Do(http.MethodPost, "/v0.1/publish", c.body)
		var e problem
		if err := json.Unmarshal([]byte(a.Body), &e); err != nil || a.Status != c.status || e.Status != c.status || e.Title == "" || e.Detail == "" || !strings.Contains(a.Body, c.says) {
			t.Errorf("%s: %d %s", c.what, a.Status, a.Body)
		}
		if a.Status == http.StatusUnauthorized && a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %v", c.what, a.Header)
		}
	}
	write.Must(http.MethodPost, "/v0.1/publish", mine, http.StatusOK)
	a := write.Must(http.MethodPost, "/v0.1/publish", mine, http.StatusBadRequest)
	if !strings.Contains(a.Body, `"detail":"Failed to publish server","errors":[{"message":"invalid version: cannot publish duplicate version`) {
		t.Error(a.Body)
	}
	// A registry token opens no other door.
	for _, path := range []string{"/api/v1/agents?owner=me", "/ard/agents", "/v1/models"} {
		if a := pub.Do(http.MethodGet, path, nil); a.Status != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, a.Status)
		}
	}
	// What another portal admits everybody to, one with accounts does not.
	closed := apptest.Start(t, func(c *app.Config) { c.Accounts = "invite" })
	closed.Guest(t).Must(http.MethodPost, "/v0/auth/none", nil, http.StatusForbidden)
	closed.User(t, "ada").NewToken("agents:write").Must(http.MethodPost, "/v0.1/publish", mine, http.StatusOK)
}

// The operator takes away what a domain published, as any other agent.
func TestOperator_WithdrawsAndRemoves(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	pub, c, boss := anonymous(t, p), p.Guest(t), p.Operator(t, "boss")
	name := anonymousSpace + "rain"
	pub.Must(http.MethodPost, "/v0/publish", serverJSON(name, "1.0.0", "http://127.0.0.1:4/mcp"), http.StatusOK)
	const agent = "rain-anonymous-modelcontextprotocol-io"
	if b := boss.Must(http.MethodGet, "/admin/agents", nil, http.StatusOK).Body; !strings.Contains(b, agent) {
		t.Errorf("the operator does not see it")
	}
	boss.Must(http.MethodPost, "/admin/agents/"+agent+"/withdraw", url.Values{}, http.StatusSeeOther)
	if l := get(t, c, "/v0.1/servers"); len(l.Servers) != 0 {
		t.Errorf("%s", l)
	}
	if l := get(t, c, "/v0.1/servers?updated_since=2020-01-01T00:00:00Z"); l.String() != name+" 1.0.0 deleted latest" {
		t.Errorf("%s", l)
	}
	at := "/v0/servers/" + url.PathEscape(name) + "/status"
	pub.Must(http.MethodPatch, at, map[string]string{"status": "active"}, http.StatusForbidden)
	boss.Must(http.MethodPost, "/admin/agents/"+agent+"/restore", url.Values{}, http.StatusSeeOther)
	if l := get(t, c, "/v0.1/servers"); l.String() != name+" 1.0.0 active latest" {
		t.Errorf("%s", l)
	}
	boss.NewToken().Must(http.MethodDelete, "/api/v1/agents/"+agent, nil, http.StatusNoContent)
	l := get(t, c, "/v0.1/servers?include_deleted=true")
	if l.String() != name+" 1.0.0 deleted latest" || strings.Contains(l.Servers[0].Server.Description, "rain") || len(l.Servers[0].Server.Remotes) != 0 {
		t.Errorf("%+v", l)
	}
	pub.Must(http.MethodPost, "/v0/publish", serverJSON(name, "1.1.0", "http://127.0.0.1:4/mcp"), http.StatusBadRequest)
}

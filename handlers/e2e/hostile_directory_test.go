package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestHostileDirectory puts payloads into what only the directory shows: tools
// and their forms, versions and their differences, notes, messages of status,
// reports, notices and suggestions.
func TestHostileDirectory(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	mal, op := p.User(t, "mal"), p.Operator(t, "op")
	far := agenttest.NewOpenAIServer(t).Base(agenttest.Echo)
	list := payloads()
	m, o := visit(t, root, p, desk).as(mal), visit(t, root, p, desk).as(op)
	m.allow("400 (Bad Request)")

	var names, paths, forms []string
	for group := range slices.Chunk(list, 24) {
		at := func(i int) string { return group[i%len(group)] }
		name := fmt.Sprintf("tools-%d", len(names))
		names = append(names, name)
		properties := map[string]any{}
		for i := range 8 {
			properties[fmt.Sprintf("%s %d", cut(at(i), 40), i)] = map[string]any{"type": "string", "title": at(i + 8), "description": at(i + 16), "default": at(i), "examples": []string{at(i + 3)}}
		}
		properties["choice"] = map[string]any{"enum": []string{at(0), at(1)}, "title": at(2)}
		schema := map[string]any{"type": "object", "properties": properties, "required": []string{"choice"}}
		body := map[string]any{"name": name, "title": cut(at(0), 100), "description": cut(strings.Join(group[:len(group)/2], "\n\n"), 4000), "kind": "mcp", "endpoint": far, "visibility": "public",
			"skills": []any{map[string]any{"id": cut(at(3), 90), "name": cut(at(4), 100), "description": cut(at(5), 900), "tags": []string{cut(strings.ReplaceAll(at(6), ",", ""), 32)}, "examples": []string{cut(at(7), 300)}}},
			"config": map[string]any{"server": cut(at(8), 200), "instructions": cut(at(9), 900), "tools": []any{map[string]any{"name": "erase", "title": cut(at(10), 300), "description": cut(at(11), 900), "input_schema": schema}}}}
		mal.Must(http.MethodPost, "/api/v1/agents", body, http.StatusCreated)
		mal.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"title": cut(at(12), 100), "description": cut(strings.Join(group[len(group)/2:], "\n\n"), 4000), "note": cut(at(13), 300),
			"status": map[string]any{"state": "deprecated", "message": cut(at(14), 300)}, "limits": map[string]any{"callers": "listed", "listed": []string{"mal"}}}, http.StatusOK)
		p.User(t, fmt.Sprintf("reader-%d", len(names))).Must(http.MethodPost, "/api/v1/agents/"+name+"/report", map[string]any{"reason": "other", "text": cut(strings.Join(group, " "), 1000)}, http.StatusNoContent)
		for _, end := range []string{"", "/edit", "/owner", "/report", "/versions", "/versions/1", "/versions/2"} {
			paths = append(paths, "/agents/"+name+end)
		}
		talk := mal.Conversation(name)
		path := "/chat/" + talk + "?" + url.Values{"agent": {name}, "tool": {"erase"}}.Encode()
		if page := gets(t, p, mal, path); !strings.Contains(page, `/tool"`) {
			t.Errorf("%s has no form of a tool", path)
		}
		forms = append(forms, path)
		mal.Must(http.MethodPost, "/api/v1/searches", map[string]any{"title": cut(at(15), 100), "query": url.Values{"q": {cut(at(16), 100)}, "tag": {at(17)}}.Encode()}, http.StatusCreated)
	}
	m.opensSafely(p, mal, 5, paths...) // 7 pages of each agent: all kinds in turn
	m.opensSafely(p, mal, 3, forms...)
	// What a registration in a file says stands in the form.
	for group := range slices.Chunk(list, 30) {
		text, err := json.Marshal(map[string]any{"name": group[0], "title": group[1], "description": strings.Join(group, " "), "kind": "openai", "endpoint": group[2], "languages": group[3:5], "publisher": group[5],
			"input_modes": group[6:8], "config": map[string]any{"model": group[8], "instructions": group[9]}, "skills": []any{map[string]any{"id": group[10], "name": group[11], "tags": group[12:14], "examples": group[14:16]}}})
		if err != nil {
			t.Fatal(err)
		}
		m.open("/agents/new")
		m.click(".start-card summary")
		m.fill("#card", string(text))
		m.press(".start-card button")
		m.says("Check what it says below")
		m.safe("a registration in a file")
	}
	m.opensSafely(p, mal, 1, "/account", "/notices", "/agents?q=tools", "/")
	o.opensSafely(p, op, 1, "/admin/reports", "/admin/agents", "/notices")
	// Suggestions come by script.
	m.open("/agents")
	m.fill("#q", "script")
	m.until("suggestions or results", `document.querySelector("[role=listbox]:not([hidden]) [role=option]") || location.search.includes("script")`)
	m.safe("suggestions")
}

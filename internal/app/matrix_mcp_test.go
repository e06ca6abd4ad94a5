package app_test

import "testing"

// mcpCells ask as clients of the Model Context Protocol do, in the version of
// the handshake, which demands no headers. Sessions do not count there: who
// sends a cookie and no token is a visitor, and asks from an address of their
// own.
func mcpCells() map[string]cell {
	say := func(method string, params map[string]any) map[string]any {
		return map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
	}
	tool := func(name string, args map[string]any) func(*world, object) any {
		return func(*world, object) any {
			return say("tools/call", map[string]any{"name": name, "arguments": args})
		}
	}
	list := func(*world, object) any { return say("tools/list", map[string]any{}) }
	out := map[string]cell{
		"GET /mcp":                                      {},
		"DELETE /mcp":                                   {},
		"GET /mcp/tools":                                {},
		"DELETE /mcp/tools":                             {},
		"POST /mcp/tools":                               {body: list},
		"POST /mcp [list]":                              {body: list},
		"POST /mcp [search]":                            {body: tool("search_agents", map[string]any{"query": "calculator"})},
		"POST /mcp [ask]":                               {body: tool("ask_agent", map[string]any{"agent": "calc", "text": "2+2"}), alone: true},
		"GET /mcp/server-card":                          {},
		"GET /.well-known/mcp/server-card.json":         {},
		"GET /.well-known/mcp/catalog.json":             {},
		"GET /.well-known/oauth-protected-resource":     {},
		"GET /.well-known/oauth-protected-resource/mcp": {},
	}
	for _, v := range []string{"public", "private"} {
		same := func(_ *testing.T, w *world, _ string) object {
			if v == "private" {
				return object{name: w.private}
			}
			return object{name: w.public}
		}
		out["POST /agents/{name}/mcp ["+v+"]"] = cell{object: same, body: tool("ask", map[string]any{"text": "2+2"}), alone: true}
		out["POST /agents/{name}/mcp ["+v+", list]"] = cell{object: same, body: list}
		out["GET /agents/{name}/mcp/server-card ["+v+"]"] = cell{object: same}
		out["GET /agents/{name}/mcp ["+v+"]"] = cell{object: same}
		out["DELETE /agents/{name}/mcp ["+v+"]"] = cell{object: same}
		out["GET /.well-known/oauth-protected-resource/agents/{name}/mcp ["+v+"]"] = cell{object: same}
	}
	return out
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"agentsite/bench/proc"
	"agentsite/bench/report"
)

// Largest permitted costs, as ratios of the portal to the sample.
const (
	maxCPUA2A   = 0.5
	minSpeedA2A = 2.0
	maxCPUMCP   = 1.5
)

// pair starts the sample of a protocol and a portal on a new folder, and returns an API token of each
// account. The caller must end both processes.
func (b *bench) pair(protocol string) (sampled, portal *proc.Process, tokens []string, err error) {
	dir := filepath.Join(b.Dir, protocol)
	if tokens, err = seed(dir, b.people); err != nil {
		return nil, nil, nil, fmt.Errorf("fill a portal: %w", err)
	}
	if portal, err = b.Serve(dir); err != nil {
		return nil, nil, nil, err
	}
	if sampled, err = sample(protocol); err != nil {
		portal.Kill()
		return nil, nil, nil, err
	}
	return sampled, portal, tokens, nil
}

// bearer returns a function that gives each session the token of one of the accounts.
func bearer(tokens []string) func(int) (http.Header, error) {
	return func(i int) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + tokens[i%len(tokens)]}}, nil
	}
}

// question is trivial for the calculator, so that its processor time does not count.
const question = "1 + 1"

// a2a compares blocking SendMessage requests, each of which begins a conversation.
func (b *bench) a2a() error {
	sampled, portal, tokens, err := b.pair("a2a")
	if err != nil {
		return err
	}
	defer sampled.Kill()
	defer portal.Kill()
	c := call{path: "/invoke", says: `"TASK_STATE_COMPLETED"`,
		header: http.Header{"Content-Type": {"application/json"}, "A2a-Version": {"1.0"}},
		body: func(w, i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"SendMessage","params":{"message":{"messageId":"m-%d-%d","role":"ROLE_USER","parts":[{"text":"%s"}]}}}`, i, w, i, question)
		}}
	theirs := newSide(sampled, c)
	c.path, c.each = "/agents/calc/a2a", bearer(tokens)
	ours := newSide(portal, c)
	for _, n := range b.atOnce {
		c, err := b.compare(n, theirs, ours)
		if err != nil {
			return err
		}
		cpu, speed := report.Ratios(c.cpu[1], c.cpu[0]), report.Ratios(c.speed[1], c.speed[0])
		l := c.line(fmt.Sprintf("A2A SendMessage, blocking, a durable task each, c=%d: CPU", n))
		l.Ratio, l.Bar, l.Met = report.Spread(cpu), fmt.Sprintf("≤ %.1f×", maxCPUA2A), report.Median(cpu) <= maxCPUA2A
		b.Add(l)
		b.Add(report.Line{What: "the same: requests a second", Ratio: report.Spread(speed), Doubt: c.doubt, Others: c.others,
			Bar: fmt.Sprintf("≥ %.1f×", minSpeedA2A), Judged: true, Met: report.Median(speed) >= minSpeedA2A})
	}
	return nil
}

// tool is an MCP tool: the path of its server, its name and its arguments as JSON.
type tool struct{ path, name, args string }

// mcp compares tools/call in both versions of MCP. The sample's tool returns a greeting, the portal's
// tool asks an agent.
func (b *bench) mcp() error {
	sampled, portal, tokens, err := b.pair("mcp")
	if err != nil {
		return err
	}
	defer sampled.Kill()
	defer portal.Kill()
	ask := tool{"/mcp", "ask_agent", `{"agent":"calc","text":"` + question + `"}`}
	for _, era := range []struct {
		name string
		path string // address of the sample's server
		of   func(p *proc.Process, t tool, each func(int) (http.Header, error)) *side
	}{{"2026-07-28", "/modern", modern}, {"2025-11-25", "/mcp", legacy}} {
		theirs, ours := era.of(sampled, tool{era.path, "greet", `{"name":"you"}`}, nil), era.of(portal, ask, bearer(tokens))
		c, err := b.compare(b.atOnce[0], theirs, ours)
		if err != nil {
			return err
		}
		cpu := report.Ratios(c.cpu[1], c.cpu[0])
		l := c.line(fmt.Sprintf("MCP tools/call, %s, an agent's task each, c=%d: CPU", era.name, b.atOnce[0]))
		l.Ratio, l.Bar, l.Met = report.Spread(cpu), fmt.Sprintf("≤ %.1f×", maxCPUMCP), report.Median(cpu) <= maxCPUMCP
		b.Add(l)
	}
	return nil
}

const accept = "application/json, text/event-stream"

// modern returns a side for the version of MCP without sessions: each request has all that the server
// needs.
func modern(p *proc.Process, t tool, each func(int) (http.Header, error)) *side {
	return newSide(p, call{path: t.path, says: `"content":[`, each: each,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {accept}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {t.name}},
		body: func(_, i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, i, t.name, t.args)
		}})
}

// legacy returns a side for the version of MCP with sessions, which begin before the first round.
func legacy(p *proc.Process, t tool, each func(int) (http.Header, error)) *side {
	s := newSide(p, call{path: t.path, says: `"content":[`,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {accept}},
		body: func(_, i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, i, t.name, t.args)
		}})
	begun := make(map[int]http.Header)
	s.each = func(i int) (http.Header, error) {
		if h := begun[i]; h != nil {
			return h, nil
		}
		h := s.header.Clone()
		if each != nil {
			more, err := each(i)
			if err != nil {
				return nil, err
			}
			for k, v := range more {
				h[k] = v
			}
		}
		head, b, err := s.ask(h, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
		if err != nil {
			return nil, fmt.Errorf("initialize: %w", err)
		}
		if len(b) == 0 {
			return nil, errors.New("initialize was answered with nothing")
		}
		h.Set("Mcp-Protocol-Version", "2025-11-25")
		if id := head.Get("Mcp-Session-Id"); id != "" {
			h.Set("Mcp-Session-Id", id)
		}
		done, _ := json.Marshal(map[string]string{"jsonrpc": "2.0", "method": "notifications/initialized"})
		if _, _, err := s.ask(h, string(done)); err != nil {
			return nil, fmt.Errorf("initialized: %w", err)
		}
		begun[i] = h
		return h, nil
	}
	return s
}

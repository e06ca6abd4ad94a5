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

// The bars, each to the sample.
const (
	minA2A     = 2.5 // requests a second, of several connections
	maxWaitA2A = 1.0 // time of a request, of one
	maxMCP     = 1.5 // processor time of a call
)

// pair starts the sample of a protocol and a portal on a new folder.
func (b *bench) pair(protocol string) (sampled, portal *proc.Process, tokens []string, err error) {
	dir := filepath.Join(b.dir, protocol)
	if tokens, err = seed(dir, b.people); err != nil {
		return nil, nil, nil, fmt.Errorf("fill a portal: %w", err)
	}
	if portal, err = proc.Start("portal", b.binary, "serve", "--listen", "127.0.0.1:0", "--data", dir, "--log-level", "warn"); err != nil {
		return nil, nil, nil, err
	}
	if sampled, err = sample(protocol); err != nil {
		portal.Kill()
		return nil, nil, nil, err
	}
	return sampled, portal, tokens, nil
}

// bearer gives each session the token of one of the people.
func bearer(tokens []string) func(int) (http.Header, error) {
	return func(i int) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + tokens[i%len(tokens)]}}, nil
	}
}

// question is what is asked: it takes the agent that calculates no time, and
// an echo no longer.
const question = "1 + 1"

// a2a compares a blocking SendMessage that opens a conversation.
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
		if err := b.compare(n, theirs, ours); err != nil {
			return err
		}
		speed := report.Ratios(ours.speed, theirs.speed)
		l := line(fmt.Sprintf("A2A SendMessage, blocking, JSON-RPC, a task each, c=%d: requests a second", n), theirs, ours, speed)
		l.Gated = true
		if n == 1 { // one after the other waits for the disk
			l.Bar = fmt.Sprintf("p50 ≤ %.1f×", maxWaitA2A)
			l.Met = float64(report.Percentile(ours.times, 0.5)) <= maxWaitA2A*float64(report.Percentile(theirs.times, 0.5))
		} else {
			l.Bar, l.Met = fmt.Sprintf("≥ %.1f×", minA2A), report.Median(speed) >= minA2A
		}
		b.Add(l)
		b.Add(report.Line{What: "  its processor time", Ratio: report.Spread(report.Ratios(ours.cpu, theirs.cpu))})
	}
	return nil
}

// tool is how a tool is called of either server.
type tool struct{ path, name, args string }

// mcp compares tools/call in both eras: the tool of the sample says hi, that
// of the portal asks an agent.
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
		path string // of the sample
		of   func(p *proc.Process, t tool, each func(int) (http.Header, error)) *side
	}{{"2026-07-28", "/modern", modern}, {"2025-11-25", "/mcp", legacy}} {
		theirs, ours := era.of(sampled, tool{era.path, "greet", `{"name":"you"}`}, nil), era.of(portal, ask, bearer(tokens))
		for _, n := range b.atOnce {
			if err := b.compare(n, theirs, ours); err != nil {
				return err
			}
			cpu := report.Ratios(ours.cpu, theirs.cpu)
			l := line(fmt.Sprintf("MCP tools/call, %s, an agent's task each, c=%d: processor time", era.name, n), theirs, ours, cpu)
			l.Bar, l.Gated, l.Met = fmt.Sprintf("≤ %.1f×", maxMCP), true, report.Median(cpu) <= maxMCP
			b.Add(l)
		}
	}
	return nil
}

const accept = "application/json, text/event-stream"

// modern calls without a session: each request says what it needs.
func modern(p *proc.Process, t tool, each func(int) (http.Header, error)) *side {
	return newSide(p, call{path: t.path, says: `"content":[`, each: each,
		header: http.Header{"Content-Type": {"application/json"}, "Accept": {accept}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {t.name}},
		body: func(_, i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, i, t.name, t.args)
		}})
}

// legacy calls in sessions that are begun before the first round.
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

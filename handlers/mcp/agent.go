package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/schema"
	"agentsite/internal/task"
)

// maxToolName is the longest tool name, in bytes, that all clients and models accept.
const maxToolName = 64

// agentOffer returns the content of an agent's MCP server: a tool for each skill, or the agent's own
// tools if it is an MCP server itself.
func (d *Handler) agentOffer(a hub.Agent) endpoint.Offer {
	own := tasks{d: d, agent: a.ID}
	o := endpoint.Offer{
		Name: d.serverName(a.Handle()), Title: cmp.Or(a.Title, a.Name), Version: strconv.Itoa(max(a.Version, 1)),
		Website:      d.cfg.URL + "/agents/" + a.Handle(),
		Instructions: a2a.DescribeRelay(a, d.portalHost()).Description, TTL: keepLists, Private: !a.Listable(),
		Resources: resources{d: d, agent: a.Handle()}, Tasks: own, Feeds: own,
	}
	taken := make(map[string]bool)
	if tools := toolsOf(a); len(tools) > 0 {
		for _, t := range tools {
			o.Tools = append(o.Tools, d.remoteTool(a, t, toolName(t.Name, taken)))
		}
		return o
	}
	for _, s := range a.Skills {
		o.Tools = append(o.Tools, d.skillTool(a, s, toolName(cmp.Or(s.ID, s.Name), taken)))
	}
	if len(o.Tools) == 0 {
		o.Tools = append(o.Tools, d.skillTool(a,
			hub.Skill{Name: "Ask " + cmp.Or(a.Title, a.Name), Description: a.Description}, toolName("ask", taken)))
	}
	return o
}

// toolsOf returns the tools of an agent that is an MCP server itself. Tools without a usable input schema
// are left out.
func toolsOf(a hub.Agent) []hub.Tool {
	var conf hub.MCPConfig
	if a.Kind != hub.MCP || json.Unmarshal(a.Config, &conf) != nil {
		return nil
	}
	var out []hub.Tool
	for _, t := range conf.Tools {
		var kind struct{ Type string }
		if len(t.InputSchema) == 0 {
			t.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		if t.Name == "" || json.Unmarshal(t.InputSchema, &kind) != nil || kind.Type != "object" ||
			schema.Check(t.InputSchema) != nil {
			continue
		}
		out = append(out, t)
	}
	return out
}

// toolName returns a name for a skill that every client accepts and that is not in taken, and adds it
// there. The name stays the same as long as the skills and their order do.
func toolName(s string, taken map[string]bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	name := strings.Trim(b.String(), "_")
	name = cmp.Or(name[:min(len(name), maxToolName-4)], "skill") // leaves space for a number
	base := name
	for n := 2; taken[name]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	taken[name] = true
	return name
}

// skillTool returns a tool that asks the agent; its arguments are a text and, optionally, a conversation.
func (d *Handler) skillTool(a hub.Agent, s hub.Skill, name string) endpoint.Tool {
	text := map[string]any{"type": "string", "minLength": 1,
		"description": "What to ask or tell the agent, with everything it needs to know"}
	if len(s.Examples) > 0 {
		text["examples"] = s.Examples
	}
	in, err := json.Marshal(map[string]any{"type": "object", "required": []string{"text"},
		"additionalProperties": false, "properties": map[string]any{
			"text": text, "context_id": map[string]any{"type": "string",
				"description": "The context_id of an answer before, to go on in the same conversation or to answer what the agent asked back"}}})
	if err != nil { // maps of strings always encode
		panic(err)
	}
	no := false
	return endpoint.Tool{Name: name, Title: a2a.Line(cmp.Or(s.Name, s.ID), 100),
		Description: cmp.Or(s.Description, s.Name, a.Description), Input: in, Output: json.RawMessage(answerSchema),
		Hints: &endpoint.Hints{Destructive: &no},
		Run: func(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
			args := argumentsOf(c)
			q := question{agent: a.Handle(), context: args.readText("context_id", maxIDText),
				parts: []task.Part{task.TextPart(args.requireText("text", chat.MaxTextBytes))}}
			if bad := args.checkAll(); bad != nil {
				return *bad, nil
			}
			return d.runQuestion(ctx, c, q)
		}}
}

// remoteTool returns a tool that calls the same tool of an agent that is an MCP server, with that
// server's input schema.
func (d *Handler) remoteTool(a hub.Agent, t hub.Tool, name string) endpoint.Tool {
	return endpoint.Tool{Name: name, Title: a2a.Line(t.Title, 100), Description: a2a.Text(t.Description, 4000),
		Input: t.InputSchema, Output: json.RawMessage(answerSchema), Hints: &endpoint.Hints{ReadOnly: t.ReadOnly},
		Run: func(ctx context.Context, c *endpoint.Call) (endpoint.Result, error) {
			if wrong := schema.Validate(t.InputSchema, c.Raw); wrong != nil && c.State == "" {
				return endpoint.Failure("The arguments do not fit. " + schema.Sentence(wrong) + "."), nil
			}
			data, err := json.Marshal(map[string]any{"tool": t.Name, "arguments": c.Raw})
			if err != nil {
				return endpoint.Result{}, fmt.Errorf("write a tool call: %w", err)
			}
			return d.runQuestion(ctx, c, question{agent: a.Handle(),
				parts: []task.Part{task.TextPart(cmp.Or(t.Title, t.Name)),
					{Data: data, MediaType: "application/json"}}})
		}}
}

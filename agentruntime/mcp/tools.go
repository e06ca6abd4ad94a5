package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/a2a"
	"agentsite/internal/egress"
	"agentsite/internal/hub"
	"agentsite/internal/schema"
)

const (
	maxTools       = 64
	maxPages       = 32
	maxToolName    = 128      // bytes of a tool's name
	maxToolText    = 1000     // runes of a description
	maxToolTitle   = 100      // runes of a title
	maxSchema      = 16 << 10 // bytes of one tool's schema
	maxToolsBytes  = 128 << 10
	maxInstruction = 4000 // runes of the server's instructions
)

// anySchema replaces a schema that cannot be used: the server checks the arguments itself.
const anySchema = `{"type":"object"}`

// offered is a tool of the server with data that hub.Tool does not hold.
type offered struct {
	hub.Tool
	// Again is true when a call may be repeated: it changes nothing, or nothing more the second time.
	Again bool
}

// listTools lists the server's tools, cut to our bounds. more counts the tools that were left out. The
// error is a *problem or ctx's own.
func (s *session) listTools(ctx context.Context) (list []offered, more int, err error) {
	seen := make(map[string]bool)
	cursors := make(map[string]bool)
	params := &sdk.ListToolsParams{}
	bytes := 0
	for range maxPages {
		var page *sdk.ListToolsResult
		err := s.runRequest(func(ctx context.Context) (err error) {
			page, err = s.ListTools(ctx, params)
			return err
		})
		if err != nil {
			return nil, 0, s.explainError(ctx, err)
		}
		raw := s.wire.listedSchemas()
		for _, t := range page.Tools {
			o, ok := cleanTool(t, raw[t.Name])
			if !ok || seen[t.Name] {
				more++
				continue
			}
			seen[t.Name] = true
			size := len(o.Name) + len(o.Title) + len(o.Description) + len(o.InputSchema)
			if len(list) >= maxTools || bytes+size > maxToolsBytes {
				more++
				continue
			}
			bytes += size
			list = append(list, o)
		}
		if page.NextCursor == "" || cursors[page.NextCursor] || len(list) >= maxTools {
			return list, more, nil
		}
		cursors[page.NextCursor] = true
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return list, more, nil
}

// cleanTool converts a tool of a server. raw is its schema as received, because the SDK's has lost the
// order of its fields.
func cleanTool(t *sdk.Tool, raw json.RawMessage) (offered, bool) {
	if t.Name == "" || len(t.Name) > maxToolName || a2a.Line(t.Name, maxToolName) != t.Name ||
		strings.ContainsAny(t.Name, " \t`") {
		return offered{}, false
	}
	o := offered{Tool: hub.Tool{Name: t.Name, Title: a2a.Line(t.Title, maxToolTitle),
		Description: a2a.Text(t.Description, maxToolText)}}
	if a := t.Annotations; a != nil {
		if o.Title == "" {
			o.Title = a2a.Line(a.Title, maxToolTitle)
		}
		o.ReadOnly = a.ReadOnlyHint
		o.Again = a.ReadOnlyHint || a.IdempotentHint
	}
	if raw == nil && t.InputSchema != nil {
		raw, _ = json.Marshal(t.InputSchema)
	}
	var small bytes.Buffer
	if len(raw) > 0 && len(raw) <= 4*maxSchema && json.Compact(&small, raw) == nil && small.Len() <= maxSchema &&
		schema.Check(small.Bytes()) == nil {
		o.InputSchema = small.Bytes()
	} else {
		o.InputSchema = json.RawMessage(anySchema)
	}
	return o, true
}

// listedSchemas reads the tools' schemas from the latest answer to tools/list, in the order of the
// server. It finds nothing in answers of another form.
func (w *wire) listedSchemas() map[string]json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listing == nil {
		return nil
	}
	b := w.listing.Bytes()
	w.listing = nil
	if trimmed := bytes.TrimSpace(b); len(trimmed) == 0 {
		return nil
	} else if trimmed[0] == '{' {
		return schemasOf(trimmed)
	}
	events := egress.NewEventReader(bytes.NewReader(b))
	for {
		data, err := events.Next()
		if err != nil {
			return nil
		}
		if m := schemasOf(data); m != nil {
			return m
		}
	}
}

func schemasOf(b []byte) map[string]json.RawMessage {
	var msg struct {
		Result struct {
			Tools []struct {
				Name        string          `json:"name"`
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(b, &msg) != nil || len(msg.Result.Tools) == 0 {
		return nil
	}
	out := make(map[string]json.RawMessage)
	for _, t := range msg.Result.Tools {
		if _, dup := out[t.Name]; !dup {
			out[t.Name] = t.InputSchema
		}
	}
	return out
}

// storedTools returns the tools of a configuration. Only those that change nothing are known to be
// repeatable.
func storedTools(cfg hub.MCPConfig) []offered {
	out := make([]offered, len(cfg.Tools))
	for i, t := range cfg.Tools {
		out[i] = offered{Tool: t, Again: t.ReadOnly}
	}
	return out
}

func findTool(tools []offered, name string) *offered {
	for i := range tools {
		if tools[i].Name == name {
			return &tools[i]
		}
	}
	return nil
}

func hubTools(list []offered) []hub.Tool {
	out := make([]hub.Tool, len(list))
	for i, o := range list {
		out[i] = o.Tool
	}
	return out
}

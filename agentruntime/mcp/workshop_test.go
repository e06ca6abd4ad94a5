package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
)

// workshop is a real server with tools of every sort.
func workshop(t testing.TB, modern bool) *agenttest.MCPServer {
	return agenttest.NewMCPServerWith(t, modern, addTools)
}

type sum struct {
	Total float64 `json:"total"`
}

func addTools(s *sdk.Server) {
	add := func(tool *sdk.Tool, schema string, h func(req *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, error)) {
		tool.InputSchema = json.RawMessage(schema)
		s.AddTool(tool, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var args map[string]any
			if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
				return nil, err
			}
			return h(req, args)
		})
	}
	text := func(s string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}, nil
	}
	add(&sdk.Tool{Name: "weather", Title: "Weather", Description: "Says what the weather will be.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		`{"type":"object","properties":{"place":{"type":"string","examples":["New York"]},"days":{"type":"integer","minimum":1,"maximum":7,"default":1},"at":{"type":"string"}},"required":["place"]}`,
		func(_ *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, error) {
			return text(fmt.Sprintf("Sun in %v for %v days", args["place"], args["days"]))
		})
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Adds two numbers."}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}) (*sdk.CallToolResult, sum, error) {
		return nil, sum{in.A + in.B}, nil
	})
	add(&sdk.Tool{Name: "draw"}, `{"type":"object"}`, func(*sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: []byte("\x89PNG"), MIMEType: "image/png"}}}, nil
	})
	add(&sdk.Tool{Name: "links"}, `{"type":"object"}`, func(*sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "See <b>these</b>"},
			&sdk.ResourceLink{URI: "https://example.org/a.pdf", Name: "a.pdf", MIMEType: "application/pdf"},
			&sdk.ResourceLink{URI: "javascript:alert(1)", Name: "evil"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///note.txt", Text: "a note"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///x/y.bin", Blob: []byte{1, 2, 3}}},
		}}, nil
	})
	add(&sdk.Tool{Name: "fail"}, `{"type":"object"}`, func(*sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no paper left, key s3cret"}}}, nil
	})
	add(&sdk.Tool{Name: "nothing"}, `{"type":"object"}`, func(*sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}}, nil
	})
	add(&sdk.Tool{Name: "long"}, `{"type":"object"}`, func(*sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("grüße ", 100_000))
	})
	add(&sdk.Tool{Name: "tidy", Annotations: &sdk.ToolAnnotations{IdempotentHint: true}}, `{"type":"object"}`, func(*sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, error) {
		return text("tidy")
	})
	slow := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&sdk.Tool{Name: "slow", InputSchema: slow}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		token := req.Params.GetProgressToken()
		if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 4, Message: "cutting"}); err != nil {
			return nil, err
		}
		return text("done")
	})
	// book asks how many and for whom, in two rounds, where it may ask.
	s.AddTool(&sdk.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object","properties":{"show":{"type":"string"}},"required":["show"]}`)},
		func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			ask := func(message, schema, state string) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{RequestState: state, InputRequests: sdk.InputRequestMap{
					"q": &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)},
				}}, nil
			}
			a, _ := req.Params.InputResponses["q"].(*sdk.ElicitResult)
			switch {
			case a == nil:
				return ask("How many seats?", `{"type":"object","properties":{"seats":{"type":"integer","minimum":1}},"required":["seats"]}`, "one")
			case a.Action != "accept":
				return text("not booked: " + a.Action)
			case req.Params.RequestState == "one":
				return ask("For whom?", `{"type":"object","properties":{"name":{"type":"string"},"vip":{"type":"boolean"}},"required":["name"]}`, fmt.Sprintf("seats=%v", a.Content["seats"]))
			}
			return text(fmt.Sprintf("booked %s name=%v vip=%v", req.Params.RequestState, a.Content["name"], a.Content["vip"]))
		})
	s.AddTool(&sdk.Tool{Name: "sample", InputSchema: slow}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		//lint:ignore SA1019 servers of today may still ask for it
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"s": &sdk.CreateMessageWithToolsParams{MaxTokens: 5, Messages: []*sdk.SamplingMessageV2{}}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "region", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`)},
		func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("region " + req.Extra.Header.Get("Mcp-Param-Region"))
		})
}

// workshopConfig is the settings of the workshop as a reader stores them.
func workshopConfig(t testing.TB, s *agenttest.MCPServer) json.RawMessage {
	t.Helper()
	d, err := NewReader(transport(t)).Read(t.Context(), s.Endpoint(agenttest.Echo))
	if err != nil {
		t.Fatal(err)
	}
	return d.Config
}

func configOf(t testing.TB, raw json.RawMessage) hub.MCPConfig {
	t.Helper()
	var c hub.MCPConfig
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

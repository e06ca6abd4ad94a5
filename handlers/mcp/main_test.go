package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/app/apptest"
)

// bearer is a transport that adds an API token.
type bearer struct {
	token string
	to    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.to.RoundTrip(r)
}

// The versions that the tests speak: one of each era, and the oldest.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
	oldest = "2024-11-05"
)

// connect is the protocol's own Go client at a path of the portal.
func connect(t *testing.T, p *apptest.Portal, c *apptest.Client, path, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	tr := &sdk.StreamableClientTransport{Endpoint: p.URL() + path, HTTPClient: &http.Client{Transport: bearer{c.Token, c.HTTP.Transport}}}
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts).Connect(t.Context(), tr, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(version, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// text is the text of a result.
func text(r *sdk.CallToolResult) string {
	var s string
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			s += c.Text + "\n"
		}
	}
	return s
}

// answer is the data of a result.
type answer struct {
	Agent     string
	TaskID    string `json:"task_id"`
	ContextID string `json:"context_id"`
	State     string
	Answer    string
	Reason    string
}

func dataOf(t *testing.T, r *sdk.CallToolResult) (a answer) {
	t.Helper()
	b, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) *sdk.CallToolResult {
	t.Helper()
	r, err := s.CallTool(context.WithoutCancel(t.Context()), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

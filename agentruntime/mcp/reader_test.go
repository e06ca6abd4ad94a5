package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
)

func TestReader_Describes(t *testing.T) {
	r := NewReader(transport(t))
	for _, modern := range []bool{true, false} {
		s := workshop(t, modern)
		d, err := r.Read(t.Context(), s.Endpoint(agenttest.Echo))
		if err != nil {
			t.Fatal(err)
		}
		cfg := configOf(t, d.Config)
		if d.Kind != hub.MCP || d.Name != "echo-tools" || d.Title != "Echo Tools" || d.Endpoint != s.Endpoint(agenttest.Echo) || !slices.Contains(d.InputModes, "application/json") ||
			!strings.Contains(d.Description, "Says things again.") || !strings.Contains(d.Description, "12 tools, among them add, book") {
			t.Errorf("%+v", d)
		}
		if want := map[bool]string{true: "2026-07-28", false: "2025-11-25"}[modern]; cfg.Version != want || cfg.Server != "echo-tools 1.2" || cfg.Instructions != "Says things again." {
			t.Errorf("%+v", cfg)
		}
		// The server lists ten a page.
		if len(cfg.Tools) != 12 || len(d.Skills) != 12 {
			t.Fatalf("%d tools, %d skills", len(cfg.Tools), len(d.Skills))
		}
		i := slices.IndexFunc(d.Skills, func(s hub.Skill) bool { return s.ID == "weather" })
		if k := d.Skills[i]; k.Name != "Weather" || k.Description != "Says what the weather will be." || !slices.Equal(k.Tags, []string{"tool", "read-only"}) || !slices.Equal(k.Examples, []string{`weather place="New York"`}) {
			t.Errorf("%+v", k)
		}
		// The schema keeps its order, which forms follow.
		if w := cfg.Tools[i]; !w.ReadOnly || !strings.HasPrefix(string(w.InputSchema), `{"type":"object","properties":{"place":`) {
			t.Errorf("%+v %s", w, w.InputSchema)
		}
		if len(s.Calls()) != 0 {
			t.Error("reading called a tool")
		}
	}
}

func TestReader_LooksBelow(t *testing.T) {
	s := agenttest.NewMCPServer(t, true)
	site := speaking(t, func(w http.ResponseWriter, r rpc) {
		if r.Path != "/mcp" && r.Path != "/x/mcp" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
			return
		}
		if r.Path == "/x/mcp" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if begun(w, r) {
			return
		}
		fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, r.ID)
	})
	d, err := NewReader(transport(t)).Read(t.Context(), site+"/")
	if err != nil || d.Endpoint != site+"/mcp" || !strings.HasSuffix(d.Description, "that offers no tools.") || configOf(t, d.Config).Version != "2025-03-26" {
		t.Errorf("%+v %v", d, err)
	}
	r := NewReader(transport(t))
	for address, want := range map[string]string{
		site + "/x": "asks for a key", "nonsense": "http:// or https://", "http://10.1.2.3/mcp": "refused to connect to a private address",
		answering(t, 200, "text/html", "<html>"): "There is no MCP server at",
		s.WithKey("k").Endpoint(agenttest.Echo):  "asks for a key",
	} {
		_, err := r.Read(t.Context(), address)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || !strings.Contains(f.Safe, want) || f.Fields["endpoint"] == "" {
			t.Errorf("%s: %v", address, err)
		}
		if errors.Is(err, ErrNoServer) != strings.Contains(want, "no MCP server") {
			t.Errorf("%s: %v", address, err)
		}
	}
	d, err = r.ReadAs(t.Context(), hub.Target{Kind: hub.MCP, Endpoint: s.Endpoint(agenttest.Echo), Secret: "k", Config: json.RawMessage(`{"tools":[{"name":"old"}]}`)})
	if err != nil || len(d.Skills) != 1 || d.Skills[0].ID != "echo" || strings.Contains(string(d.Config), `"old"`) {
		t.Errorf("%+v %v", d, err)
	}
}

// TestReader_CutsToBounds reads a server that says too much of everything.
func TestReader_CutsToBounds(t *testing.T) {
	many := agenttest.NewMCPServerWith(t, true, func(s *sdk.Server) {
		for i := range 100 {
			s.AddTool(&sdk.Tool{Name: fmt.Sprintf("tool-%02d", i), Description: strings.Repeat("ü\u202e", 3000), InputSchema: json.RawMessage(
				fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","description":%q}}}`, strings.Repeat("x", 1000*(i%20))))}, nil)
		}
	})
	d, err := NewReader(transport(t)).Read(t.Context(), many.Endpoint(agenttest.Echo))
	if err != nil {
		t.Fatal(err)
	}
	cfg := configOf(t, d.Config)
	if len(cfg.Tools) < 8 || len(cfg.Tools) > maxTools || len(d.Skills) > maxSkills || len(d.Config) > maxToolsBytes+(32<<10) || !strings.Contains(d.Description, "are left out here") {
		t.Errorf("%d tools, %d skills, %d bytes: %s", len(cfg.Tools), len(d.Skills), len(d.Config), d.Description)
	}
	for _, tool := range cfg.Tools {
		if utf8.RuneCountInString(tool.Description) > maxToolText || strings.Contains(tool.Description, "\u202e") || len(tool.InputSchema) > maxSchema {
			t.Errorf("%s: %d runes, %d bytes", tool.Name, utf8.RuneCountInString(tool.Description), len(tool.InputSchema))
		}
	}
	if string(cfg.Tools[18].InputSchema) != anySchema {
		t.Errorf("%.100s", cfg.Tools[18].InputSchema)
	}
}

// TestReader_SurvivesHostileLists reads tools that are not as they should be.
func TestReader_SurvivesHostileLists(t *testing.T) {
	pages := 0
	for name, tt := range map[string]struct {
		result string
		want   []string
	}{
		"names":   {`{"tools":[null,{"name":""},{"name":"a b"},{"name":"a\u202eb"},{"name":"ok","inputSchema":{"type":"object"}},{"name":"ok","inputSchema":{"type":"object"}},{"name":"` + strings.Repeat("x", 129) + `"}]}`, []string{"ok"}},
		"schemas": {`{"tools":[{"name":"a","inputSchema":{"$ref":"http://127.0.0.1/x"}},{"name":"b","inputSchema":{"$ref":"#"}},{"name":"c","inputSchema":"no"},{"name":"d"},{"name":"e","inputSchema":{"type":"string"}}]}`, []string{"a", "b", "c", "d", "e"}},
		"cursor":  {`{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"again"}`, []string{"a"}},
		"deep":    {`{"tools":[{"name":"a","inputSchema":{"type":"object","x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}]}`, []string{"a"}},
	} {
		url := speaking(t, func(w http.ResponseWriter, r rpc) {
			if begun(w, r) {
				return
			}
			pages++
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, tt.result)
		})
		d, err := NewReader(transport(t)).Read(t.Context(), url)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, tool := range configOf(t, d.Config).Tools {
			got = append(got, tool.Name)
			if name == "schemas" && tool.Name != "b" && string(tool.InputSchema) != anySchema {
				t.Errorf("%s: %s", tool.Name, tool.InputSchema)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	// Always another cursor.
	pages = 0
	url := speaking(t, func(w http.ResponseWriter, r rpc) {
		if !begun(w, r) {
			pages++
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"nextCursor":"c%d"}}`, r.ID, pages)
		}
	})
	if _, err := NewReader(transport(t)).Read(t.Context(), url); err != nil || pages != maxPages {
		t.Errorf("%d pages, %v", pages, err)
	}
	// Nesting that no parser should follow.
	deep := speaking(t, func(w http.ResponseWriter, r rpc) {
		if !begun(w, r) {
			fmt.Fprintf(reply(w), `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a","inputSchema":%s}]}}`, r.ID, strings.Repeat("[", 3<<20)+strings.Repeat("]", 3<<20))
		}
	})
	if _, err := NewReader(transport(t)).Read(t.Context(), deep); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

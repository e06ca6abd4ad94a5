package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/ident"
	"agentsite/internal/openai"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// An agent writes into the library of a person, who sees it in the chat as it happens and undoes it with one click.
// Another one answers with a file, which the person keeps. Others in the conversation see neither button.
func TestLibrary_UndoAndKeepInChat(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk", "phone", "desk without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := agenttest.NewOpenAIServer(t)
			model.Script(func(_ int, req openai.ChatRequest) agenttest.Turn {
				last := req.Messages[len(req.Messages)-1]
				if last.Role == openai.ToolRole || !strings.HasPrefix(string(last.Content), "write") {
					return agenttest.Turn{Text: "I wrote it down."}
				}
				return agenttest.Turn{Calls: []openai.ToolCall{agenttest.Want("w", "library_write", `{"path":"notes/tea.md","text":"Black tea."}`)}}
			})
			maker := agenttest.NewMCPServerWith(t, true, func(s *sdk.Server) {
				s.AddTool(&sdk.Tool{Name: "report", InputSchema: map[string]any{"type": "object"}},
					func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
						return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "Your report:"},
							&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///report.csv", MIMEType: "text/csv", Blob: []byte("tea,3\n")}}}}, nil
					})
			})
			p := apptest.Start(t)
			eve, ada, bob := p.User(t, "eve"), p.User(t, "ada"), p.User(t, "bob")
			eve.NewToken().Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "filer", "description": "Files things.", "kind": "prompt",
				"visibility": "public", "endpoint": model.Base(agenttest.Scripted),
				"config": map[string]any{"model": "m", "instructions": "Help.", "tools": []string{"library"}}}, http.StatusCreated)
			registerTools(eve, "maker", maker)
			ada.Must(http.MethodPut, "/api/v1/library/notes/tea.md", "Green tea.", http.StatusCreated)
			ada.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": "filer", "tool": "library_write", "scope": "notes/",
				"decision": "allow"}, http.StatusOK)
			tea := func() string { return ada.Do(http.MethodGet, "/api/v1/library/notes/tea.md", nil).Body }
			ada.Meets(bob)
			talk := ada.Conversation("filer", "bob")
			b, other := visit(t, root, p, s).as(ada), visit(t, root, p, s).as(bob)
			picture := strings.ReplaceAll(name, " ", "-")
			other.open("/chat/" + talk)
			b.open("/chat/" + talk)
			b.send("@filer write about tea")
			b.answered("I wrote it down.")
			b.until("the written file", `Boolean(document.querySelector(".written form[action='/library/undo'] button"))`)
			if tea() != "Black tea." {
				t.Fatalf("nothing was written: %q", tea())
			}
			b.shot("library-written-"+picture, false)
			if s.width == desk.width && s.scripts {
				b.look("library-written")
				b.resize(s)
			}
			if s.scripts {
				other.until("the answer as it comes", `document.body.innerText.includes("I wrote it down.")`)
				if eval[bool](other, `Boolean(document.querySelector("[data-filed], .written"))`) {
					t.Error("another member's page learns of the write")
				}
			}
			other.open("/chat/" + talk)
			other.says("I wrote it down.")
			if eval[bool](other, `Boolean(document.querySelector(".written, .keep")) || document.body.innerText.includes("tea.md")`) {
				t.Error("another member sees what was written")
			}
			b.press(".written button")
			b.says("Undone: the file is as it was before.")
			b.says("undone or changed since")
			if tea() != "Green tea." || strings.Split(b.path(), "?")[0] != "/chat/"+talk {
				t.Errorf("undone: %q at %s", tea(), b.path())
			}

			making := ada.Conversation("maker")
			b.open("/chat/" + making)
			ada.Must(http.MethodPost, "/api/v1/conversations/"+making+"/messages", map[string]any{"client_id": "report-1", "told": []string{"maker"}, "parts": []any{map[string]any{
				"data": map[string]any{"tool": "report", "arguments": map[string]any{}}}}}, http.StatusCreated)
			if !s.scripts {
				eventually(func() bool {
					b.open("/chat/" + making)
					return eval[bool](b, `Boolean(document.querySelector(".keep"))`)
				})
			}
			b.until("the file", `Boolean(document.querySelector(".keep button"))`)
			b.shot("library-keep-"+picture, false)
			b.press(".keep button")
			b.says("Kept in your library.")
			if got := ada.Do(http.MethodGet, "/api/v1/library/report.csv", nil).Body; got != "tea,3\n" {
				t.Errorf("kept: %q", got)
			}
		})
	}
}

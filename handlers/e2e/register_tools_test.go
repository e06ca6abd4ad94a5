package e2e

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestRegister_ReadsToolsAgain edits a server of tools after it learnt one
// more, and gives the tools to an agent of instructions.
func TestRegister_ReadsToolsAgain(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name := range walked("phone without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var server *sdk.Server
			tool := func(name string) {
				server.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: map[string]any{"type": "object"}},
					func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
						return &sdk.CallToolResult{}, nil
					})
			}
			far := agenttest.NewMCPServerWith(t, true, func(s *sdk.Server) { server = s; tool("sum") })
			p := apptest.Start(t, ownModel(parrotModel(t)))
			b := visit(t, root, p, screens[name]).as(p.User(t, "ann"))
			b.open("/agents/new")
			b.fill("#url", far.Endpoint(agenttest.Echo))
			b.press(".fetch button")
			b.until("the tool", `document.querySelector(".tool-list")?.innerText.includes("Does sum.")`)
			b.fill("#name", "sums")
			b.press(`button[name="save"]`)
			b.says("It is registered")

			b.open("/agents/sums/edit")
			b.until("one tool", `document.querySelectorAll(".tool-list li").length === 1`)
			b.fill("#title", "Sums and more")
			tool("product")
			b.press(`button[name="reread"]`)
			b.until("both tools", `document.querySelectorAll(".tool-list li").length === 2 && document.querySelector(".tool-list").innerText.includes("Does product.")`)
			b.holds("#title", "Sums and more")
			b.shot("tools-"+name, true)
			b.open("/agents/sums")
			b.says("Does product.")

			b.form("prompt")
			b.fill("#name", "clerk")
			b.fill("#instructions", "You do sums.")
			b.more()
			b.click(`label[for="tool-sums"]`)
			b.click(`label[for="unasked"]`)
			b.press(`button[name="save"]`)
			b.open("/agents/clerk/edit")
			b.until("the tool chosen", `document.querySelector("#tool-sums").checked && document.querySelector("#unasked").checked && document.querySelector("#tools").value === ""`)
			b.clean("tools")
		})
	}
}

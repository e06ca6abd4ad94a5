package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestFind_Looks looks at what is to be found, kept and told, and at the form
// of a tool, at every size, light and dark.
func TestFind_Looks(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	far := newModel(t)
	for _, r := range agents(far.base()) {
		register(ada, r)
	}
	tools := workshop(t)
	registerTools(ada, "workshop", tools)
	a := visit(t, root, p, desk).as(bob)
	a.allow("400 (Bad Request)", "404 (Not Found)")

	a.open("/agents?q=transalte+letter")
	a.says("read as “translate”")
	a.look("find-typo")
	a.open("/agents?live=alive&tag=code&sort=newest")
	a.look("find-filtered")
	a.open("/agents?q=invoces+zeppelin&tag=code&kind=openai")
	a.look("find-nothing")
	for _, path := range []string{"/", "/agents"} {
		a.open(path)
		a.fill("#q", "in")
		a.until("suggestions", `document.querySelectorAll("[role=option]").length > 0 && !document.querySelector("[aria-busy=true]") && (!document.querySelector("#found") || location.search === "?q=in")`)
		a.look("find-suggest" + map[bool]string{true: "-home"}[path == "/"])
	}

	bob.Must(http.MethodPost, "/api/v1/searches", map[string]string{"query": "q=letters"}, http.StatusCreated)
	bob.Must(http.MethodPost, "/api/v1/searches", map[string]string{"query": "kind=mcp&live=alive"}, http.StatusCreated)
	registerTools(ada, "letters", tools)
	ada.Must(http.MethodPost, "/agents/lingua/offer", url.Values{"to": {"bob"}, "sure": {"1"}}, http.StatusSeeOther)
	ada.Must(http.MethodPost, "/api/v1/agents/recipe-box/owners", map[string]string{"name": "bob"}, http.StatusOK)
	a.open("/account")
	a.look("find-account")
	a.click("#domains details summary")
	a.look("find-domain")
	a.open("/notices")
	a.look("find-notices")

	talk := bob.Conversation("workshop")
	a.open("/chat/" + talk)
	a.look("tools-new")
	a.open("/chat/" + talk + "?agent=workshop&tool=book#tool")
	a.look("tools-form")
	a.fill(`[name="arg.name"]`, "Bob")
	a.fill(`[name="arg.seats"]`, "many")
	a.fill(`[name="arg.guest.phone"]`, "1234")
	eval[bool](a, `document.querySelector('[name="arg.area"]').value = "bar", true`)
	a.press(".tool-end button")
	a.look("tools-wrong")
}

// workshop is an MCP server with a tool for every kind of field.
func workshop(t testing.TB) *agenttest.MCPServer {
	return agenttest.NewMCPServerWith(t, true, func(s *sdk.Server) {
		tool := func(name, title, about string, reads bool, schema string) {
			s.AddTool(&sdk.Tool{Name: name, Title: title, Description: about, InputSchema: json.RawMessage(schema), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: reads}}, said)
		}
		tool("book", "Book a table", "Books a table and sends a confirmation.", false, bookSchema)
		tool("clock", "What time is it", "Says the time.", true, `{"type":"object"}`)
		tool("weather", "Weather", "Says how the weather will be.", true, `{"type":"object","properties":{"city":{"type":"string","title":"City","examples":["Brest"]},"days":{"type":"integer","title":"Days","minimum":1,"maximum":7,"default":2}},"required":["city"]}`)
	})
}

const bookSchema = `{"type":"object","required":["name","seats","area","guest"],"properties":{
	"name":{"type":"string","title":"Your name","maxLength":60},
	"seats":{"type":"integer","title":"Seats","minimum":1,"maximum":12,"default":2,"description":"How many come"},
	"budget":{"type":"number","title":"Budget"},
	"terrace":{"type":"boolean","title":"On the terrace","description":"When the weather allows"},
	"area":{"title":"Area","oneOf":[{"const":"bar","title":"At the bar"},{"const":"hall","title":"In the hall"}]},
	"allergies":{"type":"array","items":{"type":"string"},"title":"Allergies"},
	"guest":{"type":"object","properties":{"phone":{"type":"string","title":"Phone"},"mail":{"type":"string","title":"Mail","format":"email"}},"required":["phone"]},
	"extra":{"type":"object","title":"Anything else","additionalProperties":true}}}`

// registerTools registers a server's tools as an agent.
func registerTools(c *apptest.Client, name string, s *agenttest.MCPServer) {
	c.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "title": "The " + name, "description": "Tools to try.", "kind": "mcp",
		"endpoint": s.Endpoint(agenttest.Echo), "visibility": "public"}, http.StatusCreated)
	c.Must(http.MethodPost, "/api/v1/agents/"+name+"/check", nil, http.StatusOK)
}

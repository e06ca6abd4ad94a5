package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// said answers with the arguments it was called with.
func said(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	var out []string
	for name, v := range args {
		out = append(out, name+"="+string(v))
	}
	slices.Sort(out)
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "called " + req.Params.Name + " with " + strings.Join(out, " ")}}}, nil
}

// choose picks an option of a select.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	eval[bool](b, `document.querySelector(`+js(selector)+`).value = `+js(value)+`, true`)
	b.holds(selector, value)
}

// TestTools_AFormForEveryField uses a tool of an MCP server from its agent's
// profile by filling in a form, with a mistake on the way.
func TestTools_AFormForEveryField(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			server := workshop(t)
			registerTools(p.User(t, "ada"), "workshop", server)
			b := visit(t, root, p, s)
			b.allow("400 (Bad Request)")
			b.open("/agents/workshop")
			b.press(`.use-tool button[value="book"]`)
			b.has("#tool")
			b.holds(`[name="arg.seats"]`, "2") // as the schema says
			if eval[bool](b, `Boolean(document.querySelector("#tool :is(input, select, textarea):not([type=hidden], :disabled)").labels[0].innerText) && document.querySelector('[name="arg.budget"]').required`) {
				t.Error("an optional field has to be filled in")
			}
			b.fill(`[name="arg.name"]`, "Søren “Co”")
			b.fill(`[name="arg.seats"]`, "13")
			b.fill(`[name="arg.budget"]`, "99.5")
			b.click(`[name="arg.terrace"]`)
			b.choose(`[name="arg.area"]`, "hall")
			b.fill(`[name="arg.allergies"]`, "nuts\n\nmilk")
			b.fill(`[name="arg.guest.phone"]`, "+45 1234")
			b.fill(`[name="arg.extra"]`, `{"a":`)
			b.press(".tool-end button")
			for field, problem := range map[string]string{"seats": "12", "extra": "JSON"} {
				b.until("what is wrong with "+field, `(() => {
					const el = document.querySelector('[name="arg.`+field+`"]');
					return el.getAttribute("aria-invalid") === "true" && el.getAttribute("aria-describedby").split(" ").some((id) => document.getElementById(id).innerText.includes("`+problem+`"));
				})()`)
			}
			if n := eval[int](b, `document.querySelectorAll("#tool .field-error").length`); n != 2 {
				t.Errorf("%d fields are named", n)
			}
			if len(server.Calls()) != 0 {
				t.Error("the server was called with mistakes")
			}
			for field, value := range map[string]string{"name": "Søren “Co”", "seats": "13", "budget": "99.5", "area": "hall", "allergies": "nuts\n\nmilk", "guest.phone": "+45 1234", "guest.mail": "", "extra": `{"a":`} {
				b.holds(`[name="arg.`+field+`"]`, value)
			}
			if !eval[bool](b, `document.querySelector('[name="arg.terrace"]').checked`) {
				t.Error("the tick is lost")
			}
			if s.scripts && !s.phone {
				b.until("the focus on the mistake", `document.activeElement.name === "arg.seats"`)
			}
			// What is typed in a form does not stand in the way of writing.
			b.reaches("#composer #text")
			b.reaches(".tool-end button")
			b.fill(`[name="arg.seats"]`, "12")
			b.fill(`[name="arg.extra"]`, `{"a": [1]}`)
			b.press(".tool-end button")
			b.answered(`called book with allergies=["nuts","milk"] area="hall" budget=99.5 extra={"a":[1]} guest={"phone":"+45 1234"} name="Søren “Co”" seats=12 terrace=true`)
			if got := eval[string](b, `document.querySelector(".message-mine").innerText`); !strings.Contains(got, "Book a table") || !strings.Contains(got, "seats: 12") || eval[bool](b, `Boolean(document.querySelector("#tool"))`) {
				t.Errorf("the transcript says %q", got)
			}
			b.shot("tools-said-"+strings.ReplaceAll(name, " ", "-"), false)
			// Written calls work beside the form, and what they lack is asked by form.
			b.send("weather city=Brest days=3")
			b.answered(`called weather with city="Brest" days=3`)
			b.send("weather days=4")
			b.answered("Fill in the form")
			if eval[bool](b, `document.querySelector("[data-messages]").innerText.includes('"schema"')`) {
				t.Error("the schema is shown as text")
			}
			b.press(".message:last-of-type a.answer")
			b.until("the field that is missing", `document.querySelector('#tool [name="arg.city"]')?.getAttribute("aria-invalid") === "true"`)
			b.holds(`[name="arg.days"]`, "4")
			b.fill(`[name="arg.city"]`, "Oslo")
			b.press(".tool-end button")
			b.answered(`called weather with city="Oslo" days=4`)
			if eval[bool](b, `[...document.querySelectorAll(".answer")].some((x) => x.checkVisibility())`) {
				t.Error("an answered question can still be answered")
			}
			// One that needs nothing is chosen from the list above the composer.
			b.click(".toolbox summary")
			b.press(".toolbox li:nth-child(2) a")
			b.says("It needs nothing to be filled in.")
			b.press(".tool-end button")
			b.answered("called clock with")
			b.clean("tools")
		})
	}
}

// reaches fails unless something can be hit without scrolling the page around
// it.
func (b *tab) reaches(selector string) {
	b.t.Helper()
	if !eval[bool](b, `(() => {
		const r = document.querySelector(`+js(selector)+`).getBoundingClientRect();
		const hit = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		return r.top >= 0 && r.bottom <= innerHeight && hit && document.querySelector(`+js(selector)+`).contains(hit);
	})()`) {
		b.fail("%s cannot be reached", selector)
	}
}

// TestTools_FormLeavesRoomToWrite looks at small screens with a long form.
func TestTools_FormLeavesRoomToWrite(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	registerTools(ada, "workshop", workshop(t))
	b := visit(t, root, p, screens["phone"]).as(ada)
	for _, s := range []screen{{width: 390, height: 844, phone: true}, {width: 390, height: 480, phone: true}, {width: 360, height: 400, phone: true}, {width: 740, height: 340, phone: true}, {width: 1280, height: 420}} {
		b.resize(s)
		b.open("/chat/" + ada.Conversation("workshop") + "?agent=workshop&tool=book#tool")
		b.reaches("#composer #text")
		b.reaches("#composer [data-send]")
		if s.height > 600 {
			b.reaches(".tool-end button")
		}
		b.click(`[name="arg.extra"]`)
		b.reaches(`[name="arg.extra"]`)
		b.reaches("#composer #text")
	}
	b.clean("small screens")
}

// TestTools_QuestionsOfAServerAreForms answers what a server asks in the
// middle of a call by filling in a form, and refuses to.
func TestTools_QuestionsOfAServerAreForms(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	server := agenttest.NewMCPServerWith(t, true, func(s *sdk.Server) {
		s.AddTool(&sdk.Tool{Name: "reserve", InputSchema: json.RawMessage(`{"type":"object","properties":{"show":{"type":"string"}},"required":["show"]}`)},
			func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				a, _ := req.Params.InputResponses["q"].(*sdk.ElicitResult)
				switch {
				case a == nil:
					return &sdk.CallToolResult{RequestState: "asked", InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Mode: "form", Message: "How many seats?",
						RequestedSchema: json.RawMessage(`{"type":"object","properties":{"seats":{"type":"integer","title":"Seats","minimum":1},"vip":{"type":"boolean","title":"In a box"}},"required":["seats"]}`)}}}, nil
				case a.Action != "accept":
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "not reserved"}}}, nil
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("reserved %v, box %v", a.Content["seats"], a.Content["vip"])}}}, nil
			})
	})
	for name, s := range walked("desk without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ada := p.User(t, "ada")
			registerTools(ada, "theatre", server)
			b := visit(t, root, p, s).as(ada)
			b.allow("400 (Bad Request)")
			b.open("/chat/" + ada.Conversation("theatre"))
			b.send("reserve show=Hamlet")
			b.answered("How many seats?")
			b.shot("tools-asked-"+strings.ReplaceAll(name, " ", "-"), false)
			b.press(".message:last-of-type a.answer")
			b.fill(`#tool [name="arg.seats"]`, "0")
			b.press(".tool-end button")
			b.until("what is wrong", `document.querySelector('#tool [name="arg.seats"]').getAttribute("aria-invalid") === "true"`)
			b.fill(`#tool [name="arg.seats"]`, "3")
			b.click(`#tool [name="arg.vip"]`)
			b.press(".tool-end button")
			b.answered("reserved 3, box true")
			b.send("reserve show=Lear")
			b.answered("How many seats?")
			b.send("no")
			b.answered("not reserved")
			b.clean("questions")
		})
	}
}

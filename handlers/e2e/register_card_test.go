package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestRegister_FromACardFile fills the form from a file or from what is
// pasted, whichever of the two kinds of card it is, and names what is none.
func TestRegister_FromACardFile(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name := range walked("phone without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t, ownModel(parrotModel(t)))
			b := visit(t, root, p, screens[name]).as(p.User(t, "ann"))
			b.allow("400 (Bad Request)")
			home := nowhere(t)
			card, err := json.Marshal(map[string]any{"name": "Invoice Reader", "description": "Reads invoices.", "version": "1", "capabilities": map[string]any{},
				"supportedInterfaces": []any{map[string]any{"url": home + "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}},
				"defaultInputModes":   []string{"text/plain", "image/png"}, "defaultOutputModes": []string{"text/plain"},
				"skills": []any{map[string]any{"id": "read", "name": "Read", "description": "Any layout.", "tags": []string{"pdf"}, "examples": []string{"Read this"}}}})
			if err != nil {
				t.Fatal(err)
			}
			b.open("/agents/new")
			b.click(".start-card summary")
			b.upload("#card-file", "agent-card.json", card)
			b.press(".start-card button")
			b.says("The card describes “Invoice Reader”")
			b.until("the kind", `document.querySelector("#kind-a2a").checked`)
			for field, want := range map[string]string{"#name": "invoice-reader", "#endpoint": home + "/rpc", "#description": "Reads invoices.", `[id="skill_examples.0"]`: "Read this", "#input_modes": "text/plain, image/png"} {
				b.holds(field, want)
			}
			b.press(`button[name="save"]`)
			b.says("It is registered")

			b.open("/agents/new")
			b.click(".start-card summary")
			b.fill("#card", "{")
			b.press(".start-card button")
			b.until("what is wrong", `document.getElementById("card-error").innerText.includes("not JSON")`)
			b.holds("#card", "{")
			b.fill("#card", `{"name":"poet","kind":"prompt","description":"Writes poems.","languages":["en"],"visibility":"unlisted","limits":{"per_day":50},
				"config":{"instructions":"Always rhyme.","temperature":0.5,"examples":[{"user":"Hi","agent":"Hello, fellow"}],"key":"not-kept"}}`)
			b.press(".start-card button")
			b.says("Its credential was not taken over")
			for field, want := range map[string]string{"#name": "poet", "#instructions": "Always rhyme.", "#temperature": "0.5", `[id="example_agent.0"]`: "Hello, fellow", "#languages": "en", "#per_day": "50"} {
				b.holds(field, want)
			}
			if eval[bool](b, `document.documentElement.outerHTML.includes("not-kept")`) {
				t.Error("the credential is shown")
			}
			b.press(`button[name="save"]`)
			b.says("Writes poems.")
			b.clean("cards")
		})
	}
}

// TestRegister_ShowsAHostileCardHarmlessly puts payloads into every field of a
// card, the form, its preview and a try.
func TestRegister_ShowsAHostileCardHarmlessly(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	list := payloads()
	p := apptest.Start(t, ownModel(newModel(t).answers(func(string) []string { return []string{strings.Join(list, "\n\n")} })))
	b := visit(t, root, p, desk).as(p.User(t, "ann"))
	b.allow("400 (Bad Request)")
	size := 32 // the most skills of an agent
	if full() {
		size = 16
	}
	for i := 0; i < len(list); i += size {
		group := list[i:min(i+size, len(list))]
		var skills []any
		for _, x := range group {
			skills = append(skills, map[string]any{"name": cut(x, 100), "description": x, "tags": []string{cut(x, 30)}, "examples": []string{cut(x, 300)}})
		}
		card, err := json.Marshal(map[string]any{"name": "poet", "title": cut(group[0], 100), "kind": "prompt", "description": strings.Join(group, " "), "skills": skills,
			"config": map[string]any{"instructions": strings.Join(group, "\n"), "examples": []any{map[string]any{"user": group[0], "agent": group[0]}}}})
		if err != nil {
			t.Fatal(err)
		}
		b.open("/agents/new")
		b.click(".start-card summary")
		b.upload("#card-file", "card.json", card)
		b.press(".start-card button")
		b.says("The file describes")
		b.safe("a form from a hostile card")
		b.press(`button[name="preview"]`)
		b.has(".preview, .notice-error")
		b.safe("its preview")
		if i == 0 {
			b.fill("#try", group[0])
			b.click("[data-try-button]")
			b.has(".a-try, .try .notice-error")
			b.safe("a try")
		}
	}
}

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"agentsite/internal/testing/apptest"
)

// cutTags counts the tags on the cards of agents that are cut through: neither whole nor wholly outside.
const cutTags = `[...document.querySelectorAll(".agent-card-marks")].flatMap(m => {
	const box = m.getBoundingClientRect();
	return [...m.querySelectorAll(".tag")].filter(t => {
		const r = t.getBoundingClientRect();
		return r.top < box.bottom - .5 && r.bottom > box.bottom + .5;
	});
}).length`

// TestForms_KeepRoomAroundErrors looks for tags that are cut through, for boxes of errors that touch their form, and for
// a button that slips below its field.
func TestForms_KeepRoomAroundErrors(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	op := p.Operator(t, "op")
	for i := range 3 {
		var tags []string
		for n := range 10 {
			tags = append(tags, fmt.Sprintf("number of many things %d-%d", i, n))
		}
		op.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": fmt.Sprintf("tagged-%d", i), "title": "Tagged",
			"description": "Has many tags.", "kind": "link", "visibility": "public",
			"skills": []any{map[string]any{"id": "a", "name": "Tag", "tags": tags}}}, http.StatusCreated)
	}
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}} {
		b := visit(t, root, p, s).as(op)
		b.allow("400 (Bad Request)")
		b.open("/agents?q=tagged")
		if n := eval[int](b, `document.querySelectorAll(".agent-card-marks .tag").length`); n < 9 {
			t.Fatalf("%s: %d tags", name, n)
		}
		if n := eval[int](b, cutTags); n > 0 {
			t.Errorf("%s: %d tags are cut through", name, n)
		}
		b.shot("room-tags-"+name, true)
		b.open("/agents?q=xylophonist")
		b.shot("room-nothing-"+name, true)
		if name == "phone" && !eval[bool](b, `document.querySelector("#results-title").getBoundingClientRect().bottom + 6 <=
			document.querySelector("#mode").getBoundingClientRect().top`) {
			t.Error("the title of the results touches the choice of the search")
		}
		b.open("/admin/peers")
		b.fill("#url", "not an address")
		b.press(`form[action="/admin/peers"] button`)
		b.until("the error", `document.querySelector("#url-error") !== null`)
		b.shot("room-peers-"+name, true)
		if name == "desk" && !eval[bool](b, `Math.abs(document.querySelector('form[action="/admin/peers"] button').getBoundingClientRect().bottom -
			document.querySelector("#url").getBoundingClientRect().bottom) < 2`) {
			t.Error("the button is not beside its field")
		}
		b.open("/admin/welcome")
		b.fill("#model_url", "not an address")
		b.press(`form[action="/admin/welcome"] button`)
		b.wrong("model_url")
		b.shot("room-welcome-"+name, true)
		if !eval[bool](b, `document.querySelector(".notice-error").getBoundingClientRect().bottom + 12 <=
			document.querySelector('form[action="/admin/welcome"]').getBoundingClientRect().top`) {
			t.Errorf("%s: the box of errors touches the form", name)
		}
		b.open("/chat")
		b.press(`.chat-views a[href="/library"]`)
		if got := b.path(); got != "/library" || !eval[bool](b, fits) {
			t.Errorf("%s: the list of chats leads to %s", name, got)
		}
	}
}

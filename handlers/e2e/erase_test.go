package e2e

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestErase_OnThePage exports and deletes an account: the archive is a zip file, the messages in a conversation with
// another person stay without the name or go, as chosen, and the name cannot be used again.
func TestErase_OnThePage(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			ada, bob := p.User(t, "ada"), p.User(t, "bob")
			bob.Meets(ada)
			talk := bob.Conversation("ada")
			ada.Say(talk, "the words of a person")
			b := visit(t, root, p, s).as(ada)
			b.allow("401")
			b.open("/account/delete")
			b.shot("erase-"+name, true)
			if got := eval[string](b, `(window.__type = "", fetch(document.querySelector("main form[action='/account/export']").action, { method: "POST", headers: { "Content-Type": "application/x-www-form-urlencoded" } })
				.then((r) => r.blob()).then((z) => { window.__type = z.type + " " + (z.size > 500); }), "asked")`); got != "asked" {
				t.Error(got)
			}
			b.until("the archive", `window.__type === "application/zip true"`)
			remove := name == "phone"
			if remove {
				b.click("main [name=messages][value=delete]")
			}
			b.fill("main [name=confirm]", "ada")
			b.press("main form[action='/account/delete'] button")
			b.until("a page for visitors", `document.querySelector("a[href^='/login']")`)
			ada.Must(http.MethodGet, "/api/v1/me", nil, http.StatusUnauthorized)
			tab := visit(t, root, p, s).as(bob)
			tab.enterRoom(talk)
			if got := eval[bool](tab, `document.querySelector("[data-messages]").innerText.includes("the words of a person")`); got == remove {
				t.Errorf("the words are shown: %v", got)
			}
			if eval[bool](tab, `/\bada\b/.test(document.querySelector("main").innerText)`) {
				t.Error("the name is shown")
			}
			tab.shot("erase-room-"+name, false)
			tab.clean("the conversation of an erased account")
			b.clean("the erased account")
		})
	}
}

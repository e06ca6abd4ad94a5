package e2e

import (
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestChat_ChoosesMembersByTheirBeginning makes a room of two people and two agents in five clicks, with two letters
// typed for each, and invites a third agent into it by one choice. It does so at desktop width and on a phone.
func TestChat_ChoosesMembersByTheirBeginning(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	bob := p.User(t, "bob")
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}} {
		t.Run(name, func(t *testing.T) {
			ada := p.User(t, "ada-"+name)
			bob := bob.With(t)

			ada.Meets(bob)
			ada.Conversation("bob")
			b := visit(t, root, p, s).as(ada)
			third := ada.Agent("public", newModel(t).base())
			clicks := 0
			click := func(selector string) {
				t.Helper()
				b.until(selector, `document.querySelector(`+js(selector)+`)?.checkVisibility()`)
				b.click(selector)
				clicks++
			}
			b.open("/chat?new=1") // the link New chat of each page
			clicks++
			b.until("the script", `document.querySelector(".member-field input")`)
			for _, m := range []string{"bob", "calc", "guide"} {
				b.clickField("#agent") // has the focus already after the first
				b.types(m[:2])
				click(`.member-options [data-ref="` + m + `"]`)
				b.until("the chip", `[...document.querySelectorAll(".member-chip")].some((x) => x.innerText.toLowerCase().includes(`+js(m)+`) && x.querySelector(".avatar"))`)
				if m == "calc" {
					b.types("gu")
					b.until("the next names", `document.querySelector('.member-options [data-ref="guide"]')?.checkVisibility()`)
					b.shot("members-"+name+"-light", false)
					b.scheme("dark")
					b.shot("members-"+name+"-dark", false)
					b.scheme("light")
					b.fill("#agent", "")
				}
			}
			b.leaves(func() { click(".new-chat form .button-primary") })
			b.connected()
			if clicks > 5 {
				t.Errorf("a room takes %d clicks", clicks)
			}
			b.until("all members", `["bob", "calc", "guide"].every((x) => document.querySelector("[data-member=" + x + "]"))`)
			if s.phone {
				b.click(".side-open")
			}
			b.clickField("#invite-member")
			b.types(third[:len(third)-1])
			b.until("the agent", `document.querySelector('.member-options [data-ref="'+`+js(third)+`+'"]')?.checkVisibility()`)
			b.shot("invite-"+name, false)
			b.leaves(func() { b.click(`.member-options [data-ref="` + third + `"]`) })
			b.until("the new member", `document.querySelector("[data-member=" + `+js(third)+` + "]")`)
			if eval[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
				t.Error("the page scrolls sideways")
			}
			b.clean("choosing members")
		})
	}
}

package e2e

import (
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestRoom_OfTwoPeopleAndTwoAgents makes a room from the list of chats, has the other person accept, and asks both
// agents: at most five clicks of both people together, and two letters of each name.
func TestRoom_OfTwoPeopleAndTwoAgents(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		t.Run(name, func(t *testing.T) {
			ada, bob, cid := p.User(t, "ada-"+name), p.User(t, "bob-"+name), p.User(t, "cid-"+name)
			cid.Meets(ada, bob)
			cid.Conversation(ada.Name, bob.Name) // from which ada knows bob; he never accepted her
			a, b := visit(t, root, p, s).as(ada), visit(t, root, p, s).as(bob)
			clicks := 0
			click := func(x *tab, selector string) { t.Helper(); clicks++; x.click(selector) }
			press := func(x *tab, selector string) { t.Helper(); x.leaves(func() { click(x, selector) }) }

			a.open("/chat")
			a.until("the script", `document.querySelector(".member-field input")`)
			click(a, ".new-chat > summary")
			a.focused("the members", "#agent")
			for _, m := range []string{bob.Name, "calc", "guide"} {
				a.types(m[:2])
				if m != "calc" { // there Enter comes before the names
					a.until("the name", `document.querySelector(".member-options [aria-selected=true]")?.dataset.ref === `+js(m))
				}
				a.enter()
				a.until("the chip", `[...document.querySelectorAll(".member-chip button")].at(-1)?.getAttribute("aria-label").toLowerCase().includes(`+js(m[:2])+`)`)
			}
			a.leaves(a.enter)
			a.connected()

			b.open("/")
			press(b, `.main-nav a[href="/chat"]`)
			press(b, `#invitations .button-primary`)
			b.connected()
			a.until("the other person", `document.querySelector("[data-member=`+bob.Name+`]")`)

			if s.phone {
				click(a, "#text")
			}
			a.focused("the composer", "#text")
			for _, m := range []string{"calc", "guide"} {
				a.types("@" + m[:2])
				a.until("the name", `document.querySelector("#mentions [aria-selected=true]")?.dataset.ref === `+js(m))
				a.enter()
			}
			a.holds("#text", "@calc @guide ")
			a.types("what is 15% of 80?")
			if s.phone {
				click(a, "[data-send]")
			} else {
				a.enter()
			}
			for _, x := range []*tab{a, b} {
				x.until("both answers", `["calc", "guide"].every((m) => [...document.querySelectorAll("[data-messages] > article")].some((el) => el.dataset.sender === m)) && !document.querySelector("[data-working] [data-task]")`)
				x.until("its title", `document.querySelector("[data-title]").innerText.startsWith("@calc @guide what is")`)
				x.shot("room-of-four-"+name, false)
				x.clean("a room of two people and two agents")
			}
			if clicks > 5 {
				t.Errorf("it took %d clicks", clicks)
			}
		})
	}
}

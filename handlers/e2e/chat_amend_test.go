package e2e

import (
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestChat_AmendsInPlace edits, reacts, takes away and asks again, and sees it
// on somebody else's page as it happens.
func TestChat_AmendsInPlace(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	far := newModel(t).answers(func(string) []string { return []string{"I see."} })
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	agent := ada.Agent("private", far.base())
	id := ada.Conversation("bob", agent)
	a, b := visit(t, root, p, desk).as(ada), visit(t, root, p, desk).as(bob)
	a.enterRoom(id)
	b.enterRoom(id)

	// Who is here and who types.
	a.until("bob here", `!document.querySelector('[data-handle="bob"] [data-presence]').hidden`)
	b.until("ada here", `!document.querySelector('[data-handle="ada"] [data-presence]').hidden`)
	b.click("#text")
	b.types("I am thin")
	a.until("bob typing", `!document.querySelector("[data-typing]").hidden && document.querySelector("[data-typing]").innerText.includes("bob")`)
	a.fill("#text", "Frist")
	a.enter()
	a.until("what was said", mine+`?.innerText.includes("Frist")`)
	a.until("read by bob", `document.querySelector("[data-read-by]").innerText.includes("bob")`)
	row := `document.querySelector("[data-messages] > article")`

	// Edited.
	a.act(row, "edit")
	a.until("the text to change", `document.querySelector("#text").value === "Frist"`)
	a.fill("#text", "First")
	a.enter()
	for _, x := range []*tab{a, b} {
		x.until("the change", row+`.innerText.includes("First") && `+row+`.querySelector("[data-edited]")`)
	}
	// A reaction of each.
	a.react(row, "👍")
	b.until("ada's reaction", row+`.querySelector("[data-reactions] [data-count]")?.innerText === "1"`)
	b.click("[data-reactions] button")
	for _, x := range []*tab{a, b} {
		x.until("two reactions", row+`.querySelector("[data-reactions] [aria-pressed=true] [data-count]")?.innerText === "2" && `+row+`.querySelector("[data-by]").dataset.by.split(" ").length === 2`)
	}

	// An answer given again takes the place of the first.
	far.answers(func(string) []string { return []string{"One way."} })
	a.send("@" + agent + " say it")
	a.answered("One way.")
	far.answers(func(string) []string { return []string{"Another way."} })
	a.act(`[...document.querySelectorAll("[data-messages] > article")].at(-1)`, "again")
	for _, x := range []*tab{a, b} {
		x.answered("Another way.")
		x.until("the earlier answer folded", `[...document.querySelectorAll("[data-earlier-answer]")].some((d) => !d.open && d.textContent.includes("One way."))`)
	}

	// Taken away.
	a.act(row, "unsay")
	a.until("the question", `document.querySelector("dialog[open] button[value=yes]")`)
	a.click("dialog[open] button[value=yes]")
	for _, x := range []*tab{a, b} {
		x.until("nothing of it", `"gone" in `+row+`.dataset && !document.querySelector("[data-messages]").innerText.includes("First")`)
	}
	if got := eval[string](b, `document.querySelector("#text").value`); got != "I am thin" {
		t.Errorf("bob's words became %q", got)
	}

	// Alone from here on.
	a.leaves(func() { a.act(`[...document.querySelectorAll("[data-messages] > article")].at(-1)`, "branch") })
	if a.path() == "/chat/"+id {
		t.Error("a branch leads nowhere")
	}
	a.says("Another way.")
	a.clean("amending")
	b.clean("seeing it")
}

// act presses an entry of a message's menu.
func (b *tab) act(row, what string) {
	b.t.Helper()
	b.opens(row)
	b.click(`[data-actions][open] [data-do="` + what + `"]`)
}

// react presses one of the emoji in a message's menu.
func (b *tab) react(row, emoji string) {
	b.t.Helper()
	b.opens(row)
	b.click(`[data-actions][open] [name="emoji"][value="` + emoji + `"]`)
}

// opens opens the menu of a message with the mouse. It clicks again if the row was moved away from the mouse by a
// message that came in the same moment.
func (b *tab) opens(row string) {
	b.t.Helper()
	eval[bool](b, row+`.setAttribute("data-chosen", ""), true`)
	b.click("[data-chosen] [data-actions] summary")
	menu := row + `.querySelector("[data-actions]")`
	b.until("the menu", menu+`.open || (`+menu+`.querySelector("summary").click(), false)`)
	eval[bool](b, `document.querySelector("[data-chosen]")?.removeAttribute("data-chosen"), true`)
}

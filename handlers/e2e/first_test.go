package e2e

import (
	"context"
	"fmt"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

var screens = map[string]screen{
	"desk":                  desk,
	"desk without scripts":  {width: 1280, height: 900},
	"phone":                 {width: 390, height: 844, phone: true, scripts: true},
	"phone without scripts": {width: 390, height: 844, phone: true},
}

// TestFirstParagraph walks what the portal is for: somebody opens the page,
// talks to an agent, signs up, registers agents of their own through the form,
// and somebody else finds them and talks to them.
func TestFirstParagraph(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("desk") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walk(t, root, s)
		})
	}
}

// answered waits for the last answer of an agent to be whole, and to say text.
func (b *tab) answered(text string) {
	b.t.Helper()
	whole := `!document.querySelector("[data-working] [data-task]") &&
		Boolean([...document.querySelectorAll("[data-messages] .message:not(.message-mine)")].at(-1)?.querySelector(".bubble").innerText.includes(` + js(text) + `))`
	b.looksUntil(whole)
	b.until(fmt.Sprintf("the answer %q", text), whole)
}

// looksUntil presses what shows, without a script, what came meanwhile.
func (b *tab) looksUntil(condition string) {
	b.t.Helper()
	if b.screen.scripts {
		return
	}
	eventuallyIn(patience+b.extra, func() bool {
		if eval[bool](b, condition) || !eval[bool](b, `Boolean(document.querySelector('button[name="look"]'))`) {
			return true
		}
		b.press(`button[name="look"]`)
		return false
	})
}

// streaming waits for text of an answer that is not at its end.
func (b *tab) streaming(text string) {
	b.t.Helper()
	on := `Boolean(document.querySelector("[data-working] [data-streamed]")?.innerText.includes(` + js(text) + `))`
	b.looksUntil(on)
	b.until(fmt.Sprintf("%q on its way", text), on)
}

// send writes in a conversation.
func (b *tab) send(text string) {
	b.t.Helper()
	b.fill("#text", text)
	if !b.screen.scripts {
		b.press("[data-send]")
	} else if b.screen.phone {
		b.click("[data-send]")
	} else {
		b.enter()
	}
}

// stops presses the button that stops what is being answered.
func (b *tab) stops() {
	b.t.Helper()
	if b.screen.scripts {
		b.click("[data-stop] button")
	} else {
		b.press("[data-stop] button")
	}
}

// signUp makes an account from the link in the header.
func (b *tab) signUp(name string) {
	b.t.Helper()
	b.press(`a[href="/signup"]`)
	b.fill("#name", name)
	b.fill("#password", "short")
	b.press("main form button")
	b.wrong("password")
	b.holds("#name", name)
	b.fill("#password", apptest.Password)
	b.press("main form button")
	b.says(name)
}

// wrong fails unless the form says what is wrong with a field, there and in a
// summary that leads to it and has the focus.
func (b *tab) wrong(id string) {
	b.t.Helper()
	b.until("the error of "+id, fmt.Sprintf(`(() => {
		const field = document.getElementById(%q), error = document.getElementById(%[1]q + "-error");
		return field.getAttribute("aria-invalid") === "true" && field.getAttribute("aria-describedby").split(" ").includes(error.id) && error.innerText.trim() !== "";
	})()`, id))
	if b.screen.scripts {
		b.until("the focus on what is wrong", `document.activeElement.matches("[data-focus]")`)
	}
	b.click(fmt.Sprintf(`.notice-error a[href="#%s"]`, id))
	b.until("the field "+id, fmt.Sprintf(`document.activeElement.id === %q || location.hash === "#" + %[1]q`, id))
}

func walk(t *testing.T, root context.Context, s screen) {
	p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
	far, parrot := newModel(t), echo(t)
	ann := visit(t, root, p, s)
	// The forms below are sent with mistakes.
	ann.allow("400 (Bad Request)", "409 (Conflict)", "401 (Unauthorized)", "503 (Service Unavailable)")

	// A newcomer asks the guide, sees the answer, and goes on to the agent it
	// names with the question already there.
	ann.open("/")
	question := "who can calculate percentages?"
	ann.fill("#guide-text", question)
	if s.scripts && !s.phone {
		ann.leaves(func() { ann.enter() })
	} else {
		ann.press(".guide .say button")
	}
	ann.answered("Talk to calc")
	ann.press(`.bubble a[href^="/agents/calc?text="]`)
	ann.holds("#text", question)
	ann.fill("#text", "17.5 % of 2340")
	ann.press(".talk .say button")
	ann.answered("409.5")
	ann.send("2 + 2")
	ann.answered("4")
	ann.until("their own side", `document.querySelectorAll(".message-mine").length === 2 && !document.querySelector("[data-pending] .message")`)
	ann.clean("a guest's chat")
	ann.press(`a[href="/chat"]`)
	ann.says("17.5 % of 2340")
	ann.open("/")
	ann.press(".guide .ask")
	ann.looksUntil(`Boolean(document.querySelector("[data-messages] .message:not(.message-mine)"))`)
	ann.until("an answer", `document.querySelector("[data-messages] .message:not(.message-mine)")`)

	// They sign up and register an agent by its address alone.
	ann.open("/")
	ann.signUp("ann")
	ann.press(`.main-nav a[href="/agents/new"]`)
	nobody := nowhere(t)
	ann.fill("#url", nobody)
	ann.press(".fetch button")
	ann.until("the reason", `document.getElementById("url-error")?.innerText.trim()`)
	ann.holds("#url", nobody)
	ann.fill("#url", parrot)
	ann.press(".fetch button")
	ann.says("Found “")
	ann.until("the kind", `document.querySelector("#kind-a2a").checked`)
	ann.until("the card's text", `document.querySelector("#description").value.startsWith("Says ") && document.querySelector("#endpoint").value`)
	ann.fill("#name", "calc") // somebody has it
	ann.press(`button[name="save"]`)
	ann.wrong("name")
	ann.holds("#name", "calc")
	ann.fill("#name", "parrot")
	ann.press(`button[name="save"]`)
	if got := ann.path(); got != "/agents/parrot" {
		t.Fatalf("registering leads to %s", got)
	}
	ann.alive("/agents/parrot")
	ann.clean("registering by address")

	// And a model, by hand, with a mistake first.
	ann.press(`.main-nav a[href="/agents/new"]`)
	ann.press(`.by-hand a[href="/agents/new?kind=openai"]`)
	ann.fill("#name", "storyteller")
	ann.more()
	ann.fill("#title", "Teller of tales")
	ann.fill("#description", "Tells bedtime stories about dragons. Ask for one.")
	ann.fill("#endpoint", far.base())
	ann.fill(`[id="skill_name.0"]`, "Tell")
	ann.fill(`[id="skill_examples.0"]`, "A story about a dragon")
	ann.press(`button[name="save"]`)
	ann.wrong("model")
	for field, want := range map[string]string{"#name": "storyteller", "#title": "Teller of tales", "#endpoint": far.base(), `[id="skill_examples.0"]`: "A story about a dragon"} {
		ann.holds(field, want)
	}
	ann.fill("#model", "story-1")
	ann.press(`button[name="save"]`)
	ann.alive("/agents/storyteller")
	ann.clean("registering by hand")

	// Somebody else finds both by words and talks to them.
	bob := visit(t, root, p, s)
	bob.open("/")
	bob.fill("#q", "bedtime dragon")
	bob.press(".search button")
	bob.press(`.results a[href="/agents/storyteller"]`)
	bob.press(".talk .ask")
	bob.press(".say button")
	if got := <-far.asked; got != "A story about a dragon" {
		t.Errorf("the model was asked %q", got)
	}
	far.pieces <- "Once upon"
	bob.streaming("Once upon")
	far.pieces <- " a time there"
	bob.streaming("Once upon a time there")

	// A reload in mid-answer loses nothing.
	bob.leaves(func() { bob.open(bob.path()) })
	bob.streaming("Once upon a time there")
	far.pieces <- " was a **dragon**."
	bob.streaming("was a")
	far.pieces <- ""
	bob.answered("Once upon a time there was a dragon.")
	bob.until("Markdown", `document.querySelector("[data-messages] .bubble strong")?.innerText === "dragon"`)
	bob.until("each message once", `document.querySelectorAll(".message").length === 2`)

	// Stop stops, and what was said stays.
	bob.send("Another one, without end")
	<-far.asked
	far.pieces <- "It began"
	bob.streaming("It began")
	bob.stops()
	<-far.stopped
	bob.answered("Stopped before it was finished.")
	bob.says("It began")
	bob.clean("a streamed conversation")
	bob.open("/chat")
	bob.until("nothing unread of what was on the screen", again(`document.querySelector(".chat-row") && !document.querySelector(".chat-row .unread")`))

	bob.open("/agents?q=parrot")
	bob.press(`.results a[href="/agents/parrot"]`)
	bob.fill("#text", "Polly wants a cracker")
	bob.press(".talk .say button")
	bob.answered("Polly wants a cracker")
	bob.clean("talking to the echo")
	if s.scripts {
		bob.searches()
	}

	// Out and in again.
	ann.open("/account")
	// The live socket ends with the session, and may connect again before the next page comes.
	ann.allow("HTTP Authentication failed")
	ann.press(`form[action="/logout"] button`)
	ann.open("/agents/new")
	if got := ann.path(); got != "/login" {
		t.Errorf("a stranger who wants to register is at %s", got)
	}
	ann.fill("#name", "ann")
	ann.fill("#password", "not the password")
	ann.press("main form button")
	ann.says("attention")
	ann.holds("#name", "ann")
	ann.fill("#password", apptest.Password)
	ann.press("main form button")
	if got := ann.path(); got != "/agents/new" {
		t.Errorf("logging in leads to %s, not to where ann wanted to be", got)
	}
	ann.clean("out and in")

	// The one-time link makes an operator, once.
	op := visit(t, root, p, s)
	op.allow("400 (Bad Request)", "403 (Forbidden)")
	op.open("/signup?setup=" + p.Setup)
	op.fill("#name", "op")
	op.fill("#password", apptest.Password)
	op.press("main form button")
	if got := op.path(); got != "/admin/welcome" {
		t.Errorf("the one-time link leads to %s", got)
	}
	op.open("/admin")
	op.press(`.tabs a[href="/admin/agents"]`)
	op.click(`details:has(form[action="/admin/agents/parrot/withdraw"]) summary`)
	op.press(`form[action="/admin/agents/parrot/withdraw"] button`)
	op.press(`form[action="/admin/agents/parrot/restore"] button`)
	op.has(`form[action="/admin/agents/parrot/withdraw"]`)
	op.clean("the operator")
	late := visit(t, root, p, s)
	late.allow("404 (Not Found)")
	late.open("/signup?setup=" + p.Setup)
	late.says("This link is unknown, used or expired")
}

// alive reloads an agent's page until it says that the agent answers.
func (b *tab) alive(path string) {
	b.t.Helper()
	b.until("life in "+path, again(`document.querySelector(".profile-badge .live-alive") && location.pathname === `+js(path)))
}

// searches types into the search and sees the list follow.
func (b *tab) searches() {
	b.t.Helper()
	b.open("/agents")
	b.fill("#q", "dragon")
	b.until("one result", `document.querySelectorAll(".results .agent-card").length === 1 && document.querySelector('.results a[href="/agents/storyteller"]')`)
	b.fill("#q", "calculate")
	b.until("another result", `document.querySelector('.results a[href="/agents/calc"]') && location.search.includes("calculate")`)
	b.clean("search while typing")
}

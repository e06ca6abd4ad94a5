package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"agentsite/internal/testing/apptest"
)

// hit presses one key, with what is held down meanwhile.
func (b *tab) hit(key string, held ...chromedp.Modifier) {
	b.t.Helper()
	for _, r := range key {
		list := kb.Encode(r)
		for i, k := range list {
			if k.Type == kb.KeyChar {
				continue
			}
			// The text goes with the key, so that a page that handles the key gets
			// no character besides.
			if i+1 < len(list) && list[i+1].Type == kb.KeyChar && len(held) == 0 {
				k.Type, k.Text = input.DispatchKeyEventTypeKeyDown, list[i+1].Text
			}
			for _, h := range held {
				k.Modifiers |= int64(h)
			}
			command(b, input.DispatchKeyEvent, *k)
		}
	}
}

// types writes at the focus.
func (b *tab) types(text string) {
	b.t.Helper()
	command(b, input.InsertText, input.InsertTextParams{Text: text})
}

// focused waits for the focus to be on what the selector finds. It is never
// nowhere.
func (b *tab) focused(what, selector string) {
	b.t.Helper()
	b.until("the focus on "+what, "document.activeElement.matches("+js(selector)+")")
}

// last is the last message on the page, mine the last of one's own.
const (
	last = `[...document.querySelectorAll("[data-messages] > article")].at(-1)`
	mine = `[...document.querySelectorAll("[data-messages] > article.message-mine")].at(-1)`
)

// TestChat_ByKeyboard holds a conversation without a mouse.
func TestChat_ByKeyboard(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	far := newModel(t)
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	agent := ada.Agent("public", far.base())
	id := ada.Conversation("bob")
	far.answers(func(string) []string { return []string{"An answer."} })
	bob.Say(id, "Hello ada")
	ada.Must("POST", "/api/v1/conversations/"+id+"/members", map[string]any{"handle": agent}, 201)
	b := visit(t, root, p, desk).as(ada)
	b.allow("403", "404")
	b.enterRoom(id)
	b.focused("the composer", "#text")

	// Write, and change what was written.
	b.types("Good mornink")
	b.enter()
	b.until("the message", mine+`.innerText.includes("Good mornink")`)
	b.hit(kb.ArrowUp)
	b.until("the text to change", `document.querySelector("#composer").dataset.mode === "edit" && document.querySelector("#text").value === "Good mornink"`)
	b.hit(kb.Backspace)
	b.types("g")
	b.enter()
	b.until("the changed text", mine+`.innerText.includes("Good morning") && `+mine+`.innerText.includes("edited")`)
	b.holds("#text", "")
	b.hit(kb.ArrowUp)
	b.until("the text again", `document.querySelector("#text").value === "Good morning"`)
	b.hit(kb.Escape)
	b.until("nothing to change", `document.querySelector("#composer").dataset.mode === "" && document.querySelector("#text").value === ""`)
	b.focused("the composer", "#text")

	// To the messages, and an answer to one of them.
	for i := 0; !eval[bool](b, `document.activeElement.closest("[data-messages] > article") !== null`); i++ {
		if i == 12 {
			b.fail("the messages are out of reach")
		}
		b.hit(kb.Tab, chromedp.ModifierShift)
		b.until("a focus", "document.activeElement !== document.body")
	}
	for i := 0; !eval[bool](b, `document.activeElement.innerText.includes("Hello ada") && document.activeElement.matches("article")`); i++ {
		if i == 12 {
			b.fail("the first message is out of reach")
		}
		b.hit("k")
	}
	b.hit("j")
	b.focused("the next message", "article.message-mine")
	b.hit("k")
	b.hit("r")
	b.focused("the composer", "#text")
	b.until("whom it answers", `!document.querySelector("[data-mode-bar]").hidden && document.querySelector("[data-mode-bar]").innerText.includes("bob")`)
	b.types("And to you")
	b.enter()
	b.until("the answer with its quote", mine+`.querySelector(".quote")?.innerText.includes("Hello ada")`)
	b.until("the mode over", `document.querySelector("[data-mode-bar]").hidden`)

	// A reaction, set and taken back.
	b.hit(kb.Tab, chromedp.ModifierShift)
	for i := 0; !eval[bool](b, `document.activeElement.closest("[data-messages] > article") !== null`); i++ {
		if i == 12 {
			b.fail("the messages are out of reach")
		}
		b.hit(kb.Tab, chromedp.ModifierShift)
	}
	b.hit("k")
	b.hit("+")
	b.focused("an emoji", `[data-actions] [name="emoji"]`)
	row := fmt.Sprintf(`document.getElementById(%q)`, eval[string](b, `document.activeElement.closest("article").id`))
	b.enter()
	b.until("the reaction", row+`.querySelector('[data-reactions] [aria-pressed="true"] [data-count]')?.innerText === "1"`)
	b.until("a focus in the message", row+`.contains(document.activeElement)`)
	b.until("what the portal says of it", row+`.querySelector("[data-reactions] [data-by='ada']")`)
	eval[bool](b, row+`.querySelector("[data-reactions] button").focus(), true`)
	b.enter()
	b.until("no reaction", `!`+row+`.querySelector("[data-reactions] button")`)
	b.until("a focus in the message", row+`.contains(document.activeElement)`)

	// Its menu.
	eval[bool](b, row+`.focus(), true`)
	b.hit("m")
	b.until("the menu", row+`.querySelector("[data-actions]").open && `+row+`.querySelector(".actions-body").contains(document.activeElement)`)
	first := eval[string](b, `document.activeElement.outerHTML`)
	b.hit(kb.ArrowDown)
	b.until("the next in the menu", `document.activeElement.outerHTML !== `+js(first)+` && `+row+`.querySelector(".actions-body").contains(document.activeElement)`)
	b.hit(kb.Escape)
	b.until("the menu closed", `!`+row+`.querySelector("[data-actions]").open && `+row+`.contains(document.activeElement)`)
	b.hit("/")
	b.focused("the composer", "#text")
	b.holds("#text", "")

	// The list of keys.
	eval[bool](b, row+`.focus(), true`)
	b.hit("?")
	b.until("the keys", `document.querySelector("[data-shortcuts]").open`)
	// Meanwhile the message is written anew: there is no such row any more.
	eval[bool](b, `(window.__row = `+row+`, true)`)
	bob.Must("PUT", "/api/v1/conversations/"+id+"/messages/"+strings.TrimPrefix(eval[string](b, row+".id"), "m")+"/reactions/%F0%9F%91%8D", nil, 200)
	b.until("the message written anew", row+`.querySelector("[data-reactions] [data-by='bob']") && !window.__row.isConnected`)
	b.hit(kb.Escape)
	b.until("the keys gone", `!document.querySelector("[data-shortcuts]").open`)
	b.until("the focus where it was", row+` === document.activeElement`)
	b.hit("g")
	b.until("the newest", last+` === document.activeElement`)
	b.hit(kb.Escape)
	b.focused("the composer", "#text")

	// Stop what is being answered.
	far.answers(nil)
	b.types("@" + agent + " talk")
	b.enter()
	<-far.asked
	far.pieces <- "It goes on"
	b.streaming("It goes on")
	b.hit(kb.Escape)
	<-far.stopped
	b.answered("Stopped before it was finished.")
	b.focused("the composer", "#text")
	b.hit(kb.Escape)
	b.until("the composer left", `document.activeElement.id !== "text"`)
	b.clean("a conversation by keyboard")
}

// TestChat_CompletesNames completes who is addressed.
func TestChat_CompletesNames(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	ada.Meets(p.User(t, "carla"))
	id := ada.Conversation("calc", "guide", "carla")
	b := visit(t, root, p, desk).as(ada)
	b.enterRoom(id)
	options := `[...document.querySelectorAll("#mentions [role=option]")]`
	b.types("Ask @")
	b.until("all but oneself", options+`.length === 3 && !document.querySelector("#mentions").hidden && !`+options+`.some((o) => o.innerText.includes("@ada"))`)
	b.types("ca")
	b.until("those that fit", options+`.length === 2`)
	b.until("the one that is chosen", `document.getElementById(document.querySelector("#text").getAttribute("aria-activedescendant"))?.getAttribute("aria-selected") === "true"`)
	chosen := eval[string](b, `document.querySelector("#text").getAttribute("aria-activedescendant")`)
	b.hit(kb.ArrowDown)
	b.until("the next", `document.querySelector("#text").getAttribute("aria-activedescendant") !== `+js(chosen))
	b.hit(kb.ArrowUp)
	b.until("the first", `document.querySelector("#text").getAttribute("aria-activedescendant") === `+js(chosen))
	b.enter()
	b.holds("#text", "Ask @calc ")
	b.until("the list gone", `document.querySelector("#mentions").hidden && !document.querySelector("#text").hasAttribute("aria-activedescendant")`)
	b.types("or @g")
	b.until("one", options+`.length === 1`)
	b.hit(kb.Escape)
	b.until("the list gone", `document.querySelector("#mentions").hidden`)
	b.focused("the composer", "#text")
	b.fill("#text", "@cal")
	b.until("one", options+`.length === 1`)
	b.click("#mentions [role=option]")
	b.holds("#text", "@calc ")
	b.focused("the composer", "#text")
	b.types("6 * 7")
	b.enter()
	b.answered("42")
	b.fill("#text", "mail ada@g")
	b.until("no completion inside of a word", `document.querySelector("#mentions").hidden`)
	b.clean("completion")
}

// TestChat_Palette goes anywhere by name.
func TestChat_Palette(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	id := ada.Conversation("calc")
	other := ada.Conversation("guide")
	ada.Must("PATCH", "/api/v1/conversations/"+other, map[string]any{"title": "Holiday in Bergen"}, 200)
	b := visit(t, root, p, desk).as(ada)
	b.enterRoom(id)
	b.types("half a thought")
	chosen := `document.getElementById(document.querySelector("[data-palette-input]").getAttribute("aria-activedescendant"))`
	b.hit("k", chromedp.ModifierCtrl)
	b.focused("the palette", "[data-palette-input]")
	b.hit(kb.Escape)
	b.focused("the composer", "#text")
	b.hit("k", chromedp.ModifierCtrl)
	b.types("newest")
	b.until("a command of the conversation", chosen+`?.innerText.includes("Newest message")`)
	eval[bool](b, `document.querySelector("[data-palette-input]").select(), true`)
	b.types("bergen")
	b.until("a conversation", chosen+`?.innerText.includes("Holiday in Bergen")`)
	b.leaves(b.enter)
	if got := b.path(); got != "/chat/"+other {
		t.Errorf("the palette leads to %s", got)
	}
	b.enterRoom(id)
	b.holds("#text", "half a thought")

	// On a page that is no conversation, to an agent by its name.
	b.open("/account")
	b.until("the page", `document.readyState === "complete"`)
	b.hit("?")
	b.until("the list of keys", `document.querySelector("dialog.shortcuts[open]")?.innerText.includes("this list")`)
	b.shot("keys-anywhere", false)
	b.hit(kb.Escape)
	b.until("no list", `!document.querySelector("dialog[open]")`)
	b.hit("k", chromedp.ModifierCtrl)
	b.until("the palette", `document.querySelector("dialog.palette[open] input") === document.activeElement`)
	b.types("calc")
	b.until("an agent", `[...document.querySelectorAll("dialog.palette [role=option]")].some((o) => o.innerText.includes("@calc"))`)
	for i := 0; !eval[bool](b, `document.querySelector("dialog.palette [aria-selected=true]").innerText.includes("@calc")`); i++ {
		if i == 12 {
			b.fail("the agent cannot be chosen")
		}
		b.hit(kb.ArrowDown)
	}
	b.leaves(b.enter)
	if got := b.path(); got != "/agents/calc" {
		t.Errorf("the palette leads to %s", got)
	}
	b.clean("the palette")
}

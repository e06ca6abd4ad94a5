package e2e

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"agentsite/internal/testing/apptest"
)

// TestChatsBeside has the list of chats beside an open one: a column at 1280 px and a drawer at 390 px. Another chat is
// one click away, with and without scripts, and Esc leaves the message field.
func TestChatsBeside(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	b := visit(t, root, p, desk).as(ada)
	b.open("/")
	first := b.room("calc")
	b.send("Add 2+2 for the first chat")
	b.until("an answer", `document.querySelectorAll("[data-messages] > article").length === 2`)
	b.until("its title in the list", `document.querySelector('.chats-row[aria-current="page"]').innerText.trim() === "Add 2+2 for the first chat"`)
	second := b.room("calc")
	b.until("both chats", `document.querySelectorAll(".chats-row").length === 2`)
	b.until("the open one", `document.querySelector('.chats-row[aria-current="page"]').href.endsWith(`+js(second)+`)`)
	b.shot("beside-desk-light", false)
	b.scheme("dark")
	b.shot("beside-desk-dark", false)
	b.scheme("light")
	b.click(`.chats-row[href$="` + first + `"]`)
	b.until("the first chat", `location.pathname.endsWith(`+js(first)+`) && document.readyState === "complete"`)
	b.connected()
	// A chat that was read on the screen is not unread on the next page, however soon it is left.
	b.send("Add 3+3 for the first chat")
	b.until("another answer", `document.querySelectorAll("[data-messages] > article").length === 4`)
	b.leaves(func() { b.click(`.chats-row[href$="` + second + `"]`) })
	b.until("the second chat", `location.pathname.endsWith(`+js(second)+`) && document.readyState === "complete"`)
	b.until("nothing unread", `!document.querySelector(".chats-row .unread")`)
	b.click(`.chats-row[href$="` + first + `"]`)
	b.until("the first chat again", `location.pathname.endsWith(`+js(first)+`) && document.readyState === "complete"`)
	b.connected()
	b.click("#text")
	b.hit(kb.Escape)
	b.focused("the transcript", "[data-transcript]")
	for name, s := range map[string]screen{"phone": {width: 390, height: 844, phone: true}, "small": {width: 360, height: 640, phone: true}} {
		x := visit(t, root, p, s).as(ada)
		x.open("/chat/" + first)
		x.click(".chats-open")
		x.shot("beside-"+name, false)
		x.press(`.chats-row[href$="` + second + `"]`)
		x.open("/")
		if eval[bool](x, `document.querySelector(".main-nav ul").scrollWidth > document.querySelector(".main-nav ul").clientWidth || document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s: the header scrolls sideways", name)
		}
		x.shot("header-"+name, false)
	}
	b.clean("the list beside a chat")
}

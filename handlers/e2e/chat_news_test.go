package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"

	"agentsite/internal/testing/apptest"
)

// notices stands in for what the desktop shows of notifications.
const notices = `(() => {
	window.__notices = [];
	class Notification extends EventTarget {
		static permission = "granted";
		static requestPermission() { return Promise.resolve("granted"); }
		constructor(title, options) { super(); window.__notices.push({ title, body: options.body }); }
		close() {}
	}
	window.Notification = Notification;
})()`

// TestChat_NewsOnEveryPage tells of messages on any page: the number, and a
// notification, but none of what is muted.
func TestChat_NewsOnEveryPage(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	bob.Meets(ada)
	loud, muted := bob.Conversation("ada"), bob.Conversation("ada")
	ada.Must("PATCH", "/api/v1/conversations/"+muted, map[string]any{"notify": "nothing"}, 200)
	b := visit(t, root, p, desk).as(ada)
	b.preload(notices)
	b.open("/docs")
	b.until("the page listening", `document.readyState === "complete" && window.agentsite?.badge`)
	number := `document.querySelector('.main-nav a[href="/chat"] .unread')?.innerText.replace(/\D/g, "")`
	b.listens()
	before := eval[string](b, number+` || "0"`)
	bob.Say(loud, "Are you there, @ada?")
	b.until("a higher number", `Number(`+number+`) > `+before)
	b.until("the title", `/^\(\d+\)/.test(document.title)`)
	b.until("the notification", `window.__notices.length === 1 && window.__notices[0].body.includes("Are you there") && window.__notices[0].body.includes("bob")`)
	bob.Say(muted, "This is of no matter")
	bob.Say(loud, "Hello?")
	b.until("the next notification", `window.__notices.length === 2 && window.__notices[1].body.includes("Hello?")`)

	// Two tabs tell once.
	c := b.another()
	c.preload(notices)
	c.open("/agents")
	c.until("the page", `document.readyState === "complete" && window.agentsite?.badge`)
	c.until("the number there too", number)
	bob.Say(loud, "Hello again")
	b.until("the notification", `window.__notices.length === 3`)
	c.until("the number", `Number(`+number+`) >= 3`)
	if n := eval[int](c, "window.__notices.length"); n != 0 {
		t.Errorf("the second tab shows %d notifications besides", n)
	}

	// What is read is no news.
	b.enterRoom(loud)
	c.until("the number down", `Number(`+number+` || 0) < 3`)
	b.clean("news")
	c.clean("news in another tab")
}

// TestChat_AsksByAClickOnly asks for permission when somebody says so.
func TestChat_AsksByAClickOnly(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	b := visit(t, root, p, desk).as(ada)
	b.preload(`window.__asked = 0; (() => {
		class Notification { static permission = "default"; static requestPermission() { window.__asked++; Notification.permission = "granted"; return Promise.resolve("granted"); } }
		window.Notification = Notification;
	})()`)
	b.enterRoom(ada.Conversation())
	b.until("the offer", `document.querySelector("[data-notify-ask]:not([hidden])")`)
	b.hit("k", chromedp.ModifierCtrl)
	b.types("notify me")
	b.until("the offer", `document.querySelector("dialog.palette [aria-selected=true]")?.innerText.includes("Notify me")`)
	if n := eval[int](b, "window.__asked"); n != 0 {
		t.Errorf("the page asked %d times by itself", n)
	}
	b.enter()
	b.until("the question", "window.__asked === 1")
	b.until("no more offers", `!document.querySelector("[data-notify-ask]:not([hidden])")`)
	b.clean("asking")
}

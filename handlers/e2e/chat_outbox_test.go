package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"agentsite/internal/testing/apptest"
)

// TestChat_QueueGoesOutOnce writes while there is no network: the messages are
// kept over a reload, go out in their order when it is back, and once, even
// when their answers get lost and two tabs hold them.
func TestChat_QueueGoesOutOnce(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	f := newFront(t)
	p := behind(t, f)
	ada := p.User(t, "ada")
	id := ada.Conversation()
	one := visit(t, root, p, desk).as(ada)
	one.allow(offNet...)
	one.enterRoom(id)
	two := one.another()
	two.enterRoom(id)

	f.cut()
	for _, text := range count("queued", 1, 3) {
		one.send(text)
	}
	one.until("what waits", `document.querySelectorAll("[data-pending] > *").length === 3`)
	two.until("what waits in the other tab", `document.querySelectorAll("[data-pending] > *").length === 3`)
	one.until("a word about it", `document.querySelector("[data-pending]").innerText.match(/waiting|will be sent/)`)
	one.holds("#text", "")
	posts := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages")
	}
	f.loses(posts)
	f.mend()
	online(one, two)
	one.connected()
	two.connected()
	// The portal has the first message now, but nobody was told.
	one.until("an attempt", `document.querySelectorAll("[data-messages] > .message-mine").length === 1`)
	f.loses(nil)
	one.saidThere(count("queued", 1, 3)...)
	two.saidThere(count("queued", 1, 3)...)

	// A tab that is closed leaves what it could not send to the next one.
	f.cut()
	one.send("queued 4")
	one.until("what waits", `document.querySelectorAll("[data-pending] > *").length === 1`)
	one.do(chromedp.Navigate("about:blank"))
	f.mend()
	online(two)
	two.saidThere(count("queued", 1, 4)...)
	one.enterRoom(id)
	one.saidThere(count("queued", 1, 4)...)
	if got := strings.Join(two.kept(id), "\n"); got != strings.Join(count("queued", 1, 4), "\n") {
		t.Errorf("the portal keeps\n%s", got)
	}
	one.clean("the first tab")
	two.clean("the second tab")
}

// TestChat_RefusalGivesTheTextBack has a message refused, and a draft kept for
// each conversation.
func TestChat_RefusalGivesTheTextBack(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	first, second := ada.Conversation(), ada.Conversation()
	b := visit(t, root, p, desk).as(ada)
	b.allow("400 (Bad Request)", "413")
	b.enterRoom(first)
	long := strings.Repeat("x", 70<<10)
	b.send(long)
	b.until("the reason", `!document.querySelector("[data-error]").hidden && document.querySelector("[data-error]").innerText.trim()`)
	b.until("the text", `document.querySelector("#text").value.length === `+js(long)+`.length && !document.querySelector("[data-pending] > *")`)
	b.fill("#text", "for the first")
	b.until("the draft kept", `Object.entries(localStorage).some(([k, v]) => k.includes("draft") && v.includes("for the first"))`)
	b.enterRoom(second)
	b.holds("#text", "")
	b.fill("#text", "for the second")
	b.until("the draft kept", `Object.entries(localStorage).some(([k, v]) => k.includes("draft") && v.includes("for the second"))`)
	b.enterRoom(first)
	b.holds("#text", "for the first")
	b.enter()
	b.saidThere("for the first")
	b.enterRoom(first)
	b.holds("#text", "")
	b.enterRoom(second)
	b.holds("#text", "for the second")
	b.clean("drafts")
}

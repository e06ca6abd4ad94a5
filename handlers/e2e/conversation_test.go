package e2e

import (
	"image/color"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/testing/apptest"
)

// code is what somebody shows the others.
const code = "Look at this:\n\n```go\nfunc overdue(now time.Time) bool {\n\treturn now.After(due) // by a day\n}\n```\n"

// TestConversation has three people, one of them on a phone, and three agents
// of different kinds in one room of a portal with a process of its own. They
// talk, show files and code, stop an answer and have one given again; one
// network is cut in the middle of an answer, and the portal is killed in the
// middle of another. At the end everybody's page shows what the portal keeps.
func TestConversation(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	f := newFront(t)
	p := newProcess(t, f)
	far := newModel(t)
	ada, bob := visitAt(t, root, f.URL, desk), visitAt(t, root, f.URL, desk)
	cyd := visitAt(t, root, f.URL, screens["phone"])
	all := []*tab{ada, bob, cyd}
	for i, name := range []string{"ada", "bob", "cyd"} {
		all[i].allow(offNet...)
		all[i].allow("404 (Not Found)")
		all[i].open("/")
		all[i].signUp(name)
	}
	each := func(do func(b *tab)) {
		t.Helper()
		for _, b := range all {
			do(b)
		}
	}
	sees := func(text string) {
		t.Helper()
		each(func(b *tab) { b.until(text, row(text)) })
	}
	streams := func(text string, tabs ...*tab) {
		t.Helper()
		for _, b := range tabs {
			b.streaming(text)
		}
	}

	// Three agents: of the portal, a model elsewhere, and a program that bob
	// runs.
	ada.asks("POST", "/api/v1/agents", map[string]any{"name": "teller", "title": "Teller of tales", "description": "Tells stories.", "kind": "openai",
		"endpoint": far.base(), "visibility": "public", "config": map[string]string{"model": "story-1"}}, nil)
	bob.asks("POST", "/api/v1/agents", map[string]any{"name": "porter", "title": "The porter", "description": "Carries things.", "kind": "link", "visibility": "public"}, nil)
	var token struct{ Token string }
	bob.asks("POST", "/api/v1/tokens", map[string]any{"label": "laptop", "scopes": []string{"agents:write"}}, &token)
	porter := link(t, p.at, "porter", token.Token)

	// A room: ada makes it, invites bob, who brings his agent; cyd joins by a
	// link.
	id := ada.room("calc", "teller")
	ada.fill("#invite-member", "bob")
	ada.press(".invite button")
	bob.open("/chat")
	bob.press(`form[action$="/accept"] .button-primary`)
	bob.enterRoom(id)
	bob.fill("#invite-member", "porter")
	bob.press(".invite button")
	ada.open("/chat/" + id + "/settings")
	ada.press(`form:has(#role) button`)
	way := eval[string](ada, `document.querySelector("#links [data-copy-source]").textContent.trim()`)
	path, ok := strings.CutPrefix(way, f.URL)
	if !ok {
		t.Fatalf("the link leads to %q", way)
	}
	cyd.open(path)
	cyd.shot("talk-01-join", false)
	cyd.press(`form[action^="/join/"] button`)
	each(func(b *tab) { b.enterRoom(id) })
	each(func(b *tab) {
		b.until("all of them here", `["ada", "bob", "cyd"].every((h) => h === document.querySelector("#chat").dataset.me || !document.querySelector('[data-handle="' + h + '"] [data-presence]').hidden)`)
	})

	// They talk, and address an agent.
	ada.send("Good morning, all.")
	sees("Good morning, all.")
	cyd.send("Good morning from the train.")
	sees("from the train")
	bob.send("@calc 17.5 % of 2340")
	sees("409.5")
	each(func(b *tab) { b.until("nothing at work", `!document.querySelector("[data-working] [data-task]")`) })

	// A file and a picture of bob's, opened by cyd.
	bob.upload("#file", "plan.txt", []byte("We meet at four.\n"))
	bob.upload("#file", "rose.png", plainPicture(t, color.RGBA{200, 20, 60, 255}))
	bob.send("Here is the plan.")
	each(func(b *tab) {
		b.until("both files", row("Here is the plan.")+`?.querySelectorAll("[data-file]").length === 2`)
		b.until("the picture", row("Here is the plan.")+`.querySelector("img")?.naturalWidth > 0`)
	})
	eval[bool](cyd, `(window.__plan = "", fetch(`+row("Here is the plan.")+`.querySelector("a.file").href).then((r) => r.text()).then((x) => { window.__plan = x; }), true)`)
	cyd.until("what the file says", `window.__plan === "We meet at four.\n"`)
	cyd.shot("talk-02-file-phone", false)

	// Code, with its colours and the button to copy it.
	ada.send(code)
	each(func(b *tab) {
		b.until("code", row("Look at this")+`?.querySelector("pre span[class]") && !`+row("Look at this")+`.querySelector("[data-copy]").hidden`)
	})
	eval[bool](bob, `(navigator.clipboard.writeText = (x) => { window.__copied = x; return Promise.resolve(); }, `+row("Look at this")+`.querySelector("[data-copy]").setAttribute("data-chosen", ""), true)`)
	bob.click("[data-copy][data-chosen]")
	bob.until("the code copied", `window.__copied?.startsWith("func overdue(") && !window.__copied.includes("Look at this")`)
	bob.shot("talk-03-code", false)

	// An agent that names another one gets its help.
	far.answers(func(string) []string { return []string{"The box is packed. ", "@porter please carry it to the boat."} })
	cyd.send("@teller pack the box")
	if got := within(t, "a task for the porter", porter.asked); !strings.Contains(got.Text, "carry it") {
		t.Errorf("the porter was asked %q", got.Text)
	}
	porter.pieces <- "It is on board."
	porter.pieces <- ""
	sees("It is on board.")
	far.answers(nil)

	// One that is stopped: the request to the agent elsewhere ends.
	ada.send("@teller a story without end")
	within(t, "a request", far.asked)
	far.pieces <- "It began on a Monday"
	streams("It began on a Monday", all...)
	cyd.shot("talk-04-streaming-phone", false)
	ada.click("[data-stop] button")
	within(t, "the end of the request", far.stopped)
	each(func(b *tab) {
		b.until("the answer stopped", row("It began on a Monday")+`?.innerText.includes("Stopped before it was finished.")`)
	})
	ada.shot("talk-05-stopped", false)

	// And one given again.
	far.answers(func(string) []string { return []string{"It began on a **Tuesday**, and ended there."} })
	ada.act(row("It began on a Monday"), "again")
	sees("It began on a Tuesday, and ended there.")
	each(func(b *tab) {
		b.until("the earlier one folded", row("It began on a Monday")+`.querySelector("[data-earlier-answer]")?.open === false`)
	})
	far.answers(nil)

	// Bob's network goes in the middle of an answer.
	ada.send("@teller something about the sea")
	within(t, "a request", far.asked)
	far.pieces <- "Far out, "
	streams("Far out,", all...)
	f.cutOff(bob.session())
	bob.until("the loss noticed", "!agentsite.chat.link.open()")
	far.pieces <- "where the water "
	streams("Far out, where the water", ada, cyd)
	bob.send("Did I miss something?")
	bob.until("what waits", `document.querySelectorAll("[data-pending] > *").length === 1`)
	bob.shot("talk-06-cut", false)
	f.mend()
	bob.streaming("Far out, where the water")
	sees("Did I miss something?")
	far.pieces <- "is as blue as cornflowers."
	streams("is as blue as cornflowers.", all...)
	far.pieces <- ""
	sees("Far out, where the water is as blue as cornflowers.")

	// The portal is killed in the middle of an answer, while ada writes.
	cyd.send("@porter bring it back")
	within(t, "a task for the porter", porter.asked)
	porter.pieces <- "On my way, "
	streams("On my way,", all...)
	p.kill()
	each(func(b *tab) { b.until("the loss noticed", "!agentsite.chat.link.open()") })
	ada.send("Is anybody there?")
	cyd.send("I am.")
	for _, b := range []*tab{ada, cyd} {
		b.until("what waits", `document.querySelectorAll("[data-pending] > *").length === 1`)
	}
	cyd.shot("talk-07-killed-phone", false)
	p.run()
	each(func(b *tab) { b.connected() })
	sees("Is anybody there?")
	sees("I am.")
	porter.pieces <- "with both hands full."
	porter.pieces <- ""
	sees("On my way, with both hands full.")

	// Changed, taken away, liked.
	ada.act(row("Good morning, all."), "edit")
	ada.until("the text to change", `document.querySelector("#text").value === "Good morning, all."`)
	ada.fill("#text", "Good evening, all.")
	ada.enter()
	sees("Good evening, all.")
	bob.react(row("from the train"), "👍")
	cyd.act(row("I am."), "unsay")
	cyd.click("dialog[open] button[value=yes]")
	each(func(b *tab) {
		b.until("what changed", row("Good evening, all.")+`.querySelector("[data-edited]") && `+row("from the train")+`.querySelector("[data-by]")?.dataset.by === "bob" && !`+row("I am."))
	})
	each(func(b *tab) {
		b.until("nothing on its way", `!document.querySelector("[data-working] [data-task]") && !document.querySelector("[data-pending] > *")`)
	})
	want := ada.transcript()
	for _, b := range all[1:] {
		if got := b.transcript(); !slices.Equal(got, want) {
			t.Errorf("one sees\n%s\nanother\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	t.Logf("%d rows, the same on three pages and in the portal", len(want))
	ada.shot("talk-08-end", false)
	cyd.shot("talk-09-end-phone", false)

	// Without scripts it reads and sends, too.
	plain := visitAt(t, root, f.URL, screen{width: 390, height: 844, phone: true})
	plain.allow("404 (Not Found)")
	plain.open("/login")
	plain.fill("#name", "bob")
	plain.fill("#password", apptest.Password)
	plain.press("main form button")
	plain.open("/chat/" + id)
	if got := len(eval[[]int](plain, `[...document.querySelectorAll("[data-messages] > [data-seq]")].map((el) => Number(el.dataset.seq))`)); got != len(want) {
		t.Errorf("without scripts there are %d rows, not %d", got, len(want))
	}
	plain.upload("#file", "plain.txt", []byte("Sent by hand.\n"))
	plain.send("No script was needed.")
	plain.until("it, with its file", row("No script was needed.")+`.querySelector("a.file")`)
	each(func(b *tab) {
		b.until("it, with its file", row("No script was needed.")+`?.querySelector("a.file")?.innerText.includes("plain.txt")`)
	})
	plain.shot("talk-10-plain-phone", false)

	// Who is removed sees nothing more.
	ada.click(`[data-handle="cyd"] [data-menu] summary`)
	ada.press(`[data-handle="cyd"] .act-danger`)
	cyd.until("the end of it", "!agentsite.chat.link.open()")
	bob.send("Now we are alone.")
	for _, b := range []*tab{ada, bob} {
		b.until("what bob says", row("Now we are alone."))
	}
	cyd.until("a word about it", `!document.querySelector("[data-state]").hidden && document.querySelector("[data-state]").innerText.trim()`)
	if eval[bool](cyd, `document.body.innerText.includes("Now we are alone.")`) {
		t.Error("who was removed sees what is said")
	}
	cyd.shot("talk-11-removed-phone", false)
	eval[bool](cyd, `(window.__status = 0, fetch("/api/v1/conversations/`+id+`/messages").then((r) => { window.__status = r.status; }), true)`)
	cyd.until("a refusal", "window.__status === 404")
	ada.connected()
	each(func(b *tab) { b.clean("the conversation") })
	plain.clean("the conversation without scripts")
}

// within is what comes from a channel before patience ends.
func within[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("never saw %s", what)
	}
	return v
}

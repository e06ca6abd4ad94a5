package e2e

import (
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// sound checks the page as it is: axe at both widths in both schemes, if AGENTSITE_TEST_AXE names it, and the layout at
// 1280, 390 and 360 px, with nothing that sticks out sideways. prepare brings the page into its state at each width.
func (b *tab) sound(name string, prepare func()) {
	b.t.Helper()
	for _, s := range []screen{{width: 360, height: 720, phone: true}, {width: 390, height: 844, phone: true}, {width: 1280, height: 900}} {
		b.resize(s)
		if prepare != nil {
			prepare()
		}
		for _, w := range eval[[]string](b, audit) {
			b.t.Errorf("%s at %d: %s", name, s.width, w)
		}
		b.axeHere(name)
	}
}

// TestChat_PartsAreSound checks the parts of a chat that people with other chats expect: in each of their states, with
// axe, and at three widths.
func TestChat_PartsAreSound(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	m, far := newModel(t), newModel(t)
	m.answers(func(string) []string { return []string{"Hello from the model."} })
	p := apptest.Start(t, ownModel(m))
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	ada.Conversation("bob", "calc")
	agent := ada.Agent("public", far.base())
	room := ada.Conversation(agent, "calc")
	b := visit(t, root, p, desk).as(ada).checked()

	b.open("/")
	b.sound("the assistant on the home page", nil)
	b.open("/chat?new=1")
	b.sound("a new chat", nil)
	b.click("#agent")
	for _, two := range []string{"ca", "bo"} {
		b.types(two)
		b.until("a name", `document.querySelector(".member-options [aria-selected=true]")`)
		b.enter()
	}
	b.types("gu")
	b.until("a name", `document.querySelector(".member-options [aria-selected=true]")`)
	b.sound("names of members", nil)
	b.open("/agents/new/program")
	b.sound("a program on a laptop", nil)

	b.enterRoom(room)
	far.answers(func(string) []string {
		return strings.SplitAfter(streamedBeginning+"![a picture](https://pictures.example/a.png)\n\nThe end.", " ")
	})
	b.send("@" + agent + " what is overdue?")
	b.answered("The end.")
	b.sound("an answer with a table, code, a formula and a picture", nil)
	far.answers(func(string) []string { return []string{"Nothing is."} })
	b.click(`[data-last-do="again"]`)
	b.until("two answers", last+`.querySelector("[data-version-at]")?.innerText === "2/2"`)
	b.sound("two answers", nil)
	b.sound("chats beside", func() {
		eval[bool](b, `(document.querySelector(".chats").open = true)`)
	})
	eval[bool](b, `document.querySelector(".chats").open = false, true`)
	b.sound("settings", func() {
		eval[bool](b, `document.querySelector("[data-side]").open = document.querySelector(".side-settings").open = true`)
	})
	b.enterRoom(room)
	b.click(".agent-switch > summary")
	b.sound("another agent", nil)
	far.answers(nil)
	b.enterRoom(room)
	b.send("@" + agent + " and last year?")
	<-far.asked
	far.pieces <- "In 2025 there "
	b.streaming("In 2025")
	far.CloseClientConnections()
	b.until("a way on", last+`.querySelector("[data-again] button")?.checkVisibility() && `+last+`.querySelector("[data-continue] button")?.checkVisibility()`)
	b.sound("a broken answer", nil)
	b.clean("parts of a chat")
}

// TestChat_PartsWithoutAMouse goes by Tab through the pages of chats, at both widths.
func TestChat_PartsWithoutAMouse(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, ownModel(newModel(t)))
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	room := ada.Conversation("bob", "calc", "guide")
	ada.Conversation("calc")
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 360, height: 800, scripts: true}} {
		t.Run(name, func(t *testing.T) {
			b := visit(t, root, p, s).as(ada.With(t))
			b.enterRoom(room)
			b.send("@calc 2+2")
			b.answered("4")
			for _, x := range []struct{ name, path string }{{"chat", "/chat/" + room}, {"chats", "/chat"},
				{"settings", "/chat/" + room + "/settings"}} {
				b.open(x.path)
				// The page may have been made in the moment in which the task ended.
				b.until("no answer under way", `document.querySelector("[data-stop]")?.hidden !== false`)
				b.tabThrough(x.name)
			}
			b.clean("chats by Tab")
		})
	}
}

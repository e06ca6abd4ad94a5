package e2e

import (
	"strconv"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestChat_SwitchesTheAgentInTheComposer lets another agent answer in the same chat, then the first one again, and
// begins a new chat with another one, all from the composer.
func TestChat_SwitchesTheAgentInTheComposer(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			ada := p.User(t, "ada-"+name)
			one, two := newModel(t), newModel(t)
			one.answers(func(string) []string { return []string{"From the first."} })
			two.answers(func(string) []string { return []string{"From the second."} })
			first, second := ada.Agent("public", one.base()), ada.Agent("public", two.base())
			b := visit(t, root, p, s).as(ada)
			b.open("/chat/" + ada.Conversation(first))
			enter := func() {
				if s.scripts {
					b.connected()
				}
			}
			enter()
			b.send("Hello")
			b.answered("From the first.")
			b.click(".agent-switch > summary")
			b.shot("switch-"+name+"-light", false)
			b.fill("#switch-agent", second)
			if s.scripts {
				b.until("the agent", `document.querySelector('.agent-switch .member-options [data-ref="'+`+js(second)+`+'"]')?.checkVisibility()`)
				b.scheme("dark")
				b.shot("switch-"+name+"-dark", false)
				b.scheme("light")
				b.click(`.agent-switch .member-options [data-ref="` + second + `"]`)
			}
			b.press(`.agent-switch .button-primary`)
			enter()
			b.until("its name in the composer", `document.querySelector(".agent-switch-name").innerText.trim().length > 0 && Boolean(document.querySelector('[data-member="'+`+js(second)+`+'"]'))`)
			b.send("And you?")
			b.answered("From the second.")
			b.click(".agent-switch > summary")
			b.press(`.agent-switch-one[value="` + first + `"]`)
			enter()
			b.send("You again?")
			b.answered("From the first.")
			before := b.path()
			b.click(".agent-switch > summary")
			b.fill("#switch-agent", "calc")
			b.press(`.agent-switch button[name="in"]`)
			if b.path() != "/chat/new" || before == "/chat/new" {
				t.Errorf("a new chat begins at %s", b.path())
			}
			b.clean("switching the agent")
		})
	}
}

// TestChat_HasSettingsBehindOneButton opens the settings of a chat beside it, and uses one.
func TestChat_HasSettingsBehindOneButton(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"], "plain": screens["phone without scripts"]} {
		t.Run(name, func(t *testing.T) {
			ada := p.User(t, "ada-"+name)
			b := visit(t, root, p, s).as(ada)
			b.open("/chat/" + ada.Conversation("calc"))
			if s.width < desk.width {
				b.click(".side-open")
			}
			b.until("members alone", `document.querySelector(".people").checkVisibility() && !document.querySelector("#title").checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true })`)
			b.shot("settings-closed-"+name, false)
			if s.phone {
				b.until("no button over the members", `!document.querySelector(".chats-open").checkVisibility({ visibilityProperty: true })`)
			}
			b.click(".side-settings > summary")
			b.shot("settings-"+name, false)
			b.fill("#title", "Sums and more")
			b.press(".side-rename button")
			b.until("the title", `document.querySelector("[data-title]").innerText === "Sums and more"`)
			b.clean("the settings of a chat")
		})
	}
}

// TestChatsBeside_IsLive has a message in another chat: it moves up beside the open one and is marked, without a
// reload, and the mark goes when it is read in another tab.
func TestChatsBeside_IsLive(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	bob.Meets(ada)
	shared, open := bob.Conversation("ada"), ada.Conversation("calc")
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		t.Run(name, func(t *testing.T) {
			b := visit(t, root, p, s).as(ada.With(t))
			b.enterRoom(open)
			b.send("2+2")
			b.answered("4")
			if s.phone {
				b.click(".chats-open")
			}
			first := `document.querySelector(".chats-row").getAttribute("href")`
			b.until("the open chat on top", first+` === "/chat/`+open+`"`)
			eval[bool](b, `window.__same = true`)
			row := `document.querySelector('.chats-row[href="/chat/` + shared + `"]')`
			before := eval[int](b, `parseInt(`+row+`.querySelector(".unread")?.textContent || "0", 10)`)
			eval[bool](b, `(() => {
				const row = `+row+`, dots = document.createElement("span"), words = document.createElement("span");
				dots.className = "dots";
				words.className = "visually-hidden";
				row.append(dots, " ", words);
				return true;
			})()`)
			b.listens()
			bob.Say(shared, "News from bob")
			b.until("its dots are gone", `!`+row+`.querySelector(".dots, .dots + .visually-hidden")`)
			b.until("the other chat on top", first+` === "/chat/`+shared+`"`)
			b.until("it is marked", `parseInt(`+row+`.querySelector(".unread").textContent, 10) > `+strconv.Itoa(before)+` && `+row+`.matches(".chat-unread")`)
			b.shot("live-list-"+name, false)
			fresh := bob.Conversation("ada")
			bob.Say(fresh, "A chat that the list does not have")
			b.until("the new chat on top", first+` === "/chat/`+fresh+`"`)
			c := b.another()
			c.enterRoom(shared)
			b.until("the mark is gone", `!`+row+`.querySelector(".unread")`)
			if !eval[bool](b, `window.__same === true`) {
				t.Error("the page was loaded again")
			}
			if s.phone {
				b.click(".chats-open")
			}
			b.send("3+3")
			b.until("the open chat on top again", first+` === "/chat/`+open+`"`)
			b.clean("the live list")
			c.clean("the other tab")
		})
	}
}

// lateNews holds the stream of news back until the page calls __listen.
const lateNews = `(() => {
	const request = navigator.locks.request.bind(navigator.locks);
	const held = new Promise((done) => { window.__listen = done; });
	navigator.locks.request = async (...args) => { await held; return request(...args); };
})()`

// TestChatsBeside_CatchesUp has messages between the page and the first event of its stream: the list shows them when
// the stream opens.
func TestChatsBeside_CatchesUp(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	bob.Meets(ada)
	shared, open := bob.Conversation("ada"), ada.Conversation("calc")
	b := visit(t, root, p, desk).as(ada)
	b.preload(lateNews)
	b.enterRoom(open)
	b.until("the first chat on top", `document.querySelector(".chats-row").getAttribute("href") === "/chat/`+open+`"`)
	bob.Say(shared, "News from bob")
	fresh := bob.Conversation("ada")
	bob.Say(fresh, "A chat that the list does not have")
	eval[bool](b, `(window.__listen(), true)`)
	b.listens()
	row := `document.querySelector('.chats-row[href="/chat/` + shared + `"]')`
	b.until("the mark", row+`?.matches(".chat-unread") && `+row+`.querySelector(".unread").textContent.startsWith("1")`)
	b.until("the order", `[...document.querySelectorAll(".chats-row")].slice(0, 2).map((r) => r.getAttribute("href")).join() === "/chat/`+fresh+`,/chat/`+shared+`"`)
	b.clean("news before the stream")
}

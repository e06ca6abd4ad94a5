package e2e

import (
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestChat_TriesAgainAndContinues has an answer stopped and another one broken off. The buttons to ask again and to go on
// are there at once, in a live page at desktop width, and on a phone without scripts.
func TestChat_TriesAgainAndContinues(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true}} {
		t.Run(name, func(t *testing.T) {
			ada := p.User(t, "ada-"+name)
			far := newModel(t)
			agent := ada.Agent("public", far.base())
			b := visit(t, root, p, s).as(ada)
			id := ada.Conversation(agent)
			enter := func() {
				b.open("/chat/" + id)
				if s.scripts {
					b.connected()
				}
			}
			press := func(selector string) {
				if s.scripts {
					b.click(selector)
				} else {
					b.press(selector)
				}
			}
			// told confirms the host of the agent, once.
			enter()
			b.send("Tell me a story")
			within(t, "the question", far.asked)
			far.pieces <- "Once upon"
			b.streaming("Once upon")
			b.stops()
			within(t, "the end of the work", far.stopped)
			b.answered("Once upon")
			shown := func(what string) string { return last + `.querySelector("` + what + ` button")?.checkVisibility()` }
			b.looksUntil(shown("[data-again]"))
			b.until("a button to try again", shown("[data-again]"))
			b.until("a button to go on", shown("[data-continue]"))
			b.shot("retry-"+name, false)

			// The agent reads its own beginning, and the wish to go on.
			press("[data-messages] > article:last-of-type [data-continue] button")
			if got := within(t, "the wish", far.asked); !strings.Contains(got, "Continue where you stopped.") {
				t.Errorf("it is asked %q", got)
			}
			far.pieces <- "a time there was"
			b.streaming("a time there was")
			far.CloseClientConnections()
			b.answered("a time there was")
			b.until("a quote of the beginning", mine+`.querySelector("[data-quote]")?.innerText.includes("Once upon")`)
			enter()
			b.until("the buttons after a reload", shown("[data-again]")+" && "+shown("[data-continue]"))

			// Asked again, the answer takes the place of the part that was broken off.
			press("[data-messages] > article:last-of-type [data-again] button")
			within(t, "the same wish", far.asked)
			far.pieces <- "a time there was a harbour."
			far.pieces <- ""
			b.answered("there was a harbour.")
			b.until("no button any more", `!`+last+`.querySelector("[data-again]")`)
			b.until("the broken one folded", `[...document.querySelectorAll("[data-earlier-answer]")].length === 1`)
			b.clean("trying again")
		})
	}
}

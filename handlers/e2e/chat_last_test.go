package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"agentsite/internal/testing/apptest"
)

// TestChat_ActsOnTheLastAnswer uses the buttons under the last answer: another answer, the way between both, the
// question edited in its place, and an earlier one asked again in a new chat. It does so with a mouse and keys at
// desktop width, by touch on a phone, and on a phone without scripts.
func TestChat_ActsOnTheLastAnswer(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true},
		"plain": {width: 390, height: 844, phone: true}} {
		t.Run(name, func(t *testing.T) {
			ada := p.User(t, "ada-"+name)
			far := newModel(t)
			b := visit(t, root, p, s).as(ada)
			id := ada.Conversation(ada.Agent("public", far.base()))
			enter := func(path string) {
				b.open(path)
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
			says := func(text string) { far.answers(func(string) []string { return []string{text} }) }
			enter("/chat/" + id)
			says("Four.")
			b.send("What is 2+2?")
			b.answered("Four.")
			says("Six.")
			b.send("And 3+3?")
			b.answered("Six.")
			enter("/chat/" + id)
			b.until("the buttons", `["again", "edit", "more"].every((x) => document.querySelector("[data-last-do=" + x + "]").checkVisibility({ visibilityProperty: true }))`)
			b.shot("last-"+name+"-light", false)

			// Another answer takes the place of the first, which is one click away.
			says("It is six.")
			press(`[data-last-do="again"]`)
			b.answered("It is six.")
			b.until("two answers", last+`.querySelector("[data-version-at]")?.innerText === "2/2"`)
			b.until("the buttons at the new one", `document.querySelector("[data-last-actions]").action.endsWith("/m/" + `+last+`.dataset.seq + "/again")`)
			if s.scripts {
				before := eval[int](b, `performance.getEntriesByType("resource").length`)
				if name == "desk" {
					eval[bool](b, last+`.querySelector("[data-version]").focus(), true`)
					b.enter()
				} else {
					b.click(`[data-messages] > article:last-of-type [data-version="earlier"]`)
				}
				b.until("the first answer", last+`.querySelector("[data-version-at]").innerText === "1/2" && `+last+`.querySelector(".bubble").innerText.trim() === "Six."`)
				if n := eval[int](b, `performance.getEntriesByType("resource").length`) - before; n > 1 {
					t.Errorf("%d requests show another answer", n)
				}
				if name == "desk" {
					b.focused("the way back", `[data-version="later"]`)
				}
				b.shot("versions-"+name, false)
				b.click(`[data-messages] > article:last-of-type [data-version="later"]`)
				b.until("the second answer", last+`.querySelector("[data-version-at]").innerText === "2/2" && `+last+`.querySelector(".bubble").innerText.includes("It is six.")`)
			} else {
				b.press(`[data-messages] > article:last-of-type [data-version="earlier"]`)
				b.says("1/2")
				b.press(`[data-version="later"]`)
				b.says("It is six.")
				enter("/chat/" + id)
			}

			// The last question, edited, is asked again in its place.
			far.answers(func(asked string) []string { return []string{"You asked " + asked} })
			press(`[data-last-do="edit"]`)
			b.until("the text to change", `document.querySelector("#text").value === "And 3+3?" && document.querySelector("[data-save]").checkVisibility()`)
			b.shot("edit-"+name, false)
			b.send("And 4+4?")
			b.answered("You asked And 4+4?")
			if b.path() != "/chat/"+id {
				t.Errorf("the last question is asked again at %s", b.path())
			}
			b.until("three answers", last+`.querySelector("[data-version-at]")?.innerText === "3/3"`)
			if n := eval[int](b, `document.querySelectorAll(".message-mine[data-seq]").length`); n != 2 {
				t.Errorf("%d questions", n)
			}

			// An earlier one is asked again in a new chat, and stays as it was here.
			first := eval[string](b, `document.querySelector(".message-mine").dataset.seq`)
			b.leaves(func() {
				enter("/chat/" + id + "?edit=" + first + "#composer")
				b.until("the text to change", `document.querySelector("#text").value === "What is 2+2?" && !document.querySelector("#text").readOnly`)
				b.leaves(func() { b.send("What is 5+5?") })
			})
			b.until("another chat", `location.pathname !== `+js("/chat/"+id)+` && document.querySelector("[data-messages]")`)
			b.answered("You asked What is 5+5?")
			if strings.Contains(eval[string](b, `document.querySelector("[data-messages]").innerText`), "3+3") {
				t.Error("the new chat has what was said after the question")
			}
			enter("/chat/" + id)
			b.says("What is 2+2?")

			// Saving alone asks no agent.
			if s.scripts {
				b.hit(kb.Escape)
				press(`[data-last-do="edit"]`)
				b.until("the text to change", `document.querySelector("#text").value === "And 4+4?"`)
				b.fill("#text", "And four and four?")
				b.click("[data-save]")
				b.until("the new text", `document.querySelector("[data-messages]").innerText.includes("And four and four?") && document.querySelector("[data-edited]")`)
				b.until("no new answer", last+`.querySelector("[data-version-at]")?.innerText === "3/3"`)
			}
			b.clean("the buttons of the last answer")
		})
	}
}

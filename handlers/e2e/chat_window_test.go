package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/apptest"
)

// fillRoom says many things in a conversation, in no order.
func fillRoom(t testing.TB, id string, many int, writers ...*apptest.Client) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for n := range 4 * len(writers) {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(many); i = next.Add(1) {
				a, err := writers[n%len(writers)].Try(http.MethodPost, "/api/v1/conversations/"+id+"/messages", map[string]any{"client_id": fmt.Sprint("fill-", i),
					"text": fmt.Sprintf("Number %d.\n\n%s", i, "Some words that take more than one line when the window is narrow. "[:10+i%50])})
				if err != nil || a.Status != http.StatusCreated {
					t.Errorf("message %d: %d %v", i, a.Status, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// standing notes in the page which row is read, and answers how far it moved
// since it was noted.
const (
	noteRow = `(() => {
		const box = document.querySelector("[data-transcript]"), top = box.getBoundingClientRect().top;
		const row = [...document.querySelectorAll("[data-messages] > article")].find((el) => el.getBoundingClientRect().bottom > top + 40);
		window.__read = { seq: row.dataset.seq, top: row.getBoundingClientRect().top };
		return true;
	})()`
	movedRow = `(window.__moved = null, requestAnimationFrame(() => requestAnimationFrame(() => {
		const row = document.getElementById("m" + window.__read.seq);
		window.__moved = row ? Math.abs(row.getBoundingClientRect().top - window.__read.top) : 9999;
	})), true)`
	atRest = `!agentsite.chat.window.busy() && !document.querySelector("[data-moving]")`
)

// stands fails when what was read moved.
func (b *tab) stands(when string) {
	b.t.Helper()
	eval[bool](b, movedRow)
	b.until("the next frame", "window.__moved !== null")
	if moved := eval[float64](b, "window.__moved"); moved > 2 {
		b.fail("%s: what was read moved by %v px", when, moved)
	}
}

func (b *tab) rowCount() int {
	b.t.Helper()
	return eval[int](b, `document.querySelectorAll("[data-messages] > [data-seq]").length`)
}

// TestChat_LongTranscript walks through 700 messages, in the whole form through
// 2,000: the page holds a part of them, and nothing that is fetched, dropped or
// said scrolls to a message.
func TestChat_LongTranscript(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	const most = 360
	many := 700
	if full() {
		many = 2000
	}
	p := apptest.Start(t)
	ada, bob, cid := p.User(t, "ada"), p.User(t, "bob"), p.User(t, "cid")
	ada.Meets(bob, cid)
	id := ada.Conversation("bob", "cid")
	fillRoom(t, id, many, ada, bob, cid)
	b := visit(t, root, p, desk).as(ada)
	b.enterRoom(id)
	if n := b.rowCount(); n > 160 {
		t.Errorf("the page begins with %d rows", n)
	}

	// Up to the beginning.
	for step := 0; !eval[bool](b, `!document.querySelector("[data-earlier]")`); step++ {
		if step > 2*many/50 {
			b.fail("the beginning does not come")
		}
		// The browser tells of the scrolling with the next frame; from here on
		// nothing may move.
		before := eval[string](b, `(() => {
			const box = document.querySelector("[data-transcript]");
			box.scrollTop = -(box.scrollHeight - box.clientHeight) + box.clientHeight / 3;
			return `+noteRow+` && document.querySelector("[data-messages] > [data-seq]").id;
		})()`)
		b.until("earlier messages", `document.querySelector("[data-messages] > [data-seq]").id !== `+js(before)+` || !document.querySelector("[data-earlier]")`)
		b.until("rest", atRest)
		b.stands("on the way up")
		if n := b.rowCount(); n > most {
			b.fail("the page holds %d rows", n)
		}
		b.inOrder()
	}
	b.until("the first of all", `document.querySelector("[data-messages] > [data-seq]").dataset.seq === "1"`)

	// Somebody writes meanwhile.
	eval[bool](b, `document.querySelector("[data-transcript]").scrollBy(0, 200), true`)
	eval[bool](b, noteRow)
	bob.Say(id, "while you were away")
	b.until("the button", `!document.querySelector("[data-to-end]").hidden && document.querySelector("[data-to-end]").innerText.includes("1 new message")`)
	b.stands("when somebody writes")

	// And down a way, then to the end at once.
	for range many / 200 {
		before := eval[string](b, `(() => {
			const box = document.querySelector("[data-transcript]");
			box.scrollTop = -box.clientHeight / 3;
			return `+noteRow+` && [...document.querySelectorAll("[data-messages] > [data-seq]")].at(-1).id;
		})()`)
		b.until("later messages", `[...document.querySelectorAll("[data-messages] > [data-seq]")].at(-1).id !== `+js(before))
		b.until("rest", atRest)
		b.stands("on the way down")
	}
	b.inOrder()
	b.click("[data-to-end]")
	b.until("the end", `[...document.querySelectorAll("[data-messages] > article")].at(-1).innerText.includes("while you were away") && document.querySelector("[data-transcript]").scrollTop === 0`)
	b.until("the button gone", `document.querySelector("[data-to-end]").hidden`)
	bob.Say(id, "and now")
	b.until("what is said now", `[...document.querySelectorAll("[data-messages] > article")].at(-1).innerText.includes("and now") && document.querySelector("[data-transcript]").scrollTop === 0`)

	// A link to one in the middle, on the page and from elsewhere.
	middle, third := fmt.Sprintf("m%d", many/2), fmt.Sprint(many/3)
	eval[bool](b, `location.hash = "#`+middle+`", true`)
	b.until("the middle", `document.activeElement.id === "`+middle+`"`)
	b.inOrder()
	b.open("/chat/" + id + "?at=" + third + "#m" + third)
	b.connected()
	b.until("the message in view", `(() => {
		const r = document.getElementById("m`+third+`")?.getBoundingClientRect();
		return r && r.top > 0 && r.bottom < innerHeight;
	})()`)
	eval[bool](b, noteRow)
	bob.Say(id, "not to be shown here")
	b.until("the button", `!document.querySelector("[data-to-end]").hidden`)
	b.stands("when somebody writes far below")
	if eval[bool](b, `document.querySelector("[data-messages]").innerText.includes("not to be shown here")`) {
		t.Error("a message stands beside others that it does not follow")
	}
	b.clean("a long conversation")
}

// TestChat_StreamsWithoutMoving reads above while an answer grows below.
func TestChat_StreamsWithoutMoving(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	far := newModel(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	agent := ada.Agent("private", far.base())
	id := ada.Conversation(agent)
	b := visit(t, root, p, desk).as(ada)
	b.enterRoom(id)
	far.answers(func(string) []string { return []string{"First line.\n\n" + longText(60)} })
	b.send("Say much")
	b.answered("First line.")
	far.answers(nil)
	b.send("Say more")
	<-far.asked
	far.pieces <- "It "
	b.streaming("It")
	b.until("the end", `document.querySelector("[data-transcript]").scrollTop === 0`)
	for range 20 {
		far.pieces <- "goes on.\n\n"
	}
	b.streaming("goes on.")
	b.until("the end followed", `document.querySelector("[data-transcript]").scrollTop === 0`)
	eval[bool](b, `document.querySelector("[data-transcript]").scrollTop = -800, true`)
	b.until("the scrolling noticed", `!agentsite.chat.scroll.follows()`)
	eval[bool](b, noteRow)
	for range 20 {
		far.pieces <- "and on.\n\n"
	}
	b.until("what came", `document.querySelector("[data-streamed]").innerText.split("and on.").length === 21`)
	b.stands("while an answer streams")
	far.pieces <- ""
	b.until("the whole", `!document.querySelector("[data-working] [data-task]")`)
	b.stands("when an answer is whole")
	b.clean("an answer that streams below")
}

func longText(lines int) (s string) {
	for i := range lines {
		s += fmt.Sprintf("Line %d of what is said.\n\n", i)
	}
	return s
}

package e2e

import (
	"bytes"
	"image/color"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestChat_SendsFiles chooses, drops and pastes files, sees how far they are,
// leaves one out and sends the rest.
func TestChat_SendsFiles(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	f := newFront(t)
	p := behind(t, f)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	id := ada.Conversation("bob")
	b, other := visit(t, root, p, desk).as(ada), visit(t, root, p, desk).as(bob)
	b.allow("ERR_ABORTED")
	b.enterRoom(id)
	other.enterRoom(id)

	// Larger than what the network takes at once.
	gate := make(chan struct{})
	f.holds(func(r *http.Request) <-chan struct{} {
		if r.Method == http.MethodPost && r.URL.Path == "/api/v1/files" {
			return gate
		}
		return nil
	})
	attached := `[...document.querySelectorAll("[data-attached] > li")]`
	b.upload("#file", "minutes.txt", bytes.Repeat([]byte("What was said on Monday.\n"), 1<<20))
	b.until("the file", attached+`.length === 1 && `+attached+`[0].innerText.includes("minutes.txt") && `+attached+`[0].innerText.includes("25 MiB")`)
	b.until("how far it is", `(() => { const v = document.querySelector("[data-attached] progress").value; return v > 0 && v < 1; })()`)
	b.upload("#file", "left-out.txt", bytes.Repeat([]byte("no"), 1<<20))
	b.until("two files", attached+`.length === 2`)
	b.click("[data-attached] > li:nth-child(2) [data-attached-drop]")
	b.until("one file", attached+`.length === 1`)
	b.focused("the composer", "#text")

	// Dropped and pasted.
	eval[bool](b, `(() => {
		const carry = (name, text, type) => { const d = new DataTransfer(); d.items.add(new File([text], name, { type })); return d; };
		const on = (type, dataTransfer) => document.querySelector("#composer").dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
		const dropped = carry("dropped.csv", "a,b\n1,2\n", "text/csv");
		on("dragenter", dropped);
		const over = document.querySelector("#composer").classList.contains("composer-over");
		on("dragover", dropped);
		on("drop", dropped);
		document.querySelector("#text").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: carry("pasted.txt", "from the clipboard", "text/plain") }));
		return over;
	})()`)
	b.until("three files", attached+`.length === 3`)

	// Sent before they are up: the message waits for its files.
	b.send("Here they are")
	b.until("the wait", `document.querySelector("#composer").hasAttribute("data-waiting")`)
	if n := f.count("POST", "/messages"); n != 0 {
		t.Errorf("%d messages went out before their files", n)
	}
	close(gate)
	for _, x := range []*tab{b, other} {
		x.until("the message with its files", `(() => {
			const m = document.querySelector("[data-messages] > article");
			return m && m.innerText.includes("Here they are") && m.querySelectorAll("[data-file]").length === 3
				&& ["minutes.txt", "dropped.csv", "pasted.txt"].every((n) => m.innerText.includes(n)) && !m.innerText.includes("left-out");
		})()`)
	}
	b.until("an empty composer", attached+`.length === 0 && document.querySelector("#text").value === ""`)
	eval[bool](other, `(window.__size = -1, fetch([...document.querySelectorAll("[data-file]")].find((a) => a.innerText.includes("minutes")).href).then((r) => r.text()).then((x) => { window.__size = x.length; }), true)`)
	other.until("what the file holds", `window.__size === 25 * 1024 * 1024`)

	// A picture alone is a message too.
	f.holds(nil)
	b.upload("#file", "rose.png", plainPicture(t, color.RGBA{200, 20, 60, 255}))
	b.until("the picture up", `document.querySelector("[data-attached] .attached-done, [data-attached] > .attached-done")`)
	b.click("#text")
	b.enter()
	other.until("the picture", `document.querySelector("[data-messages] .picture img")?.complete && document.querySelector("[data-messages] .picture img").naturalWidth > 0`)

	// One that is refused stays, with the reason.
	f.refuses(func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/api/v1/files" })
	b.allow("502 (Bad Gateway)")
	b.upload("#file", "again.txt", []byte("once more"))
	b.until("the reason", `document.querySelector("[data-error]").innerText.includes("again.txt")`)
	f.refuses(nil)
	b.send("At the second try")
	other.until("the file", `[...document.querySelectorAll("[data-messages] > article")].at(-1).innerText.includes("again.txt")`)
	b.clean("files")
	other.clean("files of somebody else")
}

// TestChat_SaysWhereTextGoes writes to an agent that runs on another host, at both widths: the page names the host once,
// before the text is sent.
func TestChat_SaysWhereTextGoes(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	far := newModel(t).answers(func(string) []string { return []string{"I hear you."} })
	p := apptest.Start(t)
	agent := p.User(t, "ada").Agent("public", far.base())
	host := strings.TrimPrefix(far.URL, "http://")
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		t.Run(name, func(t *testing.T) {
			bob := p.User(t, "bob-"+name)
			id := bob.Conversation()
			b := visit(t, root, p, s).as(bob)
			b.allow("409 (Conflict)")
			b.enterRoom(id)
			// The agent comes after the page was loaded.
			bob.Must(http.MethodPost, "/api/v1/conversations/"+id+"/members", map[string]any{"handle": agent}, http.StatusCreated)
			b.until("that it came", `document.querySelector("[data-messages] .event")`)
			b.send("@" + agent + " hello")
			b.until("where it goes", `document.querySelector("[data-disclosure]")?.innerText.includes(`+js(host)+`)`)
			b.holds("#text", "@"+agent+" hello")
			b.choose("#share", "nothing")
			b.click("#text")
			if s.phone {
				b.click("[data-send]")
			} else {
				b.enter()
			}
			b.answered("I hear you.")
			b.until("nothing more to tell", `!document.querySelector("[data-disclosure]")`)
			b.send("@" + agent + " again")
			b.until("the second answer", `[...document.querySelectorAll("[data-messages] > article:not(.message-mine)")].length === 2`)
			b.enterRoom(id)
			b.until("nothing more to tell", `!document.querySelector("[data-disclosure]")`)
			b.clean("where text goes")
		})
	}
}

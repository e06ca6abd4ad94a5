package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// offNet is what a browser's console says while the network is away.
var offNet = []string{"400 (Bad Request)", "net::ERR_", "WebSocket connection to", "502 (Bad Gateway)", "ERR_INTERNET_DISCONNECTED"}

// online has pages learn that the network is back, as browsers say it, so that
// they do not wait for their next attempt.
func online(tabs ...*tab) {
	for _, b := range tabs {
		b.t.Helper()
		eval[bool](b, `dispatchEvent(new Event("online"))`)
	}
}

// count is texts numbered from a to b.
func count(what string, a, b int) (out []string) {
	for i := a; i <= b; i++ {
		out = append(out, fmt.Sprintf("%s %d", what, i))
	}
	return out
}

// TestChat_ResumesAfterCuts reads a conversation over a network that is cut
// again and again while others write: every message is there once, in order.
func TestChat_ResumesAfterCuts(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, sockets := range map[string]bool{"WebSocket": true, "server-sent events": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t)
			if !sockets {
				f.refuses(func(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") })
			}
			p := behind(t, f)
			ada, bob := p.User(t, "ada"), p.User(t, "bob")
			ada.Meets(bob)
			id := ada.Conversation("bob")
			b := visit(t, root, p, desk).as(ada)
			b.allow(offNet...)
			b.enterRoom(id)
			const each = 15
			for round := range 4 {
				for i := range each {
					bob.Say(id, fmt.Sprintf("line %d", round*each+i+1))
					if i == each/3 {
						f.cut()
					}
				}
				if round%2 == 0 {
					b.until("the loss noticed", "!agentsite.chat.link.open()")
				}
				f.mend()
				if round > 1 {
					online(b)
				}
				b.connected()
			}
			b.saidThere(count("line", 1, 4*each)...)
			b.inOrder()
			if !sockets && f.count("GET", "/live") < 5 {
				t.Error("the stream did not come by server-sent events")
			}
			b.until("no complaint", `document.querySelector("[data-state]").hidden`)
			b.clean("a network that was cut")
		})
	}
}

// TestChat_PollsWhereStreamsAreHeldBack has a network that refuses sockets and delivers answers only when
// they have ended: messages of others, and the answer of an agent, come without a reload, each once.
func TestChat_PollsWhereStreamsAreHeldBack(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	f := newFront(t)
	f.refuses(func(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") })
	f.buffers(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") })
	p := behind(t, f)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	id := ada.Conversation("bob", "calc")
	b := visit(t, root, p, desk).as(ada)
	b.allow(offNet...)
	b.enterRoom(id)
	bob.Say(id, "line 1")
	b.saidThere("line 1")
	b.send("@calc 6*7")
	b.until("the answer", `[...document.querySelectorAll("[data-messages] > [data-kind=agent]")].some((el) => /\b42\b/.test(el.innerText))`)
	bob.Say(id, "line 2")
	b.saidThere("line 1", "@calc 6*7", "line 2")
	b.inOrder()
	b.until("no complaint", `document.querySelector("[data-state]").hidden`)
	b.clean("a network that holds answers back")
}

// TestChat_ResumesAfterThePortalWasKilled kills the portal while somebody
// writes: what they wrote goes out when it is back, once, and both of their
// tabs show all of it in order.
func TestChat_ResumesAfterThePortalWasKilled(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	f := newFront(t)
	p := newProcess(t, f)
	one := visitAt(t, root, f.URL, desk)
	one.allow(offNet...)
	one.open("/")
	one.signUp("ada")
	id := one.room()
	two := one.another()
	two.enterRoom(id)
	rounds := 2
	if full() {
		rounds = 3
	}
	var want []string
	for round := range rounds {
		for i := range 4 {
			text := fmt.Sprintf("round %d, line %d", round, i)
			want = append(want, text)
			one.send(text)
			if i == 1 {
				p.kill()
			}
		}
		one.until("what waits", `document.querySelectorAll("[data-pending] > *").length >= 2`)
		p.run()
		one.saidThere(want...)
		two.saidThere(want...)
	}
	one.inOrder()
	two.inOrder()
	if got := one.kept(id); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the portal keeps\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	one.clean("a portal that was killed")
}

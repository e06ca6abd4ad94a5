package e2e

import (
	"fmt"
	"slices"
	"testing"

	"agentsite/internal/testing/apptest"
)

// reportTimes reports the median and the largest of some times in milliseconds.
func reportTimes(b *testing.B, name string, times []float64) {
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50-ms/"+name)
	b.ReportMetric(times[len(times)-1], "max-ms/"+name)
}

// shownAfter is the time from a moment of the page's clock to the paint of the page and the end of its scripts.
const shownAfter = `(() => {
	const navigation = performance.getEntriesByType("navigation")[0];
	const paint = performance.getEntriesByName("first-contentful-paint")[0];
	return Math.max(paint.startTime, navigation.domContentLoadedEventEnd);
})()`

// painted waits until the page is complete and painted.
func (b *tab) painted() {
	b.t.Helper()
	b.until("a paint", `document.readyState === "complete" && performance.getEntriesByName("first-contentful-paint").length === 1`)
}

// earlierTime scrolls up to the earlier messages and sets window.__took to the time until they stand in the page.
const earlierTime = `(window.__took = 0, (() => {
	const box = document.querySelector("[data-transcript]"), first = () => document.querySelector("[data-messages] > [data-seq]").id;
	const was = first(), from = performance.now();
	const look = () => first() !== was && ` + atRest + ` ? window.__took = performance.now() - from : requestAnimationFrame(look);
	box.scrollTop = -(box.scrollHeight - box.clientHeight) + box.clientHeight / 3;
	look();
})(), true)`

// BenchmarkChat_Long opens chats of 300 and of 10,000 messages, and scrolls up in them, twenty times a chat: the length
// of a chat must not change the time. Run it with -benchtime 20x.
func BenchmarkChat_Long(b *testing.B) {
	root := needBrowser(b)
	p := apptest.Start(b)
	ada, bob, cid := p.User(b, "ada"), p.User(b, "bob"), p.User(b, "cid")
	ada.Meets(bob, cid)
	for _, many := range []int{300, 10_000} {
		id := ada.Conversation("bob", "cid")
		fillRoom(b, id, many, ada, bob, cid)
		for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
			b.Run(fmt.Sprint(many, "-", name), func(b *testing.B) {
				x := visit(b, root, p, s).as(ada)
				x.enterRoom(id) // scripts and styles are in the cache from now on
				var opened, scrolled []float64
				for range b.N {
					x.open("/chat/" + id)
					x.painted()
					opened = append(opened, eval[float64](x, shownAfter))
					x.connected()
					for range 3 {
						if eval[bool](x, `!document.querySelector("[data-earlier]")`) {
							break
						}
						x.until("rest", atRest)
						eval[bool](x, earlierTime)
						x.until("earlier messages", "window.__took > 0")
						scrolled = append(scrolled, eval[float64](x, "window.__took"))
					}
				}
				reportTimes(b, "open", opened)
				reportTimes(b, "earlier", scrolled)
				b.ReportMetric(float64(x.rowCount()), "rows")
			})
		}
	}
}

// BenchmarkJoin measures in a browser, with a portal of a process of its own that hashes passwords as it does for
// people: from the click on the sign-up form to the page of the new account, and from the address of an invitation to
// its page and from the click on it to the conversation. The bar is two seconds. Run it with -benchtime 5x: one address
// makes 20 accounts at once, then one a minute.
func BenchmarkJoin(b *testing.B) {
	root := needBrowser(b)
	f := newFront(b)
	newProcess(b, f)
	accounts := 0
	clicked := `performance.timeOrigin - Number(sessionStorage.getItem("clicked")) + ` + shownAfter
	signUp := func(b *testing.B, s screen) *tab {
		x := visitAt(b, root, f.URL, s)
		x.preload(clickTimes)
		x.open("/signup")
		accounts++
		x.fill("#name", fmt.Sprint("person-", accounts))
		x.fill("#password", apptest.Password)
		x.leaves(func() { x.click("main form button") })
		x.painted()
		return x
	}
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		b.Run("account-"+name, func(b *testing.B) {
			var times []float64
			for range b.N {
				x := signUp(b, s)
				x.until("the account", `document.querySelector('.who a[href="/account"]')`)
				times = append(times, eval[float64](x, clicked))
			}
			reportTimes(b, "account", times)
		})
		b.Run("link-"+name, func(b *testing.B) {
			owner, x := signUp(b, s), signUp(b, s)
			var pages, rooms []float64
			for range b.N {
				var room struct{ ID string }
				owner.asks("POST", "/api/v1/conversations", map[string]any{"members": []string{}}, &room)
				owner.asks("POST", "/api/v1/conversations/"+room.ID+"/messages", map[string]any{"client_id": "a", "text": "Welcome aboard"}, nil)
				var link struct{ URL string }
				owner.asks("POST", "/api/v1/conversations/"+room.ID+"/links", map[string]any{"kind": "join", "role": "member"}, &link)
				x.open(link.URL[len(f.URL):])
				x.painted()
				pages = append(pages, eval[float64](x, shownAfter))
				x.leaves(func() { x.click("main form button") })
				x.painted()
				x.until("the conversation", `location.pathname === "/chat/`+room.ID+`" && document.querySelector("[data-messages]").innerText.includes("Welcome aboard")`)
				rooms = append(rooms, eval[float64](x, clicked))
			}
			reportTimes(b, "page", pages)
			reportTimes(b, "room", rooms)
		})
	}
}

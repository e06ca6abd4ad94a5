package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"

	"agentsite/internal/testing/apptest"
)

// chunkTimes notes how long the page's script works on each piece of an answer that arrives.
const chunkTimes = `(() => {
	window.__chunks = [];
	const was = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
	Object.defineProperty(WebSocket.prototype, "onmessage", { configurable: true, set(handle) {
		was.set.call(this, (e) => {
			const from = performance.now();
			handle(e);
			if (String(e.data).includes('"type":"delta"')) window.__chunks.push(performance.now() - from);
		});
	} });
})()`

// scriptTime is the time that the page's scripts have run, in milliseconds.
func scriptTime(b *tab) float64 {
	for _, m := range command(b, performance.GetMetrics, cdp.Empty{}).Metrics {
		if m.Name == "ScriptDuration" {
			return m.Value * 1000
		}
	}
	b.t.Fatal("the browser names no ScriptDuration")
	return 0
}

// chunkEvery is the time between two chunks of the model: a fast one. Without it several chunks share a frame of the
// page, and the work for it.
const chunkEvery = 20 * time.Millisecond

// BenchmarkChat_Chunk streams an answer of 2,000 words with a table, code, a list and a formula, chunk by chunk, to a
// page with a processor that is slowed six times. The bar is 4 ms of script for a chunk and a layout shift of 0.02. Run
// it with -benchtime 1x: it takes 40 seconds a screen.
func BenchmarkChat_Chunk(b *testing.B) {
	root := needBrowser(b)
	p := apptest.Start(b)
	far := newModel(b)
	ada := p.User(b, "ada")
	register(ada, agents(far.base())[0])
	answer := streamedBeginning + strings.Repeat("Then a paragraph of some *length*, which fills a line or two of the page.\n\n", 140) + "The end."
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				x := visit(b, root, p, s).as(ada)
				x.preload(chunkTimes)
				x.preload(shifts)
				command(x, performance.Enable, performance.EnableParams{})
				x.open("/")
				x.room("invoice-reader")
				command(x, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 6})
				before := scriptTime(x)
				x.send("What is overdue?")
				within(b, "a question", far.asked)
				next := time.NewTicker(chunkEvery)
				for _, word := range strings.SplitAfter(answer, " ") {
					<-next.C
					far.pieces <- word
				}
				next.Stop()
				far.pieces <- ""
				if !x.within(2*time.Minute, `document.querySelector("[data-messages] > article:last-of-type")?.innerText.includes("The end.")`) {
					b.Fatal("the answer did not arrive in two minutes")
				}
				all := scriptTime(x) - before
				list := eval[[]float64](x, "window.__chunks")
				if len(list) == 0 {
					b.Fatal("no chunk was measured")
				}
				mean := func(part []float64) (sum float64) {
					for _, x := range part {
						sum += x / float64(len(part))
					}
					return sum
				}
				tenth := len(list)/10 + 1
				b.ReportMetric(mean(list[:tenth]), "first-tenth-ms/chunk")
				b.ReportMetric(mean(list[len(list)-tenth:]), "last-tenth-ms/chunk")
				slices.Sort(list)
				b.ReportMetric(float64(len(list)), "chunks")
				b.ReportMetric(list[len(list)/2], "p50-ms/chunk")
				b.ReportMetric(list[len(list)*99/100], "p99-ms/chunk")
				b.ReportMetric(all/float64(len(list)), "script-ms/chunk")
				b.ReportMetric(eval[float64](x, "window.__shift"), "shift")
			}
		})
	}
}

// clickTimes notes when a click happened, for the page that it opens.
const clickTimes = `addEventListener("click", (e) => sessionStorage.setItem("clicked", performance.timeOrigin + e.timeStamp), true)`

// BenchmarkChat_Switch opens another chat from the list beside an open one, by one click: until its messages are painted
// and its scripts run. The bar is 150 ms. Each metric is a median over at least ten clicks; first-byte is a part of shown.
func BenchmarkChat_Switch(b *testing.B) {
	root := needBrowser(b)
	p := apptest.Start(b)
	ada := p.User(b, "ada")
	var rooms []string
	for range 2 {
		id := ada.Conversation("calc")
		for range 30 {
			ada.Say(id, "A note of some length, so that the chat fills more than one screen.")
		}
		rooms = append(rooms, id)
	}
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		b.Run(name, func(b *testing.B) {
			x := visit(b, root, p, s).as(ada)
			x.preload(clickTimes)
			x.enterRoom(rooms[0])
			var shown, first, painted []float64
			for i := range max(b.N, 10) {
				to := rooms[(i+1)%2]
				if s.phone {
					x.click(".chats-open")
				}
				x.leaves(func() { x.click(`.chats-row[href$="` + to + `"]`) })
				x.until("the chat", `location.pathname.endsWith(`+js(to)+`) && document.querySelector("[data-messages] > article") && performance.getEntriesByName("first-contentful-paint").length === 1`)
				clicked := `performance.timeOrigin - Number(sessionStorage.getItem("clicked"))`
				navigation := `performance.getEntriesByType("navigation")[0]`
				paint := eval[float64](x, clicked+` + performance.getEntriesByName("first-contentful-paint")[0].startTime`)
				painted = append(painted, paint)
				shown = append(shown, max(paint, eval[float64](x, clicked+` + `+navigation+`.domContentLoadedEventEnd`)))
				first = append(first, eval[float64](x, clicked+` + `+navigation+`.responseStart`))
				x.connected()
			}
			for unit, list := range map[string][]float64{"p50-ms": shown, "first-byte-ms": first, "painted-ms": painted} {
				slices.Sort(list)
				b.ReportMetric(list[len(list)/2], unit)
			}
			b.ReportMetric(shown[0], "min-ms")
			b.ReportMetric(shown[len(shown)-1], "max-ms")
		})
	}
}

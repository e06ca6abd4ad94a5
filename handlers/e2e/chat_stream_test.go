package e2e

import (
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// shifts adds up how far elements of the page move. It counts the first half second after an input too, which browsers
// mark as caused by it: a short answer streams within that time.
const shifts = `window.__shift = window.__from = 0;
window.__moved = [];
const nameOf = (n) => n && (n.nodeType === 1 ? n.localName + "." + n.className : "text " + n.textContent.slice(0, 20));
new PerformanceObserver((list) => {
	for (const e of list.getEntries()) {
		if (e.startTime < window.__from) continue; // entries come late
		window.__shift += e.value;
		for (const s of e.sources) window.__moved.push(nameOf(s.node) + " from " + s.previousRect.top + " to " + s.currentRect.top);
	}
}).observe({ type: "layout-shift", buffered: true });`

// streamedBeginning and streamedEnd are an answer with blocks of every kind that is wide or changes its form.
var (
	streamedBeginning = "## Overdue invoices\n\nThere are **three** of them, see `ledger.csv`.\n\n" +
		"| number | customer | amount | due | a very long heading for a narrow page | another long heading |\n|---|---|---|---|---|---|\n" +
		"| 17 | Harbour office of the northern islands | 120.00 | 2026-11-02 | not paid | reminded twice |\n\n" +
		"```go\nfunc overdue(now time.Time) bool { return now.After(due) && !paid && amount > 0 && !disputed && !written }\n```\n\n" +
		"- first\n- second **point**\n\n" +
		"$$\nx_{1,2} = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a} + a_1 + a_2 + a_3 + a_4 + a_5 + a_6 + a_7 + a_8 + a_9 + a_{10} + a_{11} + a_{12} + a_{13} + a_{14} + a_{15} + a_{16} + a_{17} + a_{18} + a_{19} + a_{20}\n$$\n\n"
	streamedEnd = "The sum is $a_1 + b_2$ in all, \\(x^2 \\ge 0\\), and it costs $5 and $10.\n\n" +
		strings.Repeat("Then a paragraph of some *length*, which fills a line or two of the page.\n\n", 130) + "The end."
)

// TestStreamedAnswerIsFormatted streams an answer: its blocks are formatted when they are finished, wide ones scroll
// inside themselves, and nothing moves when the answer is complete.
func TestStreamedAnswerIsFormatted(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	far := newModel(t)
	ada := p.User(t, "ada")
	register(ada, agents(far.base())[0])
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}} {
		b := visit(t, root, p, s).as(ada)
		b.preload(shifts)
		b.open("/")
		b.room("invoice-reader")
		b.send("What is overdue?")
		within(t, "a question", far.asked)
		say := func(text string) {
			for _, word := range strings.SplitAfter(text, " ") {
				if word != "" { // which ends an answer
					far.pieces <- word
				}
			}
		}
		say("Let me see.\n\n")
		b.until("the first words", `document.querySelector("[data-working] [data-streamed]")?.textContent`)
		// The reader moved the page by sending: the hint where the text goes is not needed any more.
		b.until("the question accepted", `!document.querySelector("[data-pending] > *, [data-disclosure]")`)
		eval[bool](b, `(requestAnimationFrame(() => requestAnimationFrame(() => { window.__from = performance.now(); window.__shift = 0; window.__moved = []; })), true)`)
		b.until("a frame without the hint", "window.__from > 0")
		say(streamedBeginning + "The next ")
		b.until("formatted blocks", `["h3", "strong", "table", "pre .hl-keyword", "li", ".math-block math mfrac"].every((x) => document.querySelector("[data-working] [data-streamed] " + x))`)
		b.until("the open block", `document.querySelector("[data-open]").textContent === "The next "`)
		b.until("a wide formula that keys can scroll", `(() => { const wide = document.querySelector("[data-working] .math-block"); return wide.scrollWidth > wide.clientWidth && wide.tabIndex === 0; })()`)
		if eval[bool](b, `document.querySelector("[data-streamed]").textContent.includes("|---")`) {
			t.Errorf("%s: the source of a table is shown", name)
		}
		b.shot("stream-"+name+"-light", false)
		b.scheme("dark")
		b.shot("stream-"+name+"-dark", false)
		b.scheme("light")
		if eval[bool](b, `document.documentElement.scrollWidth > innerWidth || document.querySelector("[data-transcript]").scrollWidth > innerWidth`) {
			t.Errorf("%s: the page scrolls sideways", name)
		}
		wide := eval[float64](b, `document.querySelector("[data-working] .bubble").getBoundingClientRect().width`)
		say(streamedEnd)
		b.until("the last words", `document.querySelector("[data-working] [data-streamed]").textContent.endsWith("The end.")`)
		before := eval[float64](b, "window.__shift")
		streamed := eval[string](b, `document.querySelector("[data-working] [data-streamed]").innerText`)
		far.pieces <- ""
		b.until("the answer", `!document.querySelector("[data-task]:not([data-seq])") && `+row("The end.")+`?.querySelector("table")`)
		if got := eval[float64](b, row("The end.")+`.querySelector(".bubble").getBoundingClientRect().width`); got != wide {
			t.Errorf("%s: the answer is %v px wide, and was %v", name, got, wide)
		}
		if got := eval[string](b, row("The end.")+`.querySelector(".prose").innerText`); got != streamed {
			t.Errorf("%s: the answer reads\n%s\nand was\n%s", name, got, streamed)
		}
		after := eval[float64](b, "window.__shift")
		t.Logf("%s: layout shift %.4f, at the end %.4f", name, after, after-before)
		if got := eval[int](b, row("The end.")+`.querySelectorAll("math").length`); got != 3 {
			t.Errorf("%s: the answer has %d formulas", name, got)
		}
		if !eval[bool](b, row("The end.")+`.innerText.includes("and it costs $5 and $10.")`) {
			t.Errorf("%s: amounts are changed", name)
		}
		copied := eval[string](b, `(() => {
			const data = new DataTransfer();
			getSelection().selectAllChildren([...document.querySelectorAll(".prose p")].find((p) => p.innerText.includes("The sum")));
			document.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, cancelable: true, bubbles: true }));
			getSelection().removeAllRanges();
			return data.getData("text/plain");
		})()`)
		if want := `The next The sum is $a_1 + b_2$ in all, \(x^2 \ge 0\), and it costs $5 and $10.`; copied != want {
			t.Errorf("%s: copying the paragraph gives %q", name, copied)
		}
		if after > 0.02 {
			t.Errorf("%s: the layout shifts by %v: %q", name, after, eval[[]string](b, "window.__moved"))
		}
		b.clean("a streamed answer")
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"

	"agentsite/internal/linkwire"
)

// asks makes a request of the API from the page, with its session, and fails
// when it is refused. out, when not nil, takes the answer.
func (b *tab) asks(method, path string, body, out any) {
	b.t.Helper()
	in := "undefined"
	if body != nil {
		j, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		in = js(string(j))
	}
	eval[bool](b, `(window.__said = null, fetch(`+js(path)+`, { method: `+js(method)+`, headers: { "Content-Type": "application/json" }, body: `+in+` })
		.then(async (r) => { window.__said = { ok: r.ok, text: await r.text() }; }), true)`)
	b.until("an answer of the API", "window.__said")
	said := eval[struct {
		OK   bool   `json:"ok"`
		Text string `json:"text"`
	}](b, "window.__said")
	if !said.OK {
		b.t.Fatalf("%s %s: %s", method, path, said.Text)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(said.Text), out); err != nil {
			b.t.Fatal(err)
		}
	}
}

// session is the cookie by which the network knows the tab's browser.
func (b *tab) session() string {
	b.t.Helper()
	for _, c := range command(b, network.GetCookies, network.GetCookiesParams{URLs: []string{b.base}}).Cookies {
		if c.HTTPOnly {
			return c.Name + "=" + c.Value
		}
	}
	b.t.Fatal("the browser has no session")
	return ""
}

// row is the message on the page that holds a text.
func row(text string) string {
	return `[...document.querySelectorAll("[data-messages] > article")].find((el) => el.textContent.includes(` + js(text) + `))`
}

// linked is an agent that connects to a portal by itself and says what a test
// tells it to, piece by piece.
type linked struct {
	asked  chan linkwire.Task
	pieces chan string // "" ends the answer
}

// link connects an agent that is registered, until t ends.
func link(t testing.TB, portal, name, token string) *linked {
	t.Helper()
	l := &linked{asked: make(chan linkwire.Task, 100), pieces: make(chan string)}
	ctx, stop := context.WithCancel(context.Background())
	connected, ended := make(chan struct{}, 100), make(chan error, 1)
	a := &linkwire.Agent{
		Hello: linkwire.Hello{Name: name, MaxTasks: 4},
		Dial: func(ctx context.Context) (*linkwire.Socket, error) {
			return linkwire.Dial(ctx, portal, token, nil)
		},
		Connected: func(linkwire.Welcome) { connected <- struct{}{} },
		Work: func(ctx context.Context, task linkwire.Task, out *linkwire.Answer) linkwire.Done {
			l.asked <- task
			for {
				select {
				case piece := <-l.pieces:
					if piece == "" {
						return linkwire.Done{State: linkwire.Completed}
					}
					out.Text(piece)
				case <-ctx.Done():
					return linkwire.Done{State: linkwire.Failed}
				}
			}
		},
	}
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s ended with: %v", name, err)
		}
	})
	select {
	case <-connected:
	case err := <-ended:
		ended <- nil
		t.Fatalf("%s does not connect: %v", name, err)
	case <-time.After(patience):
		t.Fatalf("%s does not connect", name)
	}
	return l
}

// transcriptRow is one line of a conversation, as a page shows it and as the
// API has it: letters and digits of the text only, so that both can be
// compared.
type transcriptRow struct {
	Seq                  int
	ID, Sender, Text     string
	Event, Gone, Replied bool
	Files                int
	Reactions            string
}

func (r transcriptRow) String() string {
	return fmt.Sprintf("%d %s %s %q event=%t gone=%t again=%t files=%d %s", r.Seq, r.ID, r.Sender, r.Text, r.Event, r.Gone, r.Replied, r.Files, r.Reactions)
}

// bareWords is the text of rows, without markup.
const bareWords = `((s) => s.replace(/^ *` + "```" + `\w*$/gm, "").replace(/[^\p{L}\p{N}]+/gu, ""))`

// shownRows are the rows on the page.
const shownRows = `[...document.querySelectorAll("[data-messages] > [data-seq]")].map((el) => {
	const prose = el.querySelector(".bubble .prose")?.cloneNode(true);
	prose?.querySelectorAll("[data-copy]").forEach((x) => x.remove());
	const event = el.matches(".event"), gone = "gone" in el.dataset;
	return { Seq: Number(el.dataset.seq), ID: el.dataset.id, Sender: event ? "" : el.dataset.sender, Text: event || gone || !prose ? "" : ` + bareWords + `(prose.textContent),
		Event: event, Gone: gone, Replied: Boolean(Number(el.dataset.newer || 0)), Files: el.querySelectorAll(".bubble [data-file]").length,
		Reactions: gone ? "" : [...el.querySelectorAll("[data-reactions] [data-by]")].map((x) => x.value + "=" + x.dataset.by.split(" ").sort().join("+")).sort().join(" ") };
})`

// keptRows sets window.__rows to what the API has of a conversation, for those
// kinds that have a row, and window.__seqs to all seqs.
const keptRows = `(window.__rows = null, (async () => {
	const all = [];
	for (;;) {
		const page = await (await fetch("/api/v1/conversations/" + document.querySelector("#chat").dataset.conversation + "/messages?limit=200&after=" + (all.at(-1)?.seq || 0))).json();
		if (page.messages.length === 0) break;
		all.push(...page.messages);
	}
	window.__seqs = all.map((m) => m.seq);
	window.__rows = all.filter((m) => !["edit", "unsaid", "react"].includes(m.kind)).map((m) => {
		const event = m.kind !== "text", gone = Boolean(m.unsaid);
		return { Seq: m.seq, ID: m.id, Sender: event ? "" : m.sender.handle, Text: event || gone ? "" : ` + bareWords + `(m.parts.map((p) => p.text || "").join("")),
			Event: event, Gone: gone, Replied: Boolean(m.newer_seq), Files: gone ? 0 : m.parts.filter((p) => p.url).length,
			Reactions: gone ? "" : (m.reactions || []).map((x) => x.emoji + "=" + x.by.sort().join("+")).sort().join(" ") };
	});
})(), true)`

// transcript compares what the page shows with what the portal keeps: each row
// once, in order, with the same words, files, reactions and traces, and no seq
// missing. It returns the rows.
func (b *tab) transcript() []string {
	b.t.Helper()
	eval[bool](b, keptRows)
	b.until("what the portal keeps", "window.__rows")
	for i, seq := range eval[[]int](b, "window.__seqs") {
		if seq != i+1 {
			b.t.Errorf("the portal keeps seq %d in place %d", seq, i+1)
		}
	}
	lines := func(list []transcriptRow) (out []string) {
		for _, r := range list {
			out = append(out, r.String())
		}
		return out
	}
	kept, shown := lines(eval[[]transcriptRow](b, "window.__rows")), lines(eval[[]transcriptRow](b, shownRows))
	if got, want := strings.Join(shown, "\n"), strings.Join(kept, "\n"); got != want {
		b.t.Errorf("the page shows\n%s\nthe portal keeps\n%s", got, want)
	}
	return shown
}

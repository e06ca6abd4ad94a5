package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"agentsite/internal/app"
	"agentsite/internal/cli"
	"agentsite/internal/testing/apptest"
)

// actsAsPortal makes this test binary a portal of its own process, which can
// be killed.
const actsAsPortal = "AGENTSITE_E2E_PORTAL"

func init() {
	if os.Getenv(actsAsPortal) != "" {
		os.Exit(cli.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
	}
}

// front stands between browsers and a portal as a network does. It can be cut,
// lose answers and refuse what it does not know.
type front struct {
	*httptest.Server

	mu    sync.Mutex // guards the rest
	to    *url.URL
	down  bool
	conns map[net.Conn]string // the cookies last sent over each
	away  string              // whoever sends a cookie that holds it is cut off
	// lose and refuse name requests: the first are heard by the portal, but
	// their answers get lost; the second are answered with a failure.
	lose, refuse func(*http.Request) bool
	buffer       func(*http.Request) bool            // an answer is passed on when it has ended
	hold         func(*http.Request) <-chan struct{} // a request waits for it
	seen         []string                            // method and path of every request
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

func newFront(t testing.TB) *front {
	f := &front{conns: make(map[net.Conn]string)}
	// One of its own: every httptest.Server that is closed anywhere in the tests
	// has the default one close connections, at times one that is just used.
	way := &http.Transport{}
	t.Cleanup(way.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Transport: way,
		Rewrite: func(r *httputil.ProxyRequest) {
			f.mu.Lock()
			defer f.mu.Unlock()
			r.SetURL(f.to)
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w) },
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without it the body is closed with the first byte of an answer. Who is
		// quick answers a form before the proxy has seen its end, which breaks
		// the connection off then, and the page with it.
		http.NewResponseController(w).EnableFullDuplex()
		f.mu.Lock()
		cookies := r.Header.Get("Cookie")
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			if _, open := f.conns[c]; open {
				f.conns[c] = cookies
			}
		}
		down, lose, refuse := f.down || f.away != "" && strings.Contains(cookies, f.away), f.lose != nil && f.lose(r), f.refuse != nil && f.refuse(r)
		buffer := f.buffer != nil && f.buffer(r)
		f.seen = append(f.seen, r.Method+" "+r.URL.Path)
		var wait <-chan struct{}
		if f.hold != nil {
			wait = f.hold(r)
		}
		f.mu.Unlock()
		if wait != nil {
			<-wait
		}
		switch {
		case down:
			hangUp(w)
		case refuse:
			http.Error(w, "not through here", http.StatusBadGateway)
		case lose:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			hangUp(w)
		case buffer:
			whole := httptest.NewRecorder()
			proxy.ServeHTTP(whole, r)
			maps.Copy(w.Header(), whole.Header())
			w.WriteHeader(whole.Code)
			w.Write(whole.Body.Bytes())
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	f.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	f.Config.ConnState = func(c net.Conn, s http.ConnState) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case s == http.StateNew && f.down:
			c.Close()
		case s == http.StateNew:
			f.conns[c] = ""
		case s == http.StateClosed:
			delete(f.conns, c)
		}
	}
	f.Start()
	t.Cleanup(func() { f.cut(); f.Close() })
	return f
}

// hangUp ends a connection without an answer.
func hangUp(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		c.Close()
	}
}

// cut ends all connections and lets no new one through, until mend.
func (f *front) cut() {
	f.mu.Lock()
	f.down = true
	open := f.conns
	f.conns = make(map[net.Conn]string)
	f.mu.Unlock()
	for c := range open {
		c.Close()
	}
}

// cutOff is cut for one browser, which a value of its cookies names.
func (f *front) cutOff(cookie string) {
	f.mu.Lock()
	f.away = cookie
	var open []net.Conn
	for c, cookies := range f.conns {
		if strings.Contains(cookies, cookie) {
			open = append(open, c)
			delete(f.conns, c)
		}
	}
	f.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

func (f *front) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.away = false, ""
}

func (f *front) leads(to string) {
	u, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = u
}

// loses and refuses set what happens to requests from now on.
func (f *front) loses(which func(*http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose = which
}

func (f *front) refuses(which func(*http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = which
}

// buffers has the answers to some requests passed on when they have ended.
func (f *front) buffers(which func(*http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buffer = which
}

// holds lets requests wait, unread, for what the function returns.
func (f *front) holds(which func(*http.Request) <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = which
}

// count is how many requests there were of a method whose path ends so.
func (f *front) count(method, end string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen {
		if strings.HasPrefix(s, method+" ") && strings.HasSuffix(s, end) {
			n++
		}
	}
	return n
}

// behind runs a portal that is reached by way of the front.
func behind(t testing.TB, f *front, edit ...func(*app.Config)) *apptest.Portal {
	t.Helper()
	p := apptest.Start(t, append([]func(*app.Config){func(c *app.Config) { c.URL = f.URL }}, edit...)...)
	f.leads(p.Base)
	return p
}

// process is a portal in a process of its own, behind a front.
type process struct {
	t    testing.TB
	f    *front
	data string
	at   string
	cmd  *exec.Cmd
}

func newProcess(t testing.TB, f *front) *process {
	t.Helper()
	p := &process{t: t, f: f, data: t.TempDir(), at: nowhere(t)}
	f.leads(p.at)
	t.Cleanup(p.kill)
	p.run()
	return p
}

func (p *process) run() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0], "serve", "--listen", strings.TrimPrefix(p.at, "http://"), "--data", p.data, "--url", p.f.URL)
	p.cmd.Env = append(os.Environ(), actsAsPortal+"=1")
	said := new(apptest.Log)
	p.cmd.Stderr = said
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		ready <- strings.HasPrefix(line, "ready ")
		io.Copy(io.Discard, r)
	}()
	select {
	case ok := <-ready:
		if !ok {
			p.t.Fatalf("the portal did not get ready\n%s", said)
		}
	case <-time.After(time.Minute):
		p.t.Fatalf("the portal is not ready\n%s", said)
	}
}

// kill ends the process as a power cut does.
func (p *process) kill() {
	if p.cmd != nil && p.cmd.Process != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.cmd = nil
	}
}

// another opens a tab in the same browser as b, with the same session and the
// same storage.
func (b *tab) another() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	c := &tab{t: b.t, ctx: ctx, base: b.base, screen: b.screen, allowed: slices.Clone(b.allowed)}
	c.do(chromedp.Func(func(context.Context, *chromedp.Target) error { return nil }))
	host := strings.TrimPrefix(c.base, "http://")
	if err := chromedp.Listen(ctx, func(ev any) { c.hear(ev, host) }); err != nil {
		b.t.Fatal(err)
	}
	c.resize(c.screen)
	command(c, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher})
	return c
}

// preload runs a script before those of every page from now on.
func (b *tab) preload(script string) {
	b.t.Helper()
	command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// room opens a conversation of the tab's own, and shows it.
func (b *tab) room(members ...string) string {
	b.t.Helper()
	if members == nil {
		members = []string{}
	}
	var list []string
	for _, m := range members {
		list = append(list, js(m))
	}
	b.until("a page of the portal", `location.protocol === "http:" && document.readyState === "complete"`)
	eval[bool](b, `(window.__room = "", fetch("/api/v1/conversations", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ members: [`+strings.Join(list, ",")+`] }) })
		.then((r) => r.json()).then((c) => { window.__room = c.id; }), true)`)
	b.until("a conversation", "window.__room")
	id := eval[string](b, "window.__room")
	b.enterRoom(id)
	return id
}

// enterRoom shows a conversation and waits until its stream is open.
func (b *tab) enterRoom(id string) {
	b.t.Helper()
	b.open("/chat/" + id)
	b.connected()
}

// connected waits for the stream of the page.
func (b *tab) connected() {
	b.t.Helper()
	b.until("the stream", `document.readyState === "complete" && window.agentsite?.chat?.link?.open()`)
}

// listens waits until the stream of news is open: it brings messages of other chats.
func (b *tab) listens() {
	b.t.Helper()
	b.until("the stream of news", `document.readyState === "complete" && window.agentsite?.news?.open()`)
}

// saidThere waits until the people's messages on the page are these.
func (b *tab) saidThere(want ...string) {
	b.t.Helper()
	list := make([]string, len(want))
	for i, w := range want {
		list[i] = js(w)
	}
	b.until(fmt.Sprintf("%d messages, the last of them %q", len(want), want[len(want)-1]), `(() => {
		const want = [`+strings.Join(list, ",")+`];
		const said = [...document.querySelectorAll("[data-messages] > .message-person [data-copy-source]")].map((el) => el.innerText.trim());
		return JSON.stringify(said) === JSON.stringify(want) && !document.querySelector("[data-pending] > *");
	})()`)
}

// kept are the people's messages that the portal keeps, in their order.
func (b *tab) kept(id string) (texts []string) {
	b.t.Helper()
	eval[bool](b, `(window.__kept = null, (async () => {
		const all = [];
		for (let after = 0;;) {
			const page = await (await fetch("/api/v1/conversations/`+id+`/messages?limit=200&after=" + after)).json();
			if (page.messages.length === 0) break;
			all.push(...page.messages);
			after = all.at(-1).seq;
		}
		window.__kept = all.filter((m) => m.kind === "text" && m.sender.kind !== "agent").map((m) => m.parts.map((p) => p.text || "").join(""));
	})(), true)`)
	b.until("what the portal keeps", "window.__kept")
	return eval[[]string](b, "window.__kept")
}

// inOrder fails unless the rows on the page stand in their order, each once.
func (b *tab) inOrder() {
	b.t.Helper()
	seqs := eval[[]int](b, `[...document.querySelectorAll("[data-messages] > [data-seq]")].map((el) => Number(el.dataset.seq))`)
	if !slices.IsSorted(seqs) || len(slices.Compact(slices.Clone(seqs))) != len(seqs) {
		b.fail("the rows are %v", seqs)
	}
}

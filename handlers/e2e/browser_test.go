package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"agentsite/agentruntime/pdf/child"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/internal/testing/apptest"
)

// patience is how long a page may take to show what it must. Nothing waits
// that long unless it is broken.
const patience = 20 * time.Second

// browser is started once for all tests; each test gets contexts of its own,
// which share no cookies.
var browser struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == guest.Argument {
		os.Exit(guest.Run()) // a portal of a test started this test program to run a hosted program
	}
	if len(os.Args) == 2 && os.Args[1] == child.Argument {
		os.Exit(child.Run()) // … or to read a PDF file
	}
	debug.SetGCPercent(400) // memory is cheaper here than the processor, which the browser needs
	flag.Parse()
	// Tests here wait for a browser more than they work.
	if n := flag.Lookup("test.parallel"); n != nil && goruntime.GOMAXPROCS(0) < 6 && n.Value.String() == n.DefValue {
		n.Value.Set("6")
	}
	code := m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(code)
}

// chromium finds the browser: the same one without a window of its own, where
// there is one, needs two thirds of the time.
func chromium() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("chromium is not installed")
}

// needBrowser starts the browser, or skips the test where there is none.
func needBrowser(t testing.TB) context.Context {
	t.Helper()
	path, err := chromium()
	if err != nil {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "chromium") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	browser.once.Do(func() {
		alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("hide-scrollbars", true),
			chromedp.Flag("lang", "en-GB"), chromedp.WSURLReadTimeout(60*time.Second),
			// A page costs a fifth less with these.
			chromedp.Flag("enable-features", "NetworkServiceInProcess2"),
			chromedp.Flag("disable-features", "Translate,RenderDocument,PaintHolding"))...)
		ctx, stop := chromedp.NewContext(alloc)
		browser.ctx, browser.stop = ctx, func() { stop(); stopAlloc() }
		browser.err = chromedp.Do(ctx) // no timeout: it would end the browser
	})
	if browser.err != nil {
		t.Fatalf("start %s: %v", path, browser.err)
	}
	return browser.ctx
}

// screen is what somebody looks at.
type screen struct {
	width, height int64
	phone         bool
	scripts       bool
}

var desk = screen{width: 1280, height: 900, scripts: true}

// tab is one visitor: a page in a browser context of its own.
type tab struct {
	t      testing.TB
	ctx    context.Context
	base   string
	screen screen
	// extra is added to patience, for pages behind work that takes its time: compiling a program.
	extra time.Duration

	mu       sync.Mutex // guards problems and allowed
	problems []string
	allowed  []string // what console messages may say
}

// watcher runs before every script of a page. It notes what must not happen:
// anything a payload calls, and every breach of our own policy.
const watcher = `(() => {
	const note = (what) => { (window.__ran ||= []).push(what); };
	Object.defineProperty(window, "xss", { value: () => note("xss()"), writable: false, configurable: false });
	for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = () => note(name);
	window.__breaches = [];
	document.addEventListener("securitypolicyviolation", (e) => window.__breaches.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));
})()`

// visit opens a tab for a new visitor of the portal.
func visit(t testing.TB, root context.Context, p *apptest.Portal, s screen) *tab {
	t.Helper()
	return visitAt(t, root, p.URL(), s)
}

func visitAt(t testing.TB, root context.Context, base string, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(root, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, base: base, screen: s}
	b.do(chromedp.Func(func(context.Context, *chromedp.Target) error { return nil }))
	origin, err := url.Parse(b.base)
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, func(ev any) { b.hear(ev, origin.Host) }); err != nil {
		t.Fatal(err)
	}
	b.resize(s)
	command(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher})
	if !s.scripts {
		command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}
	return b
}

// command sends one command of the browser's protocol.
func command[P, R any](b *tab, cmd cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	out, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		b.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return out
}

// Messages of a page that is left before its stream is open or a request has
// its answer. A request that fails while its page stays is also reported by the
// browser itself, as net::ERR_…, which is a problem.
const (
	leftStream  = "WebSocket is closed before the connection is established"
	leftRequest = "TypeError: Failed to fetch"
)

// hear notes what a page must never cause. It runs in the loop that reads the
// browser, so it must not wait.
func (b *tab) hear(ev any, host string) {
	switch ev := ev.(type) {
	case *page.EventJavascriptDialogOpening:
		b.note("a dialog opened: " + ev.Message)
		go chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	case *runtime.EventExceptionThrown:
		b.note("exception: " + ev.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning {
			text, _ := json.Marshal(ev.Args)
			if strings.Contains(string(text), leftRequest) {
				return
			}
			b.note(fmt.Sprintf("console.%s: %.300s", ev.Type, text))
		}
	case *log.EventEntryAdded:
		if strings.Contains(ev.Entry.Text, leftStream) {
			return
		}
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			b.note(fmt.Sprintf("browser: %s %s", ev.Entry.Text, ev.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(ev.Request.URL)
		if err != nil || u.Host != host && u.Scheme != "data" && ev.Request.URL != "about:blank" {
			b.note("request elsewhere: " + ev.Request.URL)
		}
	case *network.EventWebSocketCreated:
		if u, err := url.Parse(ev.URL); err != nil || u.Host != host {
			b.note("socket elsewhere: " + ev.URL)
		}
	}
}

func (b *tab) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ok := range b.allowed {
		if strings.Contains(text, ok) {
			return
		}
	}
	b.problems = append(b.problems, text)
}

// allow lets the console say what a test provokes.
func (b *tab) allow(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, texts...)
}

// clean fails when something happened that never must, on this page or since
// the last call.
func (b *tab) clean(where string) {
	b.t.Helper()
	for _, p := range b.happened() {
		b.t.Errorf("%s: %s", where, p)
	}
}

// happened is what clean would fail for.
func (b *tab) happened() []string {
	b.t.Helper()
	ran := eval[[]string](b, `[...(window.__ran || []), ...(window.__breaches || []).map((x) => "policy: " + x)]`)
	b.mu.Lock()
	defer b.mu.Unlock()
	problems := append(slices.Clone(b.problems), ran...)
	b.problems = nil
	return problems
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := b.try(steps...); err != nil {
		b.fail("%v", err)
	}
}

func (b *tab) try(steps ...chromedp.Action[chromedp.Void]) error {
	if chromedp.FromContext(b.ctx).Target == nil {
		return chromedp.Do(b.ctx, steps...) // the first, which opens the tab
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// fail ends the test with what the page says.
func (b *tab) fail(format string, args ...any) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body ? document.body.innerText : "")`))
	if dir := os.Getenv("E2E_SHOTS"); dir != "" {
		if png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
			os.WriteFile(filepath.Join(dir, "failed.png"), png, 0o644)
		}
	}
	b.mu.Lock()
	problems := b.problems
	b.mu.Unlock()
	b.t.Fatalf(format+"\non %.1500s\n%v", append(args, text, problems)...)
}

// eval is the value of an expression in the page. It works without scripts
// too: the browser evaluates it, not the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.fail("%s: %v", expression, err)
	}
	return out
}

// until waits for a condition of the page, over navigations too.
func (b *tab) until(what, condition string) {
	b.t.Helper()
	if ok, last := b.wait(patience, condition); !ok {
		b.fail("never saw %s: %s (%v)", what, condition, last)
	}
}

// within says whether a condition of the page came true in that time.
func (b *tab) within(d time.Duration, condition string) bool {
	ok, _ := b.wait(d, condition)
	return ok
}

func (b *tab) wait(d time.Duration, condition string) (ok bool, last error) {
	ctx, cancel := context.WithTimeout(b.ctx, d+b.extra)
	defer cancel()
	look := time.NewTicker(15 * time.Millisecond)
	defer look.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		if ok {
			return true, nil
		}
		if err != nil && ctx.Err() == nil {
			last = err // a page on its way out, or a mistake
		}
		select {
		case <-ctx.Done():
			return false, last
		case <-look.C:
		}
	}
}

// eventually waits until a condition is true. It returns false if patience ends
// before.
func eventually(condition func() bool) bool { return eventuallyIn(patience, condition) }

// eventuallyIn is eventually with another time to wait.
func eventuallyIn(d time.Duration, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	look := time.NewTicker(15 * time.Millisecond)
	defer look.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
	return true
}

// js is a Go string as one of JavaScript.
func js(s string) string {
	q, _ := json.Marshal(s)
	return string(q)
}

// says waits for words on the page.
func (b *tab) says(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%q", text), "document.body && document.body.innerText.includes("+js(text)+")")
}

// has waits for an element.
func (b *tab) has(selector string) {
	b.t.Helper()
	b.until(selector, "document.querySelector("+js(selector)+")")
}

// open goes to a path of the portal.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// leaves does something and waits for the page that follows.
func (b *tab) leaves(step func()) {
	b.t.Helper()
	eval[bool](b, "window.__old = true")
	step()
	if ok, last := b.wait(patience, `!window.__old && document.readyState === "complete"`); !ok {
		b.fail("no next page (%v): %s", last, eval[string](b, stands))
	}
}

// stands says how far a page got, and what of it is still awaited.
const stands = `(() => {
	const came = new Set(performance.getEntriesByType("resource").map((e) => e.name));
	const parts = [...document.querySelectorAll("script[src], link[rel=stylesheet], link[rel=icon], img")].map((e) => e.src || e.href);
	return document.readyState + (window.__old ? ", the old one" : ", the next one") + ", a press was heard: " + window.__heard +
		", awaited: " + parts.filter((url) => !came.has(url)).join(" ");
})()`

// click presses the first visible element that the selector finds, with a real
// mouse or finger. It has to be where somebody could hit it.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.has(selector)
	at := eval[[]float64](b, `(() => {
		const all = [...document.querySelectorAll(`+js(selector)+`)];
		const el = all.find((e) => e.getClientRects().length > 0) || all[0];
		el.scrollIntoView({ block: "center", behavior: "instant" });
		const r = el.getClientRects()[0] || el.getBoundingClientRect();
		const x = r.x + r.width / 2, y = r.y + r.height / 2;
		const hit = document.elementFromPoint(x, y);
		return [x, y, hit && (el.contains(hit) || hit.contains(el)) ? 1 : 0];
	})()`)
	if at[2] != 1 {
		b.fail("%s cannot be hit at %v", selector, at[:2])
	}
	if b.screen.phone {
		b.do(chromedp.TapXY(at[0], at[1]))
	} else {
		b.do(chromedp.MouseClickXY(at[0], at[1]))
	}
}

// press is click on what leads to another page. A press that no element of the
// page heard of, because it moved under the pointer, is made again: that says
// nothing about the page. One that was heard and led nowhere is a failure.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.leaves(func() {
		eval[bool](b, `window.__heard = false, addEventListener("click", (e) => { window.__heard ||= e.isTrusted && !!e.target.closest("a, button, summary, label, input"); }, true), true`)
		b.click(selector)
		if b.within(patience, `window.__heard !== false`) {
			return
		}
		b.click(selector)
	})
}

// clickField presses a field until it was hit. On a live page a message that arrives
// between measuring and pressing moves the field away from the pointer; a person
// presses again then.
func (b *tab) clickField(selector string) {
	b.t.Helper()
	if !b.screen.scripts { // Nothing moves there, and no listener would run.
		b.click(selector)
		return
	}
	field := "document.querySelector(" + js(selector) + ")"
	for range 20 {
		eval[bool](b, `window.__hit = "", addEventListener("click", (e) => { window.__hit = e.composedPath().includes(`+field+`) ? "field" : "other" }, { capture: true, once: true }), true`)
		b.click(selector)
		b.until("the press of "+selector, `window.__hit !== ""`)
		if eval[bool](b, `window.__hit === "field"`) {
			return
		}
	}
	b.fail("%s moved away from each of 20 presses", selector)
}

// fill types into a field in place of what was there.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.clickField(selector)
	b.until("focus on "+selector, "document.activeElement === document.querySelector("+js(selector)+")")
	eval[bool](b, "document.querySelector("+js(selector)+").select(), true")
	if text == "" {
		b.do(chromedp.KeyEvent(kb.Delete))
		return
	}
	command(b, input.InsertText, input.InsertTextParams{Text: text})
}

// enter presses Enter as a keyboard does: a page that handles the key gets no
// new line besides.
func (b *tab) enter() {
	b.t.Helper()
	for _, p := range []input.DispatchKeyEventParams{{Type: input.DispatchKeyEventTypeKeyDown, Text: "\r"}, {Type: input.DispatchKeyEventTypeKeyUp}} {
		p.Key, p.Code, p.WindowsVirtualKeyCode, p.NativeVirtualKeyCode = "Enter", "Enter", 13, 13
		command(b, input.DispatchKeyEvent, p)
	}
}

// holds fails unless the field has that value.
func (b *tab) holds(selector, want string) {
	b.t.Helper()
	if got := eval[string](b, "document.querySelector("+js(selector)+").value"); got != want {
		b.fail("%s holds %q, want %q", selector, got, want)
	}
}

// path is where the tab is.
func (b *tab) path() string {
	b.t.Helper()
	return eval[string](b, "location.pathname")
}

// resize changes what the page is looked at on.
func (b *tab) resize(s screen) {
	b.t.Helper()
	b.screen.width, b.screen.height, b.screen.phone = s.width, s.height, s.phone
	var opts []chromedp.EmulateViewportOption
	if s.phone {
		opts = append(opts, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
	}
	b.do(chromedp.EmulateViewport(s.width, s.height, opts...))
}

// scheme sets what the visitor prefers: "light" or "dark", and nothing that
// moves, so that colours are there at once.
func (b *tab) scheme(name string) {
	b.t.Helper()
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// shot writes a picture when the run asks for pictures.
func (b *tab) shot(name string, whole bool) {
	b.t.Helper()
	dir := os.Getenv("E2E_SHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	take := chromedp.CaptureScreenshot()
	if whole {
		take = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(ctx, take)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

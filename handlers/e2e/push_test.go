package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/pushtest"
	"agentsite/internal/webpush"
)

// pushManager stands in for the push service of the browser, which a browser without a window has not: it subscribes
// with the keys of a test at the address of a test. The worker of the page is the real one.
const pushManager = `(() => {
	const bytes = (s) => Uint8Array.from(atob(s.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0)).buffer;
	window.Notification = class { static requestPermission() { return Promise.resolve("granted"); } };
	PushManager.prototype.getSubscription = () => Promise.resolve(null);
	PushManager.prototype.subscribe = (options) => {
		sessionStorage.setItem("key", new Uint8Array(options.applicationServerKey).length);
		return Promise.resolve({ endpoint: ENDPOINT, getKey: (name) => bytes(name === "auth" ? AUTH : P256DH) });
	};
})()`

// TestPush_IsSwitchedOnAndOff turns notices on in a browser, by the page's own script and worker, and off again.
func TestPush_IsSwitchedOnAndOff(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.AllowCIDR = "127.0.0.0/8" })
	came := make(chan []byte, 10)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- body
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(far.Close)
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		t.Run(name, func(t *testing.T) {
			ada, bob := p.User(t, "ada-"+name), p.User(t, "bob-"+name)
			bob.Meets(ada)
			room := bob.Conversation("ada-" + name)
			keys := pushtest.New(t)
			b := visit(t, root, p, s).as(ada)
			b.preload("const ENDPOINT = " + js(far.URL+"/"+name) + ", AUTH = " + js(keys.Auth()) + ", P256DH = " + js(keys.P256dh()) + ";" + pushManager)
			b.open("/account")
			b.until("the switch", `document.querySelector("[data-push-form]").checkVisibility()`)
			b.shot("push-off-"+name, false)
			b.click("#push-texts")
			b.leaves(func() { b.click("[data-push-form] button") })
			b.until("it is on", `document.querySelector("#push").innerText.includes("This browser gets your notices with their texts.")`)
			if n := eval[string](b, `sessionStorage.getItem("key")`); n != "65" {
				t.Errorf("the browser subscribes with a key of %s bytes", n)
			}
			eval[bool](b, `(navigator.serviceWorker.ready.then((r) => { window.__worker = new URL(r.active.scriptURL).pathname + " " + new URL(r.scope).pathname; }), true)`)
			b.until("the portal's worker", `window.__worker === "/push-worker.js /"`)
			eval[bool](b, `(document.querySelector("#push").scrollIntoView(), true)`)
			b.shot("push-on-"+name+"-light", false)
			b.scheme("dark")
			b.shot("push-on-"+name+"-dark", false)
			b.scheme("light")
			bob.Say(room, "Look here, @ada-"+name)
			var m webpush.Message
			plain, err := keys.Open(<-came)
			if err == nil {
				err = json.Unmarshal(plain, &m)
			}
			if err != nil || m.Body != "bob-"+name+" mentioned you in a conversation." {
				t.Errorf("the push service got %+v, %v", m, err)
			}
			b.press("[data-push-end] button")
			b.until("it is off", `document.querySelector("[data-push-form]")?.checkVisibility()`)
			b.clean("notices by push")
		})
	}
	x := visit(t, root, p, screens["phone without scripts"]).as(p.User(t, "eve"))
	x.open("/account")
	if !eval[bool](x, `document.querySelector("#push").innerText.includes("needs JavaScript") && !document.querySelector("[data-push-form]").checkVisibility()`) {
		t.Error("without scripts the page does not say that it needs them")
	}
	x.clean("without scripts")
}

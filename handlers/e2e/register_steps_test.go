package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// narrow is a small phone without scripts.
var narrow = screen{width: 360, height: 780, phone: true}

// counted presses and fills while it counts clicks and fields apart.
type counted struct {
	*tab
	clicks, fields int
}

func (c *counted) press(selector string)      { c.t.Helper(); c.clicks++; c.tab.press(selector) }
func (c *counted) fill(selector, text string) { c.t.Helper(); c.fields++; c.tab.fill(selector, text) }

// TestRegister_InstructionsTakeThreeClicksAndTwoFields registers instructions from the home page.
func TestRegister_InstructionsTakeThreeClicksAndTwoFields(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}, "narrow": narrow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t, ownModel(parrotModel(t)))
			c := &counted{tab: visit(t, root, p, s).as(p.User(t, "ann"))}
			c.open("/")
			c.press(`.ways a[href="/agents/new"]`)
			c.shot("steps-start-"+name, true)
			c.press(`[data-start="prompt"]`)
			c.until("trying in view", `[...document.querySelectorAll(".to-try, [data-try-button]")].some((e) => {
				const r = e.getBoundingClientRect();
				return r.height > 0 && r.top >= 0 && r.bottom <= innerHeight;
			})`)
			c.until("no scrolling sideways", `document.documentElement.scrollWidth <= innerWidth`)
			c.shot("steps-prompt-"+name, true)
			c.fill("#name", "poet")
			c.fill("#instructions", "You write short poems. Always rhyme.")
			c.press(`button[name="save"]`)
			c.says("It is registered. Next steps")
			c.says("You write short poems.")
			if c.clicks > 3 || c.fields > 2 {
				t.Errorf("%d clicks and %d fields", c.clicks, c.fields)
			}
			c.clean("registering instructions")
		})
	}
}

// TestRegister_AddressIsTakenOrAsked pastes addresses of each kind, right and wrong.
func TestRegister_AddressIsTakenOrAsked(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	tools := agenttest.NewMCPServer(t, true)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"data":[{"id":"small-1"},{"id":"large-2"}]}`))
	}))
	t.Cleanup(host.Close)
	far := apptest.Start(t)
	agent := echo(t)
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}, "narrow": narrow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t)
			b := visit(t, root, p, s).as(p.User(t, "ann"))
			b.allow("400 (Bad Request)")
			fetch := func(address string) {
				t.Helper()
				b.open("/agents/new")
				b.fill("#url", address)
				b.press(".fetch button")
			}
			chosen := func(kind string) {
				t.Helper()
				b.until("the kind "+kind, `document.querySelector("#kind-`+kind+`")?.checked`)
			}
			b.open("/agents/new")
			b.says("Needs a model: this portal has none")

			fetch(agent)
			chosen("a2a")
			fetch(tools.Endpoint(agenttest.Echo))
			chosen("mcp")
			fetch(far.URL() + "/mcp") // of a portal, which has agent cards too
			chosen("mcp")
			b.holds("#endpoint", far.URL()+"/mcp")
			fetch(strings.TrimPrefix(host.URL, "http://")) // a bare host
			chosen("openai")
			b.holds("#endpoint", host.URL+"/v1")
			b.until("the models", `[...document.querySelector("select#model").options].map((o) => o.value).join() === "small-1,large-2"`)

			fetch(host.URL + "/wrong")
			b.says("No agent answers at " + host.URL + "/wrong")
			b.holds("#url", host.URL+"/wrong")
			b.shot("steps-offer-"+name, true)
			b.press(`.offers button`)
			chosen("openai")
			b.choose("#model", "large-2")
			b.shot("steps-model-"+name, true)
			b.fill("#name", "calc") // somebody has it
			b.allow("409 (Conflict)")
			b.press(`button[name="save"]`)
			b.wrong("name")
			b.until("the chosen model is kept", `document.querySelector("select#model").value === "large-2" && document.querySelector("select#model").options.length === 2`)
			b.fill("#name", "large")
			b.press(`button[name="save"]`)
			b.says("It is registered. Next steps")

			nobody := nowhere(t)
			fetch(nobody)
			b.press(`.anyway button[value="mcp"]`)
			chosen("mcp")
			b.holds("#endpoint", nobody)
			b.clean("addresses")
		})
	}
}

// TestRegister_ListsModelsForAKey registers a server that lists its models only to callers with a key. The typed key
// reads the list and is not shown again, and the chosen model answers.
func TestRegister_ListsModelsForAKey(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	const key = "sk-right-0123456789"
	for name, s := range map[string]screen{"desk": desk, "phone": {width: 390, height: 844, phone: true, scripts: true}, "narrow": narrow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := newModel(t)
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Authorization") != "Bearer "+key:
					w.WriteHeader(http.StatusUnauthorized)
					w.Write([]byte(`{"error":{"message":"Bad key: ` + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + `"}}`))
				case r.URL.Path == "/v1/models":
					w.Header().Set("Content-Type", "application/json")
					w.Write([]byte(`{"data":[{"id":"small-1"},{"id":"large-2"}]}`))
				default:
					far.ServeHTTP(w, r)
				}
			}))
			t.Cleanup(host.Close)
			p := apptest.Start(t, func(c *app.Config) { c.LogLevel = "debug" })
			p.Canary(key) // the log and the database must not show it
			p.Canary("sk-wrong-9876543210")
			b := visit(t, root, p, s).as(p.User(t, "ann"))
			b.allow("401 (Unauthorized)", "400 (Bad Request)")
			b.open("/agents/new")
			b.fill("#url", host.URL+"/v1")
			b.press(".fetch button")
			b.says("asks for a key")
			b.press(`.anyway button[value="openai"]`)
			b.holds("#endpoint", host.URL+"/v1")
			give := func(typed string) {
				t.Helper()
				b.fill("#key", typed)
				if s.scripts {
					eval[bool](b, `document.getElementById("key").blur() ?? true`) // the list comes by itself
				} else {
					b.press("[data-models-button]")
				}
			}
			give("sk-wrong-9876543210")
			b.until("that the key is refused", `document.getElementById("key-error")?.innerText.includes("refused the key")`)
			if eval[bool](b, `document.documentElement.outerHTML.includes("sk-wrong-9876543210")`) {
				t.Error("the page repeats the key")
			}
			give(key)
			b.until("the models", `[...document.querySelector("select#model")?.options ?? []].map((o) => o.value).join() === "small-1,large-2"`)
			b.until("no error", `!document.getElementById("key-error")`)
			if eval[bool](b, `document.documentElement.outerHTML.includes(`+js(key)+`)`) {
				t.Error("the page shows the key")
			}
			b.shot("steps-models-"+name, true)
			b.choose("#model", "large-2")
			b.fill("#name", "keyed")
			b.fill("#description", "Answers questions.")
			if !s.scripts {
				b.says("Type the key again")
				b.fill("#key", key)
			}
			b.press(`button[name="save"]`)
			b.says("It is registered. Next steps")
			b.open("/agents/keyed/edit")
			if s.scripts {
				b.click("[data-models-button]")
			} else {
				b.press("[data-models-button]")
			}
			b.until("the models for the stored key", `[...document.querySelector("select#model")?.options ?? []].map((o) => o.value).join() === "small-1,large-2"`)
			b.clean("models for a key")
		})
	}
}

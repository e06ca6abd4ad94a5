package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

const (
	// newcomerSteps is how many clicks and fields may lie between the home page
	// and the first answer of an agent that was just registered.
	newcomerSteps = 12
	// newcomerKeys is how many keys may be typed in these steps. By the
	// keystroke-level model of Card, Moran and Newell a person needs 2.65 s for
	// a step and 0.28 s for a key: 12 steps and 40 keys are 43 s. The rest of a
	// minute is for the portal.
	newcomerKeys = 40
)

// harbour is an A2A agent on a computer of its own that can be switched off
// and on again: then nothing listens at its address.
type harbour struct {
	*agenttest.A2AServer
	t       testing.TB
	address string // host and port
	up      *httptest.Server
}

var harbours atomic.Uint32

// newHarbour starts one. Its address is in a network that no other test uses,
// so that it is still free when it is switched on again.
func newHarbour(t testing.TB) *harbour {
	n := harbours.Add(1)
	h := &harbour{A2AServer: agenttest.NewA2AServer(t, "1.0", "JSONRPC"), t: t, address: fmt.Sprintf("127.9.%d.%d:0", n>>8, n&0xff)}
	h.on()
	t.Cleanup(h.off)
	return h
}

func (h *harbour) on() {
	h.t.Helper()
	l, err := net.Listen("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.address = l.Addr().String()
	h.URL = "http://" + h.address
	h.up = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	h.up.Listener.Close()
	h.up.Listener = l
	h.up.Start()
}

func (h *harbour) off() {
	h.up.CloseClientConnections()
	h.up.Close()
}

func (h *harbour) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/.well-known/agent-card.json" {
		h.Config.Handler.ServeHTTP(w, r)
		return
	}
	card := h.Card(agenttest.Echo, true)
	card["name"], card["description"] = "Harbour pilot", "Knows the tides and berths of every harbour. Ask it before you sail."
	card["skills"] = []any{map[string]any{"id": "tides", "name": "Tides", "description": "High and low water of a harbour.", "tags": []string{"sea", "weather"},
		"examples": []string{"When is high water in Bergen?"}}}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(card)
}

// stage looks at a page as it is used here, and takes pictures of it: of the
// whole of it, unless something stays at the edge of the screen.
func (b *tab) stage(name string) {
	b.t.Helper()
	for _, w := range eval[[]string](b, audit) {
		b.t.Errorf("%s at %d: %s", name, b.screen.width, w)
	}
	if os.Getenv("E2E_SHOTS") != "" {
		for _, scheme := range []string{"dark", "light"} {
			b.scheme(scheme)
			b.shot(fmt.Sprintf("newcomer-%s-%d-%v-%s", name, b.screen.width, b.screen.scripts, scheme), !eval[bool](b, `document.body.matches(".page-chat, .page-form")`))
		}
	}
	b.clean(name)
}

// TestNewcomer follows one agent through its life: somebody who has never been
// here registers it in a dozen steps, talks to it, finds it by a misspelt
// word, sees why it fell silent, changes it, takes the change back, and gives
// it to somebody else.
func TestNewcomer(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for name, s := range walked("phone without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.Start(t, func(c *app.Config) { c.Name = "Agora" })
			h := newHarbour(t)
			ann, bea := visit(t, root, p, s), visit(t, root, p, s)
			ann.registersInADozenSteps(h)
			ann.findsItMisspelt()
			ann.seesItFallSilent(h)
			ann.changesItAndGoesBack()
			ann.seesItAlive(h)
			ann.givesItTo(bea)
		})
	}
}

// registersInADozenSteps goes from the home page to the agent's first answer.
func (b *tab) registersInADozenSteps(h *harbour) {
	b.t.Helper()
	const example = "When is high water in Bergen?"
	b.open("/")
	b.stage("home")
	n, keys := &newcomer{tab: b}, 0
	types := func(selector, text string) {
		n.fill(selector, text)
		keys += utf8.RuneCountInString(text)
	}
	n.press(`a[href="/signup"]`)
	types("#name", "ann")
	types("#password", apptest.Password)
	n.press("main form button")
	n.press(`.ways a[href="/agents/new"]`)
	n.fill("#url", h.URL) // pasted
	n.press(".fetch button")
	n.says("Found “Harbour pilot”")
	n.until("the button without scrolling", `document.querySelector('button[name="save"]').getBoundingClientRect().bottom <= innerHeight`)
	n.stage("found")
	n.press(`button[name="save"]`)
	n.says("It is registered. Next steps")
	if got := b.path(); got != "/agents/harbour-pilot" {
		b.fail("registering leads to %s", got)
	}
	n.press(`.next .ask`)
	n.answered(agenttest.Echoed(example))
	if n.steps > newcomerSteps || keys > newcomerKeys {
		b.t.Errorf("it took %d steps and %d keys, more than %d and %d", n.steps, keys, newcomerSteps, newcomerKeys)
	}
	b.stage("answer")
	if messages, _ := h.Messages(); len(messages) != 1 || messages[0].Parts[0].Text() != example {
		b.t.Errorf("the agent was sent %d messages", len(messages))
	}
	b.open("/agents/harbour-pilot")
	b.has(".profile-badge .live-alive")
	b.stage("registered")
}

// findsItMisspelt searches from the home page with two letters the wrong way
// round.
func (b *tab) findsItMisspelt() {
	b.t.Helper()
	b.open("/")
	b.fill("#q", "harbuor pilto")
	b.press(".search button")
	b.until("how the words were read", `document.querySelector('.agent-card:has(a[href="/agents/harbour-pilot"]) .agent-card-matched')?.innerText.includes("“harbuor” read as “harbour”")`)
	b.stage("misspelt")
	b.press(`.results a[href="/agents/harbour-pilot"]`)
}

// checks presses the button that contacts the agent at once.
func (b *tab) checks() {
	b.t.Helper()
	b.press(`form[action="/agents/harbour-pilot/check"] button`)
}

// seesItFallSilent switches the agent's computer off.
func (b *tab) seesItFallSilent(h *harbour) {
	b.t.Helper()
	if eval[bool](b, `Boolean(document.querySelector("svg.bars .bar:not(.bar-alive)"))`) {
		b.t.Error("the history has a gap before there was one")
	}
	h.off()
	b.checks()
	b.has(".profile-badge .live-unreachable")
	b.until("what is wrong", `document.querySelector("#alive .health-line").innerText.startsWith("Does not answer since")`)
	if why := eval[string](b, `document.querySelector("#alive .health-line + p").innerText`); !strings.Contains(why, "refused") || !strings.Contains(why, "Make sure that it runs") {
		b.t.Errorf("the reason is %q", why)
	}
	if said := eval[string](b, `document.querySelector("#alive .checked").innerText`); !strings.Contains(said, "Checked just now") || strings.Contains(said, "answered") {
		b.t.Errorf("of an agent that does not answer it says %q", said)
	}
	b.until("a mark in the history", `document.querySelector("svg.bars .bar:last-of-type").matches(".bar-unreachable") && document.querySelector("svg.bars desc").textContent.includes(" unreachable")`)
	b.stage("unreachable")
}

// seesItAlive switches it on again.
func (b *tab) seesItAlive(h *harbour) {
	b.t.Helper()
	h.on()
	b.open("/agents/harbour-pilot")
	b.checks()
	b.has(".profile-badge .live-alive")
	b.until("both in the history", `document.querySelector("svg.bars .bar:last-of-type").matches(".bar-alive") && document.querySelector("svg.bars .bar-unreachable")`)
	b.stage("alive-again")
}

// changesItAndGoesBack edits the description, reads what that changed and
// takes it back.
func (b *tab) changesItAndGoesBack() {
	b.t.Helper()
	const before, after = "Knows the tides and berths of every harbour.", "Knows the tides of every harbour in Norway."
	b.press(`.owner-bar a[href="/agents/harbour-pilot/edit"]`)
	b.fill("#description", after+" Ask it before you sail.")
	b.stage("edit")
	b.press(`button[name="save"]`)
	b.until("the new text", `document.querySelector(".profile-head .lede").innerText === `+js(after))
	b.press(`a[href="/agents/harbour-pilot/versions"]`)
	b.says("Changed description")
	b.press(`a[href="/agents/harbour-pilot/versions/2"]`)
	for kind, want := range map[string]string{"removed": before, "added": after} {
		b.until("what was "+kind, `[...document.querySelectorAll(".diff-`+kind+`")].some((l) => l.querySelector("del, ins").innerText.startsWith(`+js(want)+`))`)
	}
	b.stage("version-2")
	b.press(`main a[href="/agents/harbour-pilot/versions/1"]`)
	b.stage("version-1")
	b.press(`form[action="/agents/harbour-pilot/rollback"] button`)
	b.says("It is as it was then")
	b.until("a third version", `document.querySelector(".rows .row").innerText.includes("Version 3") && document.querySelector(".rows .row").innerText.includes("current")`)
	b.stage("rolled-back")
	b.open("/agents/harbour-pilot")
	b.until("the old text", `document.querySelector(".profile-head .lede").innerText === `+js(before))
}

// givesItTo gives the agent to somebody who signs up for it.
func (b *tab) givesItTo(bea *tab) {
	b.t.Helper()
	bea.open("/")
	bea.press(`a[href="/signup"]`)
	bea.fill("#name", "bea")
	bea.fill("#password", apptest.Password)
	bea.press("main form button")

	b.press(`a[href="/agents/harbour-pilot/owner"]`)
	b.click("details:has(#to) summary")
	b.fill("#to", "bea")
	b.click("#sure")
	b.stage("give-away")
	b.press(`form:has(#to) button`)
	b.says("You offered it to bea")

	bea.press(`.who a[href="/notices"]`)
	bea.stage("notice")
	bea.press(`main a[href="/account#offers"]`)
	bea.says("ann wants to give it to you")
	bea.stage("offer")
	bea.press(`form[action="/agents/harbour-pilot/answer"] button[value="yes"]`)
	bea.says("It is yours now.")
	bea.stage("taken-over")

	b.open("/agents/harbour-pilot")
	b.says("Run by")
	if eval[bool](b, `Boolean(document.querySelector(".owner-bar, form[action$='/check']"))`) {
		b.t.Error("who gave the agent away is still offered to change it")
	}
	b.allow("403 (Forbidden)")
	b.open("/agents/harbour-pilot/edit")
	b.says("Only the owner of harbour-pilot may do that.")

	bea.open("/agents/harbour-pilot")
	bea.press(`.owner-bar a[href="/agents/harbour-pilot/edit"]`)
	bea.fill("#title", "Bea’s harbour pilot")
	bea.press(`button[name="save"]`)
	bea.until("the new title", `document.querySelector("h1").innerText === "Bea’s harbour pilot"`)
	bea.stage("new-owner")
}

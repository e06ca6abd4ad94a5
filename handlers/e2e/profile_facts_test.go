package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/apptest"
)

// pngOf is a small PNG of one colour.
func pngOf(t testing.TB, c color.Color) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 40, 40))
	for i := range 40 * 40 {
		img.Set(i%40, i/40, c)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestProfile_Facts looks at agents of several kinds: what they can do, who
// may use them and who vouches for them.
func TestProfile_Facts(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	ada, bea := p.User(t, "ada"), p.User(t, "bea")
	var token atomic.Value
	token.Store("")
	well := newModel(t).answers(func(string) []string { return []string{"Yes."} })
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/agentsite-owner" {
			w.Write([]byte("# owners\n" + token.Load().(string) + "\n"))
			return
		}
		well.ServeHTTP(w, r)
	}))
	t.Cleanup(far.Close)
	a, g := visit(t, root, p, desk).as(ada), visit(t, root, p, desk)
	a.allow("400 (Bad Request)", "503 (Service Unavailable)")

	// An MCP server shows its tools.
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "weather", "title": "Weather station", "description": "Measures the weather in Brest.\n\nThree **sensors**, one roof.", "kind": "mcp", "endpoint": far.URL + "/mcp", "visibility": "public",
		"languages": []string{"fr", "pt-br"}, "icon": pngOf(t, color.NRGBA{30, 120, 200, 255}),
		"skills": []skill{{ID: "now", Name: "Now", Description: "What it is like now.", Examples: []string{"Is it raining?"}}},
		"config": map[string]any{"version": "2025-06-18", "tools": []map[string]any{
			{"name": "now", "title": "Weather now", "description": "What it is like now <b>outside</b>.", "read_only": true, "input_schema": map[string]any{"type": "object", "properties": map[string]any{"unit": map[string]string{"type": "string"}, "place": map[string]string{"type": "string"}}, "required": []string{"place"}}},
			{"name": "open_window", "description": "Opens the window."}}},
		"limits": map[string]any{"callers": "accounts", "per_minute": 6, "per_day": 2000, "max_bytes": 4096}}, http.StatusCreated)
	g.open("/agents/weather")
	for _, text := range []string{"Its 2 tools", "Weather now", "only reads", "may change something", "place", "French", "Portuguese (BR)",
		"People with an account here may talk to it.", "It takes at most 6 messages a minute from each, 2,000 a day from all together.", "A message may have at most 4 KiB.", "Unproven:"} {
		g.says(text)
	}
	g.until("only people with an account", `!document.querySelector("#text") && document.querySelector('.talk a[href^="/login?next="]')`)
	g.until("its picture", `(() => { const i = document.querySelector(".profile-head img.avatar"); return i && i.complete && i.naturalWidth === 128; })()`)
	if eval[bool](g, `!!document.querySelector(".skill b")`) {
		t.Error("the text of a tool is markup")
	}
	g.look("profile-tools")
	g.open("/agents")
	g.has(`.agent-card img.avatar[src^="/agents/weather/icon?v="]`)
	src := eval[string](g, `document.querySelector(".agent-card img.avatar").getAttribute("src")`)
	icon := p.Guest(t).Must(http.MethodGet, src, nil, http.StatusOK)
	if got := icon.Header.Get("Content-Type") + "; " + icon.Header.Get("X-Content-Type-Options") + "; " + icon.Header.Get("Cache-Control"); got != "image/png; nosniff; public, max-age=31536000, immutable" {
		t.Errorf("the picture comes with %q", got)
	}
	if old := p.Guest(t).Must(http.MethodGet, "/agents/weather/icon?v=0", nil, http.StatusOK).Header.Get("Cache-Control"); strings.Contains(old, "immutable") {
		t.Errorf("an old address of it is kept for ever: %s", old)
	}
	a.open("/agents/weather")
	a.press(`.skill .ask`)
	a.press(".say button")
	a.says("Is it raining?")

	// A draft is its owners' until they publish it.
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "sketch", "title": "Sketch", "description": "Not ready.", "kind": "openai", "endpoint": far.URL + "/v1", "visibility": "public",
		"config": map[string]string{"model": "story-1"}, "status": map[string]string{"state": "draft", "message": ""}}, http.StatusCreated)
	bea.Must(http.MethodGet, "/agents/sketch", nil, http.StatusNotFound)
	a.open("/agents/sketch")
	a.says("This is a draft")
	a.says("Only its owners may talk to it.")
	a.look("profile-draft")
	a.press(`form[action="/agents/sketch/status"] button`)
	a.says("It is published")
	bea.Must(http.MethodGet, "/agents/sketch", nil, http.StatusOK)

	// The owner of an address proves it.
	a.open("/agents/sketch/owner")
	a.press(`form[action="/agents/sketch/prove"] button`)
	a.has("#proof-error")
	a.look("owner-unproven")
	token.Store(eval[string](a, `document.querySelector("#proof [data-copy-source]").innerText`))
	a.press(`form[action="/agents/sketch/prove"] button`)
	a.says("The proof was found")
	g.open("/agents/sketch")
	g.says("Proved: http://")
	var proof struct{ State, Method, Token, Origin string }
	p.Guest(t).Get(http.MethodGet, "/api/v1/agents/sketch/proof", nil, http.StatusOK, &proof)
	if proof.State != "proved" || proof.Method != "token" || proof.Origin != far.URL || proof.Token != "" {
		t.Errorf("a visitor reads %+v of the proof", proof)
	}

	// The owner of a linked agent is told how to start it, nobody else is.
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "laptop", "title": "My laptop", "description": "Runs here.", "kind": "link", "visibility": "unlisted"}, http.StatusCreated)
	a.open("/agents/laptop")
	a.says("AGENTSITE_TOKEN=ags_… agentsite agent run --portal " + p.URL() + " --name laptop -- COMMAND")
	a.look("profile-link")
	bea.Must(http.MethodPost, "/agents/laptop/connect", url.Values{}, http.StatusForbidden)
	if body := bea.Must(http.MethodGet, "/agents/laptop", nil, http.StatusOK).Body; strings.Contains(body, "agent run") {
		t.Error("a stranger is told how to start it")
	}
	var tried struct{ State, Text string }
	ada.Get(http.MethodPost, "/api/v1/agents/sketch/try", map[string]any{"text": "Are you there?"}, http.StatusOK, &tried)
	if tried.State != "completed" || tried.Text != "Yes." {
		t.Errorf("tried, it says %+v", tried)
	}
}

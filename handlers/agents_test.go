package handlers

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/hub"
)

func TestBrowse_FiltersAreAddresses(t *testing.T) {
	s := newSite(t, account.Open)
	s.agentOf(s.person("ann"), "echo", hub.Public)
	p := s.guest().get("/agents?kind=a2a&q=says").is(http.StatusOK)
	if cards := p.all("article", "class", "agent-card"); len(cards) != 1 {
		t.Fatalf("%d cards, want one", len(cards))
	}
	on := p.one("a", "class", "facet-on")
	if attribute(on, "href") != "/agents?q=says" {
		t.Errorf("switching the filter off leads to %q", attribute(on, "href"))
	}
	if h := p.one("input", "type", "hidden", "name", "kind"); attribute(h, "value") != "a2a" {
		t.Error("a new search drops the filter")
	}
	if p := s.guest().get("/agents?q=zzzz"); !p.says("No agent fits that") {
		t.Error("nothing found is not said")
	}
}

func TestAgent_TellsWhereTextGoesAndHowToUseIt(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	s.agentOf(ann, "echo", hub.Public)
	p := s.guest().get("/agents/echo").is(http.StatusOK)
	if !p.says("goes to echo.example, an address that ann registered") {
		t.Errorf("where text goes: %s", words(p.one("*", "id", "goes-to")))
	}
	if !p.says("agentsite chat --portal http://portal.test echo") || !p.says(`{"members":["echo"]}`) {
		t.Error("the commands are missing")
	}
	if p.has("a", "href", "/agents/echo/owner") || p.has("form", "action", "/agents/echo/check") || p.says("https://echo.example/a2a") {
		t.Error("a stranger sees what is the owner's")
	}
	if p := ann.get("/agents/echo"); !p.has("a", "href", "/agents/echo/owner") || !p.has("form", "action", "/agents/echo/check") || !p.says("https://echo.example/a2a") {
		t.Error("the owner cannot change it")
	}
	if p := s.guest().get("/agents/guide"); !p.says("stays on this portal") {
		t.Error("a built-in agent seems to send text away")
	}
}

func TestAgent_ForeignPrivateLooksLikeAbsent(t *testing.T) {
	s := newSite(t, account.Open)
	s.agentOf(s.person("ann"), "secret", hub.Private)
	bob := s.person("bob")
	for _, what := range []string{"", "/versions", "/versions/1", "/versions/latest", "/edit", "/owner", "/owner/calls/x", "/report", "/icon", "/embed", "/qr.svg"} {
		same(t, bob.get("/agents/secret"+what).is(http.StatusNotFound), bob.get("/agents/absent"+what).is(http.StatusNotFound), "secret", "absent")
	}
	for _, what := range []string{"/check", "/delete", "/edit", "/rollback", "/owners", "/owners/remove", "/offer", "/prove", "/status", "/report", "/sites"} {
		same(t, bob.post("/agents/secret"+what).is(http.StatusNotFound), bob.post("/agents/absent"+what).is(http.StatusNotFound), "secret", "absent")
	}
}

// same fails when two pages differ in more than the name that was asked for.
func same(t *testing.T, a, b page, nameA, nameB string) {
	t.Helper()
	clean := func(p page, name string) string {
		main := p.one("main")
		q := page{t: t, doc: main}
		for _, c := range q.all("*", "class", "error-request") {
			c.Parent.RemoveChild(c)
		}
		return strings.ReplaceAll(words(main), name, "NAME")
	}
	if x, y := clean(a, nameA), clean(b, nameB); x != y {
		t.Errorf("they differ:\n%s\n%s", x, y)
	}
}

func TestRegister_KeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	filled := []string{"kind", "a2a", "name", "Bad Name!", "title", "My title", "description", "", "endpoint", "ftp://x", "auth_header", "X-Key", "token", "t0ps3cret",
		"visibility", "unlisted", "notes", "Costs nothing",
		"skill_name", "", "skill_id", "", "skill_description", "", "skill_tags", "", "skill_examples", "",
		"skill_name", strings.Repeat("n", 101), "skill_id", "one", "skill_description", "D", "skill_tags", "a, b", "skill_examples", "x\ny"}
	p := ann.post("/agents/new", filled...).is(http.StatusBadRequest)
	p.field("name", "Bad Name!", "a–z")
	p.field("title", "My title", "")
	p.field("description", "", "say in a sentence")
	p.field("endpoint", "ftp://x", "https://")
	p.field("auth_header", "X-Key", "")
	p.field("notes", "Costs nothing", "")
	p.field("skill_name.1", strings.Repeat("n", 101), "at most 100")
	p.field("skill_tags.1", "a, b", "")
	if !p.has("input", "id", "visibility-unlisted", "checked", "") || !p.has("input", "id", "kind-a2a", "checked", "") {
		t.Error("the choices are lost")
	}
	if strings.Contains(p.body, "t0ps3cret") {
		t.Error("the credential is shown again")
	}
	if n := ann.counts(); !strings.Contains(n, "agents=1") {
		t.Errorf("something was registered: %s", n)
	}
}

func TestRegister_MoreAddsARowAndKeepsTheRest(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	p := ann.post("/agents/new", "more", "1", "name", "echo", "skill_name", "One", "skill_id", "", "skill_description", "", "skill_tags", "t", "skill_examples", "").is(http.StatusOK)
	p.field("name", "echo", "")
	p.field("skill_name.0", "One", "")
	p.field("skill_name.1", "", "")
}

func TestRegister_EditDeleteAndTakenNames(t *testing.T) {
	s := newSite(t, account.Open)
	ann, bob := s.person("ann"), s.person("bob")
	form := []string{"kind", "openai", "title", "Llama", "description", "A model.", "endpoint", "https://llama.example/v1", "model", "llama3", "key", "k3y", "visibility", "public", "notes", "Slow."}
	ann.post("/agents/new", append(form, "name", "llama")...).leads("/agents/llama")
	if a, err := s.hub.Get(t.Context(), ann.actor, "llama"); err != nil || !a.HasSecret || a.OwnerName != "ann" {
		t.Fatalf("registered %+v, %v", a, err)
	}
	p := ann.get("/agents/llama/edit").is(http.StatusOK)
	p.field("model", "llama3", "")
	p.field("description", "A model.", "")
	p.field("notes", "Slow.", "")
	p.field("key", "", "")
	ann.post("/agents/llama/edit", append(form, "title", "", "languages", "de")...).leads("/agents/llama")
	p = ann.post("/agents/llama/edit", "kind", "openai", "description", "Changed.", "endpoint", "https://llama.example/v1", "model", "").is(http.StatusBadRequest)
	p.field("model", "", "name the model")
	p.field("description", "Changed.", "")
	if p := ann.get("/agents/llama/versions").is(http.StatusOK); len(p.all("li", "class", "row")) != 2 {
		t.Error("the versions are not two")
	}
	p = bob.post("/agents/new", append(form, "name", "llama")...).is(http.StatusConflict)
	p.field("name", "llama", "taken")
	bob.post("/agents/llama/edit", form...).is(http.StatusForbidden)
	bob.post("/agents/llama/delete", "confirm", "llama").is(http.StatusForbidden)
	ann.post("/agents/llama/check").leads("/agents/llama#alive")
	ann.post("/agents/llama/delete", "confirm", "lama").is(http.StatusBadRequest).field("confirm", "", "write llama")
	ann.post("/agents/llama/delete", "confirm", "llama").leads("/account?done=agent-deleted")
	ann.get("/agents/llama").is(http.StatusNotFound)
	p = bob.post("/agents/new", append(form, "name", "llama")...).is(http.StatusConflict)
	p.field("name", "llama", "taken")
}

func TestRegister_FetchFillsTheForm(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	p := ann.post("/agents/new/fetch", "url", "https://invoices.example").is(http.StatusOK)
	p.field("name", "reader", "")
	p.field("endpoint", "https://invoices.example", "")
	p.field("skill_name.0", "Read", "")
	p = ann.post("/agents/new/fetch", "url", "https://nobody.example/v1").is(http.StatusBadRequest)
	p.field("url", "https://nobody.example/v1", "nothing answered")
	p.field("endpoint", "https://nobody.example/v1", "")
	if !p.has("input", "id", "kind-openai", "checked", "") {
		t.Error("an address that ends in /v1 is not taken for a model")
	}
	s.guest().post("/agents/new/fetch", "url", "https://invoices.example").is(http.StatusUnauthorized)
	s.guest().post("/agents/new", "name", "echo").is(http.StatusUnauthorized).field("name", "echo", "")
}

func TestAdmin_WithdrawingHidesAndPuttingBackShows(t *testing.T) {
	s := newSite(t, account.Open)
	op, ann := s.operator("root-op"), s.person("ann")
	s.agentOf(ann, "echo", hub.Public)
	listed := func() bool { return s.guest().get("/agents?q=echo").has("a", "href", "/agents/echo") }
	if !listed() {
		t.Fatal("not listed to begin with")
	}
	ann.post("/admin/agents/echo/withdraw").is(http.StatusForbidden)
	s.guest().post("/admin/agents/echo/withdraw").is(http.StatusUnauthorized)
	op.post("/admin/agents/echo/withdraw").leads("/admin/agents")
	if listed() {
		t.Error("still found")
	}
	if p := s.guest().get("/agents/echo").is(http.StatusOK); p.has("textarea", "name", "text") || !p.says("withdrawn") {
		t.Error("still asks to be talked to")
	}
	p := s.guest().post("/chat", "agent", "echo", "text", "Hello").is(http.StatusConflict)
	if !p.says("withdrawn") {
		t.Error("does not say why")
	}
	if p := op.get("/admin/agents").is(http.StatusOK); !p.has("li", "class", "row-off") {
		t.Error("the operator does not see that it is withdrawn")
	}
	op.post("/admin/agents/guide/withdraw").is(http.StatusForbidden)
	op.post("/admin/agents/echo/restore").leads("/admin/agents")
	if !listed() {
		t.Error("put back, but not found")
	}
}

func TestBrowse_HelpsOnWhenNothingFits(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	for _, name := range []string{"translator", "interpreter"} {
		s.agentOf(ann, name, hub.Public)
	}
	ways := func(path string) []string {
		var out []string
		for _, w := range s.guest().get(path).is(http.StatusOK).all("a", "class", "way-on") {
			out = append(out, strings.Join(strings.Fields(words(w)), " ")+" → "+attribute(w, "href"))
		}
		return out
	}
	for _, c := range []struct{ path, want string }{
		{"/agents?q=translator&kind=mcp", `without “Kind: MCP” 1 agent → /agents?q=translator`},
		{"/agents?kind=mcp&tag=talk&tag=sea", `without “Kind: MCP” 2 agents → /agents?tag=talk&tag=sea`},
		// One filter less is not enough.
		{"/agents?q=translator&kind=mcp&tag=sea", `without any filter 1 agent → /agents?q=translator`},
		{"/agents?q=%22translator+says%22&sort=newest", `translator says 2 agents → /agents?q=translator+says&sort=newest`},
		// What starts alike is another spelling.
		{"/agents?q=interference", "interpreter 1 agent → /agents?q=interpreter"},
		{"/agents?q=interference&kind=mcp", "interpreter, without filters 1 agent → /agents?q=interpreter"},
		{"/agents?q=zzzzzz", ""},
	} {
		if got := strings.Join(ways(c.path), "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.path, got, c.want)
		}
	}
}

func TestBrowse_VisitorsSeeTheSamePageInEveryOrder(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	s.agentOf(ann, "echo", hub.Public)
	s.agentOf(ann, "alpha", hub.Public)
	for _, path := range []string{"/agents", "/agents?sort=newest", "/agents?sort=newest&kind=a2a", "/agents?done=saved", "/agents?q=says"} {
		var shown [2]string
		for i := range shown {
			p := s.guest().get(path).is(http.StatusOK)
			for _, script := range p.all("script") {
				p.body = strings.ReplaceAll(p.body, attribute(script, "nonce"), "NONCE")
			}
			shown[i] = p.body
			if !p.has("link", "rel", "alternate", "type", "application/atom+xml") {
				t.Errorf("%s names no feed", path)
			}
			if p.has("form", "action", "/searches") || p.says("The search is saved") {
				t.Errorf("%s offers a visitor what needs an account", path)
			}
		}
		if shown[0] != shown[1] {
			t.Errorf("%s differs between visitors", path)
		}
	}
	if s.guest().get("/agents?sort=newest").body == s.guest().get("/agents?sort=name").body {
		t.Error("one order is shown for another")
	}
	if p := s.guest().get("/agents?q=says"); !p.has("a", "href", "/login?next=%2Fagents%3Fq%3Dsays") {
		t.Error("a visitor is not led through the login")
	}
	if p := ann.get("/agents?kind=a2a"); !p.has("form", "action", "/searches") {
		t.Error("a person cannot save the search")
	}
	s.guest().get("/agents?sort=random").is(http.StatusBadRequest)
}

func TestSavedSearch_IsNamedByWhatItAsks(t *testing.T) {
	s := newSite(t, account.Open)
	ann := s.person("ann")
	for query, title := range map[string]string{
		"q=tea":                            "tea",
		"q=tea&kind=a2a&language=de":       "tea, A2A, German",
		"live=needs_auth":                  "needs auth",
		"sort=newest":                      "All agents",
		"q=" + strings.Repeat("long+", 40): strings.TrimSpace(strings.Repeat("long ", 16)[:79]) + "…",
	} {
		ann.post("/searches", "query", query).is(http.StatusSeeOther)
		if p := ann.get("/account"); !p.says(title) {
			t.Errorf("%.40s is not named %q: %s", query, title, words(p.one("section", "id", "searches")))
		}
	}
	s.guest().post("/searches", "query", "q=tea").is(http.StatusUnauthorized)
}

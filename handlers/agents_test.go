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
	if !p.says("goes to echo.example, which ann runs") {
		t.Errorf("where text goes: %s", words(p.one("*", "id", "goes-to")))
	}
	if !p.says("agentsite chat --portal http://portal.test echo") || !p.says(`{"members":["echo"]}`) {
		t.Error("the commands are missing")
	}
	if p.has("form", "action", "/agents/echo/delete") || p.says("https://echo.example/a2a") {
		t.Error("a stranger sees what is the owner's")
	}
	if p := ann.get("/agents/echo"); !p.has("form", "action", "/agents/echo/delete") || !p.says("https://echo.example/a2a") {
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
	for _, what := range []string{"", "/versions", "/edit"} {
		same(t, bob.get("/agents/secret"+what).is(http.StatusNotFound), bob.get("/agents/absent"+what).is(http.StatusNotFound), "secret", "absent")
	}
	for _, what := range []string{"/check", "/delete", "/edit"} {
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
	ann.post("/agents/llama/edit", append(form, "title", "")...).leads("/agents/llama")
	p = ann.post("/agents/llama/edit", "kind", "openai", "description", "Changed.", "endpoint", "https://llama.example/v1", "model", "").is(http.StatusBadRequest)
	p.field("model", "", "name the model")
	p.field("description", "Changed.", "")
	if p := ann.get("/agents/llama/versions").is(http.StatusOK); len(p.all("li", "class", "row")) != 2 {
		t.Error("the versions are not two")
	}
	p = bob.post("/agents/new", append(form, "name", "llama")...).is(http.StatusConflict)
	p.field("name", "llama", "taken")
	bob.post("/agents/llama/edit", form...).is(http.StatusForbidden)
	bob.post("/agents/llama/delete").is(http.StatusForbidden)
	ann.post("/agents/llama/check").leads("/agents/llama")
	ann.post("/agents/llama/delete").is(http.StatusSeeOther)
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

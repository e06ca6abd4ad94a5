package agents_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/internal/testing/sitetest"
)

func TestBrowse_FiltersAreAddresses(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	s.AgentOf(s.Person("ann"), "echo", hub.Public)
	p := s.Guest().Get("/agents?kind=a2a&q=says").Is(http.StatusOK)
	if cards := p.All("article", "class", "agent-card"); len(cards) != 1 {
		t.Fatalf("%d cards, want one", len(cards))
	}
	on := p.One("a", "class", "facet-on")
	if sitetest.Attribute(on, "href") != "/agents?q=says" {
		t.Errorf("switching the filter off leads to %q", sitetest.Attribute(on, "href"))
	}
	kept := p.All("input", "type", "hidden", "name", "kind") // of a new search, and of another mode
	if len(kept) != 2 || sitetest.Attribute(kept[0], "value") != "a2a" || sitetest.Attribute(kept[1], "value") != "a2a" {
		t.Error("a new search drops the filter")
	}
	if p := s.Guest().Get("/agents?q=zzzz"); !p.Says("No agent fits that") {
		t.Error("nothing found is not said")
	}
}

func TestAgent_TellsWhereTextGoesAndHowToUseIt(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	p := s.Guest().Get("/agents/echo").Is(http.StatusOK)
	if !p.Says("goes to echo.example, an address that ann registered") {
		t.Errorf("where text goes: %s", sitetest.Words(p.One("*", "id", "goes-to")))
	}
	if !p.Says("agentsite chat --portal http://portal.test echo") || !p.Says(`{"members":["echo"]}`) {
		t.Error("the commands are missing")
	}
	if p.Has("a", "href", "/agents/echo/owner") || p.Has("form", "action", "/agents/echo/check") || p.Says("https://echo.example/a2a") {
		t.Error("a stranger sees what is the owner's")
	}
	if p := ann.Get("/agents/echo"); !p.Has("a", "href", "/agents/echo/owner") || !p.Has("form", "action", "/agents/echo/check") || !p.Says("https://echo.example/a2a") {
		t.Error("the owner cannot change it")
	}
	if p := s.Guest().Get("/agents/guide"); !p.Says("stays on this portal") {
		t.Error("a built-in agent seems to send text away")
	}
}

func TestAgent_ForeignPrivateLooksLikeAbsent(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	s.AgentOf(s.Person("ann"), "secret", hub.Private)
	bob := s.Person("bob")
	for _, what := range []string{"", "/versions", "/versions/1", "/versions/latest", "/edit", "/owner", "/owner/work", "/owner/calls/x", "/report", "/icon", "/embed", "/qr.svg"} {
		sitetest.Same(t, bob.Get("/agents/secret"+what).Is(http.StatusNotFound), bob.Get("/agents/absent"+what).Is(http.StatusNotFound), "secret", "absent")
	}
	for _, what := range []string{"/check", "/delete", "/edit", "/rollback", "/owners", "/owners/remove", "/offer", "/prove", "/status", "/report", "/sites"} {
		sitetest.Same(t, bob.Post("/agents/secret"+what).Is(http.StatusNotFound), bob.Post("/agents/absent"+what).Is(http.StatusNotFound), "secret", "absent")
	}
}

func TestRegister_KeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	filled := []string{"kind", "a2a", "name", "Bad Name!", "title", "My title", "description", "", "endpoint", "ftp://x", "auth_header", "X-Key", "token", "t0ps3cret",
		"visibility", "unlisted", "notes", "Costs nothing",
		"skill_name", "", "skill_id", "", "skill_description", "", "skill_tags", "", "skill_examples", "",
		"skill_name", strings.Repeat("n", 101), "skill_id", "one", "skill_description", "D", "skill_tags", "a, b", "skill_examples", "x\ny"}
	p := ann.Post("/agents/new", filled...).Is(http.StatusBadRequest)
	p.Field("name", "Bad Name!", "a–z")
	p.Field("title", "My title", "")
	p.Field("description", "", "say in a sentence")
	p.Field("endpoint", "ftp://x", "https://")
	p.Field("auth_header", "X-Key", "")
	p.Field("notes", "Costs nothing", "")
	p.Field("skill_name.1", strings.Repeat("n", 101), "at most 100")
	p.Field("skill_tags.1", "a, b", "")
	if !p.Has("input", "id", "visibility-unlisted", "checked", "") || !p.Has("input", "id", "kind-a2a", "checked", "") {
		t.Error("the choices are lost")
	}
	if strings.Contains(p.Body, "t0ps3cret") {
		t.Error("the credential is shown again")
	}
	if n := ann.Counts(); !strings.Contains(n, "agents=1") {
		t.Errorf("something was registered: %s", n)
	}
}

func TestRegister_MoreAddsARowAndKeepsTheRest(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	p := ann.Post("/agents/new", "more", "1", "name", "echo", "skill_name", "One", "skill_id", "", "skill_description", "", "skill_tags", "t", "skill_examples", "").Is(http.StatusOK)
	p.Field("name", "echo", "")
	p.Field("skill_name.0", "One", "")
	p.Field("skill_name.1", "", "")
}

func TestRegister_EditDeleteAndTakenNames(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann, bob := s.Person("ann"), s.Person("bob")
	form := []string{"kind", "openai", "title", "Llama", "description", "A model.", "endpoint", "llama.example/v1", "model", "llama3", "key", "k3y", "visibility", "public", "notes", "Slow."}
	ann.Post("/agents/new", append(form, "name", "llama")...).Leads("/agents/llama")
	if a, err := s.Hub.Get(t.Context(), ann.Actor, "llama"); err != nil || !a.HasSecret || a.OwnerName != "ann" {
		t.Fatalf("registered %+v, %v", a, err)
	}
	p := ann.Get("/agents/llama/edit").Is(http.StatusOK)
	p.Field("endpoint", "https://llama.example/v1", "") // a host is enough, as it is to fetch
	p.Field("model", "llama3", "")
	p.Field("description", "A model.", "")
	p.Field("notes", "Slow.", "")
	p.Field("key", "", "")
	ann.Post("/agents/llama/edit", append(form, "title", "", "languages", "de")...).Leads("/agents/llama")
	p = ann.Post("/agents/llama/edit", "kind", "openai", "description", "Changed.", "endpoint", "https://llama.example/v1", "model", "").Is(http.StatusBadRequest)
	p.Field("model", "", "name the model")
	p.Field("description", "Changed.", "")
	if p := ann.Get("/agents/llama/versions").Is(http.StatusOK); len(p.All("li", "class", "row")) != 2 {
		t.Error("the versions are not two")
	}
	p = bob.Post("/agents/new", append(form, "name", "llama")...).Is(http.StatusConflict)
	p.Field("name", "llama", "taken")
	bob.Post("/agents/llama/edit", form...).Is(http.StatusForbidden)
	bob.Post("/agents/llama/delete", "confirm", "llama").Is(http.StatusForbidden)
	ann.Post("/agents/llama/check").Leads("/agents/llama#alive")
	ann.Post("/agents/llama/delete", "confirm", "lama").Is(http.StatusBadRequest).Field("confirm", "", "write llama")
	ann.Post("/agents/llama/delete", "confirm", "llama").Leads("/account?done=agent-deleted")
	ann.Get("/agents/llama").Is(http.StatusNotFound)
	p = bob.Post("/agents/new", append(form, "name", "llama")...).Is(http.StatusConflict)
	p.Field("name", "llama", "taken")
}

func TestRegister_FetchFillsTheForm(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	p := ann.Post("/agents/new/fetch", "url", "https://invoices.example").Is(http.StatusOK)
	p.Field("name", "reader", "")
	p.Field("endpoint", "https://invoices.example", "")
	p.Field("skill_name.0", "Read", "")
	p = ann.Post("/agents/new/fetch", "url", "https://nobody.example/v1").Is(http.StatusBadRequest)
	p.Field("url", "https://nobody.example/v1", "nothing answered")
	for typed, want := range map[string]string{"nobody.example/v1": "https://nobody.example/v1",
		"http://nobody.example/v1": "http://nobody.example/v1"} {
		p := ann.Post("/agents/new/fetch", "url", typed).Is(http.StatusBadRequest)
		if !p.Has("input", "name", "endpoint", "value", want) {
			t.Errorf("%s is not registered all the same as %s", typed, want)
		}
	}
	p = ann.Post("/agents/new", "more", "kind", "kind", "openai", "endpoint", "https://nobody.example/v1").Is(http.StatusOK)
	p.Field("endpoint", "https://nobody.example/v1", "")
	if !p.Has("input", "id", "kind-openai", "checked", "") {
		t.Error("an address where nothing answers cannot be registered all the same")
	}
	// A proposed name that is taken is replaced by a free one.
	ann.Post("/agents/new", "name", "reader", "description", "Reads.", "kind", "openai", "endpoint", "https://llama.example/v1",
		"model", "llama3", "visibility", "public").Leads("/agents/reader")
	s.Person("bob").Post("/agents/new/fetch", "url", "https://invoices.example").Is(http.StatusOK).Field("name", "reader-bob", "")
	s.Guest().Post("/agents/new/fetch", "url", "https://invoices.example").Is(http.StatusUnauthorized)
	s.Guest().Post("/agents/new", "name", "echo").Is(http.StatusUnauthorized).Field("name", "echo", "")
}

// An agent that is called like a built-in one gets a name that it can have before anything is typed, and can be tried
// under any name.
func TestRegister_FetchProposesANameBesideTheBuiltInAgents(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	p := ann.Post("/agents/new/fetch", "url", "https://guide.example:8443").Is(http.StatusOK)
	p.Field("name", "guide-guide-example-8443", "")
	p.Field("title", "Guide at guide.example:8443", "")
	form := []string{"kind", "a2a", "endpoint", "https://guide.example:8443", "description", "Guides.", "visibility", "public"}
	p = ann.Post("/agents/new", append(form, "name", "gu1de")...).Is(http.StatusBadRequest)
	p.Field("name", "gu1de", "people would take it for the portal's own")
	if !p.Says("gu1de-ann") {
		t.Error("no free name is proposed")
	}
	p = ann.Post("/agents/new/check", append(form, "name", "gu1de")...).Is(http.StatusOK)
	if !strings.Contains(p.Body, `"names":["gu1de-ann"`) || !strings.Contains(p.Body, "would take it for") {
		t.Errorf("the check while typing answers %s", p.Body)
	}
	p = ann.Post("/agents/new/try", append(form, "name", "gu1de", "title", "Guide", "try", "Hello")...).Is(http.StatusOK)
	p.Field("name", "gu1de", "")
	p.Field("title", "Guide", "")
	if !p.Says("Tried: Hello") {
		t.Error("the agent was not tried")
	}
	ann.Post("/agents/new", append(form, "name", "guide-guide-example-8443", "title", "Guide at guide.example:8443")...).
		Leads("/agents/guide-guide-example-8443")
}

func TestAdmin_WithdrawingHidesAndPuttingBackShows(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	op, ann := s.Operator("root-op"), s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	listed := func() bool { return s.Guest().Get("/agents?q=echo").Has("a", "href", "/agents/echo") }
	if !listed() {
		t.Fatal("not listed to begin with")
	}
	ann.Post("/admin/agents/echo/withdraw").Is(http.StatusForbidden)
	s.Guest().Post("/admin/agents/echo/withdraw").Is(http.StatusUnauthorized)
	op.Post("/admin/agents/echo/withdraw").Leads("/admin/agents")
	if listed() {
		t.Error("still found")
	}
	if p := s.Guest().Get("/agents/echo").Is(http.StatusOK); p.Has("textarea", "name", "text") || !p.Says("withdrawn") {
		t.Error("still asks to be talked to")
	}
	p := s.Guest().Post("/chat", "agent", "echo", "text", "Hello").Is(http.StatusConflict)
	if !p.Says("withdrawn") {
		t.Error("does not say why")
	}
	if p := op.Get("/admin/agents").Is(http.StatusOK); !p.Has("li", "class", "row-off") {
		t.Error("the operator does not see that it is withdrawn")
	}
	op.Post("/admin/agents/guide/withdraw").Is(http.StatusForbidden)
	op.Post("/admin/agents/echo/restore").Leads("/admin/agents")
	if !listed() {
		t.Error("put back, but not found")
	}
}

func TestBrowse_HelpsOnWhenNothingFits(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	for _, name := range []string{"translator", "interpreter"} {
		s.AgentOf(ann, name, hub.Public)
	}
	ways := func(path string) []string {
		var out []string
		for _, w := range s.Guest().Get(path).Is(http.StatusOK).All("a", "class", "way-on") {
			out = append(out, strings.Join(strings.Fields(sitetest.Words(w)), " ")+" → "+sitetest.Attribute(w, "href"))
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
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	s.AgentOf(ann, "echo", hub.Public)
	s.AgentOf(ann, "alpha", hub.Public)
	for _, path := range []string{"/agents", "/agents?sort=newest", "/agents?sort=newest&kind=a2a", "/agents?done=saved", "/agents?q=says"} {
		var shown [2]string
		for i := range shown {
			p := s.Guest().Get(path).Is(http.StatusOK)
			for _, script := range p.All("script") {
				p.Body = strings.ReplaceAll(p.Body, sitetest.Attribute(script, "nonce"), "NONCE")
			}
			shown[i] = p.Body
			if !p.Has("link", "rel", "alternate", "type", "application/atom+xml") {
				t.Errorf("%s names no feed", path)
			}
			if p.Has("form", "action", "/searches") || p.Says("The search is saved") {
				t.Errorf("%s offers a visitor what needs an account", path)
			}
		}
		if shown[0] != shown[1] {
			t.Errorf("%s differs between visitors", path)
		}
	}
	if s.Guest().Get("/agents?sort=newest").Body == s.Guest().Get("/agents?sort=name").Body {
		t.Error("one order is shown for another")
	}
	if p := s.Guest().Get("/agents?q=says"); !p.Has("a", "href", "/login?next=%2Fagents%3Fq%3Dsays") {
		t.Error("a visitor is not led through the login")
	}
	if p := ann.Get("/agents?kind=a2a"); !p.Has("form", "action", "/searches") {
		t.Error("a person cannot save the search")
	}
	s.Guest().Get("/agents?sort=random").Is(http.StatusBadRequest)
}

func TestSavedSearch_IsNamedByWhatItAsks(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	for query, title := range map[string]string{
		"q=tea":                            "tea",
		"q=tea&kind=a2a&language=de":       "tea, A2A, German",
		"live=needs_auth":                  "needs auth",
		"sort=newest":                      "All agents",
		"q=" + strings.Repeat("long+", 40): strings.TrimSpace(strings.Repeat("long ", 16)[:79]) + "…",
	} {
		ann.Post("/searches", "query", query).Is(http.StatusSeeOther)
		if p := ann.Get("/account"); !p.Says(title) {
			t.Errorf("%.40s is not named %q: %s", query, title, sitetest.Words(p.One("section", "id", "searches")))
		}
	}
	s.Guest().Post("/searches", "query", "q=tea").Is(http.StatusUnauthorized)
}

package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestOwner_ShareAndGiveAway shares an agent with one person and gives it to
// another.
func TestOwner_ShareAndGiveAway(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	far := newModel(t).answers(func(string) []string { return []string{"Yes."} })
	ada, bea, cleo := p.User(t, "ada"), p.User(t, "bea"), p.User(t, "cleo")
	register(ada, registration{Name: "parrot", Title: "Parrot", Description: "Says yes.", Endpoint: far.base()})

	a := visit(t, root, p, desk).as(ada)
	a.allow("400 (Bad Request)", "403 (Forbidden)")
	a.open("/agents/parrot")
	a.press(`a[href="/agents/parrot/owner"]`)
	a.fill("#who", "nobody-here")
	a.press(`form[action="/agents/parrot/owners"] button`)
	a.wrong("who")
	a.holds("#who", "nobody-here")
	a.fill("#who", "cleo")
	a.press(`form[action="/agents/parrot/owners"] button`)
	a.says("It is shared.")

	c := visit(t, root, p, desk).as(cleo)
	c.open("/agents/parrot/owner")
	c.says("may change it, see its calls and try it")
	c.until("nothing that only the owner may", `!document.querySelector('form[action$="/offer"], form[action$="/delete"], form[action$="/owners"]')`)
	cleo.Must(http.MethodPatch, "/api/v1/agents/parrot", map[string]string{"title": "Parrot the second"}, http.StatusOK)
	cleo.Must(http.MethodPost, "/api/v1/agents/parrot/offer", map[string]string{"to": "cleo"}, http.StatusForbidden)
	cleo.Must(http.MethodPost, "/agents/parrot/delete", url.Values{"confirm": {"parrot"}}, http.StatusForbidden)
	c.press(`form[action="/agents/parrot/owners/remove"] button`)
	c.says("You no longer share this agent.")
	cleo.Must(http.MethodGet, "/agents/parrot/owner", nil, http.StatusForbidden)

	a.open("/agents/parrot/owner")
	a.click("details:has(#to) summary")
	a.fill("#to", "bea")
	a.click("#sure")
	a.press(`form:has(#to) button`)
	a.says("You offered it to bea")
	a.look("owner-offered")
	a.press(`.notice form[action="/agents/parrot/offer"] button`)
	a.says("The offer is taken back.")
	ada.Must(http.MethodPost, "/agents/parrot/offer", url.Values{"to": {"bea"}}, http.StatusBadRequest) // not ticked
	ada.Must(http.MethodPost, "/agents/parrot/offer", url.Values{"to": {"bea"}, "sure": {"yes"}}, http.StatusSeeOther)

	b := visit(t, root, p, desk).as(bea)
	b.open("/agents/parrot")
	b.says("ada wants to give you this agent")
	b.look("profile-offered")
	b.press(`form[action="/agents/parrot/answer"] button[value="yes"]`)
	b.says("It is yours now.")
	b.until("the new owner", `document.querySelector("#people .row strong").innerText === "bea"`)
	ada.Must(http.MethodGet, "/agents/parrot/owner", nil, http.StatusForbidden)
	ada.Must(http.MethodPatch, "/api/v1/agents/parrot", map[string]string{"title": "Mine"}, http.StatusForbidden)
	b.click(`label[for="state-deprecated"]`)
	b.fill("#message", "Use calc instead.")
	b.press(`form[action="/agents/parrot/status"] button`)
	b.says("The status is set.")
	g := visit(t, root, p, desk)
	g.open("/agents/parrot")
	g.says("It is deprecated")
	g.says("Use calc instead.")
	g.look("profile-deprecated")
	b.fill("#confirm", "parot")
	b.allow("400 (Bad Request)")
	b.press(`form[action="/agents/parrot/delete"] button`)
	b.wrong("confirm")
	b.fill("#confirm", "parrot")
	b.press(`form[action="/agents/parrot/delete"] button`)
	bea.Must(http.MethodGet, "/agents/parrot", nil, http.StatusNotFound)
}

// TestOwner_WireLog shows an owner what went over the wire in their own calls,
// without credentials, and nobody the text of others' calls.
func TestOwner_WireLog(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	far := newModel(t).answers(func(string) []string { return []string{"An answer <b>with markup</b>."} })
	ada, bea := p.User(t, "ada"), p.User(t, "bea")
	key := p.Canary("sk-a-key-that-nobody-may-read")
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "keyed", "title": "Keyed", "description": "Wants a key.", "kind": "openai", "endpoint": far.base(), "visibility": "public",
		"config": map[string]string{"model": "story-1", "key": key}}, http.StatusCreated)
	call := func(c *apptest.Client, text string) string {
		id := c.Conversation("keyed")
		s := c.Events(id)
		defer s.Close()
		task := c.Say(id, text).Tasks[0].ID
		s.Answered(task)
		return task
	}
	mine, others := call(ada, "what the owner asked"), call(bea, "what bea keeps to herself")

	a := visit(t, root, p, desk).as(ada)
	a.open("/agents/keyed/owner/work")
	a.until("two calls", `document.querySelectorAll("table.calls tbody tr").length === 2`)
	if n := eval[int](a, `document.querySelectorAll("table.calls a").length`); n != 1 {
		t.Errorf("%d wire logs for one call of the owner's", n)
	}
	a.says("a person with an account")
	a.look("owner-calls")
	a.press(`a[href="/agents/keyed/owner/calls/` + mine + `"]`)
	a.says("what the owner asked")
	a.says("The agent answered")
	a.says("with markup")
	a.until("markup that is text", `!document.querySelector(".wire b")`)
	a.says("Authorization: [removed]")
	a.look("owner-wire")
	a.open("/agents/keyed/owner/calls/" + others)
	a.says("Nothing is stored of this call")
	for _, path := range []string{"/agents/keyed/owner", "/agents/keyed/owner/work", "/agents/keyed/owner/calls/" + others, "/api/v1/agents/keyed/stats", "/api/v1/agents/keyed/calls/" + others} {
		if body := ada.Must(http.MethodGet, path, nil, http.StatusOK).Body; strings.Contains(body, "herself") {
			t.Errorf("%s shows what another person said", path)
		}
	}
	var traces struct {
		Traces []struct {
			Sent       bool
			Head, Body string
		}
	}
	ada.Get(http.MethodGet, "/api/v1/agents/keyed/calls/"+mine, nil, http.StatusOK, &traces)
	if len(traces.Traces) < 2 || !traces.Traces[0].Sent || !strings.Contains(traces.Traces[0].Body, "what the owner asked") {
		t.Errorf("the API shows %+v", traces)
	}
	bea.Must(http.MethodGet, "/agents/keyed/owner/calls/"+mine, nil, http.StatusForbidden)
	p.Operator(t, "root-op").Must(http.MethodGet, "/agents/keyed/owner/calls/"+mine, nil, http.StatusForbidden)
}

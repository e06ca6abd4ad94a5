package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// nobody is an address of the portal's own machine at which nothing listens.
const nobody = "127.0.0.1:1"

// The first page of an operator stores nothing if one of its parts is wrong, says why, and shows again what was typed.
func TestWelcome_StoresNothingUntilAllIsRight(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	op := p.Operator(t, "op")
	llm := agenttest.NewOpenAIServer(t)
	before := op.Must(http.MethodGet, "/api/v1/settings", nil, http.StatusOK).Body
	for name, tt := range map[string]struct {
		model, address, portal string
		want                   []string
	}{
		"model without a name":  {"", nobody + "/v1", "", []string{"write the name that the server knows"}},
		"name without address":  {"nope", "", "", []string{"write the base of the API"}},
		"dead model and portal": {"nope", nobody + "/v1", "no such host", []string{"could not be reached"}},
		"no host of a portal":   {"echo-1", llm.Base(agenttest.Echo), "no such host", []string{"write the portal"}},
		"model not listed":      {"nope", llm.Base(agenttest.Echo), "", []string{"does not list it, but echo-1, echo-2"}},
		"no API":                {"nope", llm.URL, "", []string{"HTTP 400"}},
		"dead portal":           {"echo-1", llm.Base(agenttest.Echo), nobody, []string{nobody}},
	} {
		a := op.Do(http.MethodPost, "/admin/welcome", form("name", "Typed name", "contact", "typed@portal.example",
			"model_url", tt.address, "model", tt.model, "key", "sk-typed", "url", tt.portal))
		if a.Status < 400 || a.Status == http.StatusInternalServerError {
			t.Errorf("%s: %d", name, a.Status)
		}
		for _, want := range append(tt.want, "Nothing is saved yet.", "Typed name", "typed@portal.example", tt.address,
			tt.model, tt.portal, "Type it once more") {
			if !strings.Contains(a.Body, want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
		if strings.Contains(a.Body, "sk-typed") {
			t.Errorf("%s: the page has the key", name)
		}
		if got := op.Must(http.MethodGet, "/api/v1/settings", nil, http.StatusOK).Body; got != before {
			t.Errorf("%s: the settings are now %s", name, got)
		}
		for path, list := range map[string]string{"/api/v1/models": `"models":[]`, "/api/v1/peers": `"peers":[]`} {
			if got := op.Must(http.MethodGet, path, nil, http.StatusOK).Body; !strings.Contains(got, list) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// A portal without an operator says how there will be one, in the place of a login that leads nowhere.
func TestAdmin_SaysHowThereWillBeAnOperator(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	a := p.Guest(t).Must(http.MethodGet, "/admin", nil, http.StatusForbidden)
	if !strings.Contains(a.Body, "no operator yet. Open the link that it printed when it started") {
		t.Errorf("the page says %s", a.Body)
	}
	p.Operator(t, "op")
	if to := p.Guest(t).Must(http.MethodGet, "/admin", nil, http.StatusSeeOther).Header.Get("Location"); to != "/login?next=%2Fadmin" {
		t.Errorf("later it leads to %q", to)
	}
}

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// portalState is what the first page of an operator can change.
type portalState struct {
	name, accounts, contact string
	models, portals         int
}

// stateOf reads it by the API.
func stateOf(op *apptest.Client) (s portalState) {
	var settings struct {
		Settings []struct{ Name, Value string }
	}
	op.Get(http.MethodGet, "/api/v1/settings", nil, http.StatusOK, &settings)
	for _, x := range settings.Settings {
		switch x.Name {
		case "name":
			s.name = x.Value
		case "accounts":
			s.accounts = x.Value
		case "contact":
			s.contact = x.Value
		}
	}
	var models struct{ Models []struct{ Name string } }
	op.Get(http.MethodGet, "/api/v1/models", nil, http.StatusOK, &models)
	var peers struct{ Peers []struct{ ID string } }
	op.Get(http.MethodGet, "/api/v1/peers", nil, http.StatusOK, &peers)
	s.models, s.portals = len(models.Models), len(peers.Peers)
	return s
}

// TestOperator_FirstPageIsSkippable leaves out the first page, then fills in one step at a time: each changes its own
// thing and nothing else. A step that fails says why, keeps what was typed and leaves nothing behind.
func TestOperator_FirstPageIsSkippable(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	for _, name := range accountScreens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, other := apptest.Start(t), apptest.Start(t)
			b := visit(t, root, p, screens[name])
			b.allow("400 (Bad Request)", "503 (Service Unavailable)", "409 (Conflict)")
			b.open("/signup?setup=" + p.Setup)
			b.fill("#name", "op")
			b.fill("#password", apptest.Password)
			b.press("main form button")
			if got := b.path(); got != "/admin/welcome" {
				t.Fatalf("the one-time link leads to %s", got)
			}
			if !eval[bool](b, fits) {
				t.Error("the first page is wider than the screen")
			}
			b.shot("operator-welcome-"+name, true)
			op := p.LogIn(t, "op")
			want := stateOf(op)
			is := func(step string) {
				t.Helper()
				if got := stateOf(op); got != want {
					t.Errorf("%s: %+v, want %+v", step, got, want)
				}
			}
			b.press(`main a[href="/admin"].button`)
			if got := b.path(); got != "/admin" {
				t.Errorf("Skip leads to %s", got)
			}
			is("skipped")
			save := func(step string, fill func()) {
				t.Helper()
				b.open("/admin/welcome")
				if fill != nil {
					fill()
				}
				b.press(`form[action="/admin/welcome"] button`)
				if got := b.path(); got != "/admin" {
					t.Errorf("%s leads to %s", step, got)
				}
				is(step)
			}
			fails := func(id, text string) {
				t.Helper()
				b.press(`form[action="/admin/welcome"] button`)
				b.wrong(id)
				b.holds("#"+id, text)
				is("with a mistake in " + id)
			}
			save("nothing", nil)
			want.name = "Agora"
			save("the name", func() { b.fill("#name", "Agora") })
			want.accounts = "invite"
			save("who may sign up", func() { b.choose("#accounts", "invite") })
			want.contact = "ops@portal.example"
			save("the contact", func() { b.fill("#contact", "ops@portal.example") })

			b.open("/admin/welcome")
			b.holds("#name", "Agora")
			b.holds("#contact", "ops@portal.example")
			b.fill("#model_url", "not an address")
			b.fill("#model", "story-1")
			b.fill("#contact", "typed@portal.example")
			fails("model_url", "not an address")
			b.holds("#contact", "typed@portal.example")
			b.says("Nothing is saved yet.")
			want.models++
			base := newModel(t).base()
			save("the model", func() {
				b.fill("#model_url", base)
				b.fill("#model", "story-1")
			})
			b.open("/agents/assistant") // it is there as soon as the portal has a model
			b.says("Assistant")
			b.open("/admin/welcome")
			if eval[bool](b, `Boolean(document.getElementById("model_url"))`) {
				t.Error("the first page asks for a model that the portal has")
			}
			gone := strings.TrimPrefix(nowhere(t), "http://")
			b.fill("#url", gone)
			fails("url", gone)
			want.portals++
			save("another portal", func() { b.fill("#url", strings.TrimPrefix(other.URL(), "http://")) })
			b.clean("the first page")
		})
	}
}

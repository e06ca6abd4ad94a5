package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/adjust"
	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// Settings that an operator stored apply at the next start, also one for which the database is opened anew, unless a
// flag is given.
func TestSettings_StoredOnesApplyAfterARestart(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	op := p.Operator(t, "op")
	op.Must(http.MethodPost, "/admin/settings", form("name", "Harbour of tests", "contact", "ops@harbour.example",
		"accounts", "closed", "guests", "on", "limits", "disk-free=3M", "confirm", apptest.Password), http.StatusOK)
	p.Stop()
	again := apptest.Start(t, func(c *app.Config) { c.Data = p.Dir })
	if page := again.Guest(t).Must(http.MethodGet, "/", nil, http.StatusOK).Body; !strings.Contains(page, "Harbour of tests") {
		t.Error("the page does not have the stored name")
	}
	page := again.LogIn(t, "op").Must(http.MethodGet, "/admin/settings", nil, http.StatusOK).Body
	for _, want := range []string{"ops@harbour.example", "disk-free=3M"} {
		if !strings.Contains(page, want) {
			t.Errorf("the settings lack %s", want)
		}
	}
	again.Stop()
	fixed := apptest.Start(t, func(c *app.Config) {
		c.Data, c.Name, c.Given = p.Dir, "Name of a flag", map[string]string{adjust.Name: "--name"}
	})
	if page := fixed.Guest(t).Must(http.MethodGet, "/", nil, http.StatusOK).Body; !strings.Contains(page, "Name of a flag") {
		t.Error("the stored name wins over the flag")
	}
}

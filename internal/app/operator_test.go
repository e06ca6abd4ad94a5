package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/adjust"
	"agentsite/internal/app"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

type settingsAnswer struct {
	Settings []struct {
		Name     string
		Value    string
		FixedBy  string `json:"fixed_by"`
		Previous *string
		Pending  bool
	}
}

// An operator's token changes settings by the API, with the password, and a flag wins.
func TestSettings_ChangeByTheAPI(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) {
		c.Contact, c.Given = "ops@portal.example", map[string]string{adjust.Contact: "--contact"}
	})
	op := p.Operator(t, "op")
	token := op.NewToken("admin")
	change := func(name, value, password string) map[string]any {
		return map[string]any{"settings": map[string]string{name: value}, "password": password}
	}
	const at = "/api/v1/settings"
	for _, c := range []struct {
		body map[string]any
		want string
	}{
		{change("accounts", "closed", ""), "password"},
		{change("accounts", "closed", "not the password"), "password"},
		{change("accounts", "somebody", apptest.Password), "accounts"},
		{change("contact", "me@elsewhere.example", apptest.Password), "--contact"},
		{change("listen", ":80", apptest.Password), "settings"},
	} {
		if got := token.Must(http.MethodPatch, at, c.body, http.StatusBadRequest).Body; !strings.Contains(got, c.want) {
			t.Errorf("%v: %s", c.body, got)
		}
	}
	read := func() (values map[string]string, fixed string) {
		var out settingsAnswer
		token.Get(http.MethodGet, at, nil, http.StatusOK, &out)
		values = make(map[string]string)
		for _, s := range out.Settings {
			values[s.Name] = s.Value
			if s.FixedBy != "" {
				fixed += s.Name + " by " + s.FixedBy
			}
		}
		return values, fixed
	}
	before, fixed := read()
	if before["accounts"] != "open" || fixed != "contact by --contact" || before["contact"] != "ops@portal.example" {
		t.Errorf("%v, fixed %s", before, fixed)
	}
	token.Must(http.MethodPatch, at, change("accounts", "closed", apptest.Password), http.StatusOK)
	if now, _ := read(); now["accounts"] != "closed" {
		t.Errorf("%v", now)
	}
	token.Must(http.MethodPost, at+"/accounts/undo", map[string]any{"password": "wrong"}, http.StatusBadRequest)
	token.Must(http.MethodPost, at+"/accounts/undo", map[string]any{"password": apptest.Password}, http.StatusOK)
	if now, _ := read(); now["accounts"] != "open" {
		t.Errorf("%v", now)
	}
	// A name applies at once, on pages and in what programs read.
	shows := func(name string) {
		t.Helper()
		for _, at := range []string{"/", "/nodeinfo/2.1", "/.well-known/ai-catalog.json", "/agents/feed"} {
			if got := op.Must(http.MethodGet, at, nil, http.StatusOK).Body; !strings.Contains(got, name) {
				t.Errorf("%s does not say %s: %.300s", at, name, got)
			}
		}
	}
	token.Must(http.MethodPatch, at, change("name", "Agora Nova", apptest.Password), http.StatusOK)
	shows("Agora Nova")
	token.Must(http.MethodPost, at+"/name/undo", map[string]any{"password": apptest.Password}, http.StatusOK)
	shows(strings.TrimPrefix(p.URL(), "http://"))
	token.Must(http.MethodPost, at+"/guests/undo", map[string]any{"password": apptest.Password}, http.StatusNotFound)
}

// The overview and the API show a report that waits until it is closed, and count failed tasks.
func TestOverview_ShowsWhatWaitsAndFailures(t *testing.T) {
	t.Parallel()
	far := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	op, ann := p.Operator(t, "op"), p.User(t, "ann")
	name := ann.Agent("public", far.Base(agenttest.Garbage))
	if page := op.Must(http.MethodGet, "/admin", nil, http.StatusOK).Body; strings.Contains(page, "about an agent waits") {
		t.Error("a report waits before it is made")
	}
	ann.Must(http.MethodPost, "/api/v1/agents/calc/report", map[string]any{"reason": "broken", "text": "It is slow."},
		http.StatusNoContent)
	page := op.Must(http.MethodGet, "/admin/people", nil, http.StatusOK).Body
	if !strings.Contains(page, ", 1 matter waits") {
		t.Error("no tab has the count")
	}
	var waits struct {
		Matters []struct{ Area, Text, Href string }
	}
	find := func() (href string) {
		op.Get(http.MethodGet, "/api/v1/attention", nil, http.StatusOK, &waits)
		for _, m := range waits.Matters {
			if m.Area == "reports" {
				href = m.Href
			}
		}
		return href
	}
	if href := find(); href != "/admin/reports" {
		t.Errorf("the report leads to %q in %+v", href, waits)
	}
	_, id, _ := strings.Cut(op.Must(http.MethodGet, "/admin/reports", nil, http.StatusOK).Body, "/admin/reports/")
	id, _, _ = strings.Cut(id, "/")
	op.Must(http.MethodPost, "/admin/reports/"+id+"/close", form("outcome", "Seen."), http.StatusSeeOther)
	if href := find(); href != "" {
		t.Error("the closed report still waits")
	}
	var days struct {
		Days []struct {
			Day     string
			Figures map[string]int64
		}
	}
	read := func() map[string]int64 {
		op.Get(http.MethodGet, "/api/v1/figures?days=1", nil, http.StatusOK, &days)
		if len(days.Days) != 1 {
			t.Fatalf("%+v", days)
		}
		return days.Days[0].Figures
	}
	before := read()
	if before["people"] != 2 || before["disk"] == 0 || before["errors"] != 0 {
		t.Errorf("figures %v", before)
	}
	room := ann.Conversation(name)
	said := ann.Say(room, "hello")
	if end := ann.Events(room).Answered(said.Tasks[0].ID); end.Task.State != "failed" {
		t.Errorf("the task ended %s", end.Task.State)
	}
	if now := read(); now["errors"] != 1 || now["messages"] == 0 {
		t.Errorf("figures %v", now)
	}
	op.Must(http.MethodGet, "/api/v1/figures?days=0", nil, http.StatusBadRequest)
	if page := op.Must(http.MethodPost, "/admin/examine", form(), http.StatusOK).Body; !strings.Contains(page, "The same as a table") {
		t.Error("the overview has no table")
	}
}

package e2e

import (
	"net/http"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestVersions_DiffAndBack edits an agent, reads what that changed and goes
// back.
func TestVersions_DiffAndBack(t *testing.T) {
	root := needBrowser(t)
	t.Parallel()
	p := apptest.Start(t)
	far := newModel(t).answers(func(string) []string { return []string{"Yes."} })
	ada := p.User(t, "ada")
	text := "Reads invoices.\n\nIt keeps nothing.\n\nIt reads German.\n\nAsk in your own words.\n\nFiles up to 20 MB.\n\nIt says so when it is unsure."
	register(ada, registration{Name: "reader", Title: "Reader", Description: text, Endpoint: far.base(), Skills: []skill{{ID: "read", Name: "Read", Description: "Any layout."}}})
	ada.Must(http.MethodPatch, "/api/v1/agents/reader", map[string]any{"title": "Invoice reader", "description": "Reads invoices.\n\nIt keeps nothing.\n\nIt reads German and French.\n\nAsk in your own words.\n\nFiles up to 20 MB.\n\nIt says so when it is unsure.",
		"skills": []skill{{ID: "read", Name: "Read", Description: "Any layout."}, {ID: "dun", Name: "Remind", Description: "Writes a friendly reminder."}}}, http.StatusOK)
	ada.Must(http.MethodPatch, "/api/v1/agents/reader", map[string]any{"config": map[string]string{"model": "story-2"}}, http.StatusOK)

	b := visit(t, root, p, screen{width: 1280, height: 900}) // works without scripts
	b.open("/agents/reader")
	b.press(`a[href="/agents/reader/versions"]`)
	b.says("Changed title, description, skill dun")
	b.look("versions-list")
	b.press(`a[href="/agents/reader/versions/2"]`)
	b.says("Invoice reader")
	for kind, want := range map[string]string{"removed": "It reads German.", "added": "It reads German and French."} {
		b.until(kind, `[...document.querySelectorAll(".diff-`+kind+`")].some((l) => l.querySelector("del, ins").innerText === `+js(want)+` && l.querySelector(".visually-hidden").innerText.includes("`+kind+`"))`)
	}
	b.until("what is far from a change is left out", `[...document.querySelectorAll(".diff-left")].some((l) => l.innerText.includes("lines as before"))`)
	b.look("version-diff")
	if eval[bool](b, `!!document.querySelector('form[action$="/rollback"]')`) {
		t.Error("a visitor is offered to go back")
	}
	b.open("/agents/reader/versions/latest")
	b.says("Version 3")
	b.says("Nothing that you may see") // the model's name is a setting

	a := visit(t, root, p, desk).as(ada)
	a.open("/agents/reader/versions/3")
	a.says("Setting model")
	a.until("no way back to what it is", `!document.querySelector('form[action$="/rollback"]')`)
	a.open("/agents/reader/versions/1")
	a.look("version-first")
	a.press(`form[action="/agents/reader/rollback"] button`)
	a.says("It is as it was then")
	a.says("Back to version 1")
	a.open("/agents/reader")
	a.until("the old title", `document.querySelector("h1").innerText === "Reader"`)
	var v struct {
		Version int
		Note    string
		Changes []struct{ Field, Before, After string }
	}
	ada.Get(http.MethodGet, "/api/v1/agents/reader/versions/latest", nil, http.StatusOK, &v)
	if v.Version != 4 || len(v.Changes) == 0 || v.Changes[0].Field != "Title" || v.Changes[0].After != "Reader" {
		t.Errorf("the API says %+v", v)
	}
	// Who looked at version 1 before somebody else changed it is told.
	ada.Must(http.MethodPost, "/api/v1/agents/reader/rollback", map[string]int{"version": 2, "base": 3}, http.StatusConflict)
	ada.Must(http.MethodPost, "/api/v1/agents/reader/rollback", map[string]int{"version": 2, "base": 4}, http.StatusOK)
	p.Guest(t).Must(http.MethodGet, "/api/v1/agents/reader/versions/99", nil, http.StatusNotFound)
}

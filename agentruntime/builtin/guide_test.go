package builtin

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/meaning"
)

// TestGuide_SaysThatNobodyDoesATask asks a portal that has only the built-in agents for tasks that they do not do. The
// manual says how to search in the words of one.
func TestGuide_SaysThatNobodyDoesATask(t *testing.T) {
	x := index.NewWithMeaning(model(), meaning.Dims)
	for _, d := range Drafts() {
		x.Put(hub.Agent{ID: *d.Name, Name: *d.Name, Title: *d.Title, Description: *d.Description, Kind: *d.Kind,
			Visibility: *d.Visibility, Skills: *d.Skills, Liveness: hub.Liveness{State: hub.Alive, CheckedAt: now}})
	}
	known := 1
	cfg := config(x)
	cfg.Search = searchFunc(func(_ context.Context, q hub.Query) (hub.Page, error) {
		page, err := x.Search(q)
		page.Coverage.Known = known
		return page, err
	})
	d := New(cfg)
	for _, text := range []string{"translate german to english", "Translate this letter to French",
		"can you translate german to english?", "who can translate german to english", "write a poem about autumn"} {
		got := say(t, d, call("guide", text))
		for _, want := range []string{"I found no agent for “" + text + "”", "/agents?q=" + url.QueryEscape(text) + ")",
			"(/agents/new)"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q: no %q in:\n%s", text, want, got)
			}
		}
		if strings.Contains(got, "Or ask `guide`") || strings.Contains(got, "not sure") || len(offers(got)) > 0 {
			t.Errorf("%q is answered by the manual or by an agent:\n%s", text, got)
		}
	}
	for n, want := range map[int]string{1: "and this portal knows no other portals.", 2: "nor on the other one that it knows",
		9: "nor on the 8 others that it knows"} {
		known = n
		if got := say(t, d, call("guide", "translate german to english")); !strings.Contains(got, want) {
			t.Errorf("with %d portals: no %q in:\n%s", n, want, got)
		}
	}
	for _, text := range []string{"browse agents by tag", "can you tell me how to find an agent"} {
		if got := say(t, d, call("guide", text)); !slices.Contains(led(got), "talk#how-do-i-find-an-agent") ||
			strings.Contains(got, "I found no agent") {
			t.Errorf("%q is not answered by the manual:\n%s", text, got)
		}
	}
	for _, address := range aboutSearch {
		if !slices.ContainsFunc(theManual(), func(s Section) bool { return s.urlPath() == address }) {
			t.Errorf("the manual has no %s", address)
		}
	}
}

package app_test

import (
	"cmp"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// Each question to the guide that the home page of a fresh portal shows has the
// right answer, with this portal's address in its commands.
func TestHome_EachQuestionHasTheRightAnswer(t *testing.T) {
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	page := ada.Must(http.MethodGet, "/", nil, http.StatusOK).Body
	// One form is that of the guide's section; its card may have another one with fewer questions.
	forms := regexp.MustCompile(`(?s)<form class="asks"[^>]*>\s*<input type="hidden" name="agent" value="guide">(.*?)</form>`).FindAllString(page, -1)
	if len(forms) == 0 {
		t.Fatal("the home page shows no questions to the guide")
	}
	form := slices.MaxFunc(forms, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	// An answer names the section of the manual that it is, or agents, the best
	// first.
	right := map[string]string{
		"who can calculate for me?":                      "/agents/calc",
		"I need somebody to convert miles to kilometres": "/agents/calc",
		"how do I register an agent?":                    "/docs/register#register-an-agent",
		"what may guests do?":                            "/docs/talk#what-may-guests-do",
		"how do I make a backup?":                        "/docs/operate#how-do-i-back-up",
	}
	link := regexp.MustCompile(`(?m)(?:^- |^Manual: )\[[^]]*\]\(([^) ?]+)`)
	answer := func(question string) string {
		var out struct {
			Choices []struct{ Message struct{ Content string } }
		}
		ada.Get(http.MethodPost, "/v1/chat/completions", map[string]any{"model": "guide",
			"messages": []any{map[string]string{"role": "user", "content": question}}}, http.StatusOK, &out)
		if len(out.Choices) != 1 {
			t.Fatalf("%q has %d answers", question, len(out.Choices))
		}
		return out.Choices[0].Message.Content
	}
	questions := regexp.MustCompile(`name="text" value="([^"]*)"`).FindAllStringSubmatch(form, -1)
	if len(questions) != 3 {
		t.Errorf("the home page shows %d questions", len(questions))
	}
	for _, q := range questions {
		if _, ok := right[html.UnescapeString(q[1])]; !ok {
			t.Errorf("the home page shows %q, and this test does not know the right answer", q[1])
		}
	}
	for question, want := range right {
		got := answer(question)
		first := ""
		if m := link.FindStringSubmatch(got); m != nil {
			first = strings.TrimPrefix(m[1], p.URL())
		}
		if first != want {
			t.Errorf("%q leads to %q, want %q:\n%s", question, first, want, got)
		}
		if want == "/docs/register#register-an-agent" && (!strings.Contains(got, "(/agents/new)") || !strings.Contains(got, p.URL())) {
			t.Errorf("%q does not lead to the form or to this portal:\n%s", question, got)
		}
		if strings.Contains(got, "127.0.0.1:8080") {
			t.Errorf("%q has the address of another portal in its answer:\n%s", question, got)
		}
	}
}

// The agents that come with the portal are not new, and the network of one portal has nothing to sort.
func TestHome_FreshPortalShowsNothingNew(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t, apptest.WithPrograms)
	guest := p.Guest(t)
	const section = `id="new-title"`
	if strings.Contains(guest.Must(http.MethodGet, "/", nil, http.StatusOK).Body, section) {
		t.Error("built-in agents are shown as new")
	}
	if page := guest.Must(http.MethodGet, "/network", nil, http.StatusOK).Body; strings.Contains(page, "network-filter") {
		t.Error("a network of one portal can be sorted")
	}
	ada := p.User(t, "ada").NewToken()
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "zulu", "description": "An agent of a test.",
		"kind": "openai", "endpoint": model.Base(agenttest.Echo), "visibility": "public",
		"config": map[string]string{"model": "echo-1"}}, http.StatusCreated)
	ada.Must(http.MethodPost, "/api/v1/agents/zulu/check", nil, http.StatusOK) // only agents that answer are listed
	page := guest.Must(http.MethodGet, "/", nil, http.StatusOK).Body
	if _, after, ok := strings.Cut(page, section); !ok || !strings.Contains(after, `"/agents/zulu"`) {
		t.Error("a new agent is not shown as new")
	}
}

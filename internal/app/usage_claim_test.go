package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/openai"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/usage"
)

// The cost that another portal states for an answer stands below the answer, as its claim, and in no sum of this portal.
func TestUsage_CostsOfOtherPortalsAreClaims(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, usage.PricesFile), []byte(`{"currency":"EUR","models":{"m":{"input":1,"output":2}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	known := &yellow{}
	b := apptest.Start(t, func(c *app.Config) { app.Found(c, &yellow{}); c.Data = dir })
	a := apptest.Start(t, func(c *app.Config) { app.Found(c, known) })
	if err := a.Greet(t.Context(), b.URL()); err != nil {
		t.Fatal(err)
	}
	model := agenttest.NewOpenAIServer(t)
	model.Script(func(int, openai.ChatRequest) agenttest.Turn {
		return agenttest.Turn{Text: "hello", Usage: &openai.Usage{PromptTokens: 1000, CompletionTokens: 500, TotalTokens: 1500}}
	})
	bob := b.User(t, "bob")
	name := helper(bob, model)
	known.put(b.NetworkID(), b.Host, name)
	ada := a.User(t, "ada")
	talk := ada.Conversation(name + "@" + b.Host)
	ada.Socket(talk).Answered(ada.Say(talk, "hi").Tasks[0].ID)
	var list struct {
		Messages []struct {
			Kind   string
			Sender struct{ Kind string }
			Parts  []task.Part
		}
	}
	token := ada.NewToken()
	token.Get(http.MethodGet, "/api/v1/conversations/"+talk+"/messages", nil, http.StatusOK, &list)
	want := task.Claim{InputTokens: 1000, OutputTokens: 500, Cost: "0.002000", Currency: "EUR"}
	for _, m := range list.Messages {
		if m.Sender.Kind != "agent" {
			continue
		}
		if c, ok := m.Parts[0].Claim(); !ok || c != want {
			t.Errorf("the answer has %+v, %s", c, m.Parts[0].Metadata)
		}
	}
	if page := ada.Must(http.MethodGet, "/chat/"+talk, nil, http.StatusOK).Body; !strings.Contains(page, "Its server says that this cost <bdi>0.002 EUR, 1,500 tokens</bdi>.") {
		t.Error("the page does not show the claim")
	}
	for who, want := range map[*apptest.Client]int{token: 0, bob.NewToken(): 1} {
		var r struct{ Total struct{ Calls int } }
		of := "me"
		if want == 1 {
			of = "agents"
		}
		who.Get(http.MethodGet, "/api/v1/usage?of="+of, nil, http.StatusOK, &r)
		if r.Total.Calls != want {
			t.Errorf("%s: %d calls are counted, want %d", of, r.Total.Calls, want)
		}
	}
	// A program gets the statement if it asks for the extension, and not otherwise.
	send := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hi"}]}}}`
	for _, asks := range []bool{true, false} {
		got := bob.NewToken().Must(http.MethodPost, "/agents/"+name+"/a2a", send, http.StatusOK, func(r *http.Request) {
			if asks {
				r.Header.Set("A2A-Extensions", "https://agentsite.dev/ext/cost/v1")
			}
		}).Body
		if strings.Contains(got, `"https://agentsite.dev/ext/cost/v1":{"input_tokens":1000,"output_tokens":500,"cost":"0.002000","currency":"EUR"}`) != asks {
			t.Errorf("asked %v: %s", asks, got)
		}
	}
}

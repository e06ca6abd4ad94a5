package app_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"agentsite/internal/app/apptest"
)

// TestUses_WorkAsShown does what an agent's page says to programs, with
// nothing but what stands there.
func TestUses_WorkAsShown(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	page := html.UnescapeString(string(ada.Must(http.MethodGet, "/agents/calc", nil, http.StatusOK).Body))
	caller := ada.NewToken()

	ask := regexp.MustCompile(`curl -s (http://[^ ]+/v1)(/chat/completions) [^']*-d '([^']+)'`).FindStringSubmatch(page)
	if ask == nil || ask[1] != p.URL()+"/v1" {
		t.Fatalf("no command for OpenAI clients: %q", ask)
	}
	var said struct {
		Choices []struct{ Message struct{ Content string } }
	}
	body := json.RawMessage(strings.Replace(ask[3], "Hello", "2+2", 1))
	caller.Get(http.MethodPost, "/v1"+ask[2], body, http.StatusOK, &said)
	if len(said.Choices) != 1 || !strings.Contains(said.Choices[0].Message.Content, "4") {
		t.Errorf("it says %+v", said)
	}

	at := regexp.MustCompile(regexp.QuoteMeta(p.URL()) + `(/agents/calc/\S+\.json)\b`).FindStringSubmatch(page)
	if at == nil {
		t.Fatal("no address of a card")
	}
	var card struct{ Name string }
	caller.Get(http.MethodGet, at[1], nil, http.StatusOK, &card)
	if card.Name == "" {
		t.Error("the card has no name")
	}
}

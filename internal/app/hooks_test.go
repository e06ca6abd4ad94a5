package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// delivery is one request to a receiver, whose signature was looked at.
type delivery struct {
	Type string
	Data struct {
		TaskID         string `json:"task_id"`
		State, Text    string
		Agent          string
		ConversationID string `json:"conversation_id"`
		Seq            int64
		Sender         struct{ Kind, Handle string }
	}
}

// receiver is where webhooks go. It takes what is signed with the secret that
// is put into the channel first.
func receiver(t *testing.T, secret <-chan string) (address string, got <-chan delivery) {
	t.Helper()
	out := make(chan delivery, 100)
	key := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case key = <-secret:
		default:
		}
		b, _ := io.ReadAll(r.Body)
		raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
		mac := hmac.New(sha256.New, raw)
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), b)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var d delivery
		if err := json.Unmarshal(b, &d); err != nil {
			t.Error(err)
		}
		out <- d
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hook", out
}

func next(t *testing.T, got <-chan delivery) delivery {
	t.Helper()
	select {
	case d := <-got:
		return d
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing comes")
		return delivery{}
	}
}

// TestHooks_FromThePageToTheReceiver walks the page as somebody without
// scripts.
func TestHooks_FromThePageToTheReceiver(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	ada.Meets(bob)
	key := make(chan string, 1)
	address, got := receiver(t, key)

	page := ada.Must(http.MethodGet, "/account", nil, http.StatusOK)
	if !strings.Contains(page.Body, `href="/account/webhooks"`) {
		t.Error("the account page does not lead there")
	}
	page = ada.Must(http.MethodPost, "/account/webhooks", form("url", "nowhere", "label", "my <b>bot</b>"), http.StatusBadRequest)
	if !strings.Contains(page.Body, `value="nowhere"`) || !strings.Contains(page.Body, "my &lt;b&gt;bot") || !strings.Contains(page.Body, "choose at least one") {
		t.Error("what was typed is not there with what is wrong")
	}
	page = ada.Must(http.MethodPost, "/account/webhooks", form("url", address, "label", "my <b>bot</b>", "events", "task.ended", "events", "message.said", "events", "agent.registered"), http.StatusOK)
	secret := html.UnescapeString(regexp.MustCompile(`whsec_[A-Za-z0-9+/=&#;]+`).FindString(page.Body))
	if secret == "" {
		t.Fatal("the secret is not shown")
	}
	key <- p.Canary(secret) // from now on nowhere
	var list struct {
		Webhooks []struct{ ID, URL, State string }
	}
	ada.Get(http.MethodGet, "/api/v1/webhooks", nil, http.StatusOK, &list)
	id := list.Webhooks[0].ID

	if a := ada.Must(http.MethodPost, "/account/webhooks/"+id+"/test", form(), http.StatusSeeOther); a.Header.Get("Location") != "/account/webhooks?done=tested#hook-"+id {
		t.Error(a.Header)
	}
	if d := next(t, got); d.Type != "webhook.test" {
		t.Errorf("%+v", d)
	}
	room := ada.Conversation("bob")
	bob.Say(room, "Good morning.")
	if d := next(t, got); d.Type != "message.said" || d.Data.Text != "Good morning." || d.Data.Sender.Handle != "bob" || d.Data.ConversationID != room {
		t.Errorf("%+v", d)
	}
	said := ada.Say(ada.Conversation("calc"), "6*7")
	for _, want := range []string{"message.said", "task.ended"} {
		if d := next(t, got); d.Type != want || !strings.Contains(d.Data.Text, "42") || want == "task.ended" && (d.Data.TaskID != said.Tasks[0].ID || d.Data.State != "completed") {
			t.Errorf("%+v, want %s", d, want)
		}
	}
	name := ada.NewToken()
	name.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "dialer", "description": "Dials in.", "kind": "link", "visibility": "public"}, http.StatusCreated)
	if d := next(t, got); d.Type != "agent.registered" || d.Data.Agent != "dialer" {
		t.Errorf("%+v", d)
	}

	// Paused it is told nothing, and nothing afterwards of that time.
	ada.Must(http.MethodPost, "/account/webhooks/"+id+"/active", form("active", "no"), http.StatusSeeOther)
	bob.Say(room, "Unheard.")
	ada.Must(http.MethodPost, "/account/webhooks/"+id+"/active", form("active", "yes"), http.StatusSeeOther)
	bob.Say(room, "Heard.")
	if d := next(t, got); d.Data.Text != "Heard." {
		t.Errorf("%+v", d)
	}
	var sent struct {
		Deliveries []struct {
			Type   string
			Status int
			Error  string
		}
	}
	ada.Get(http.MethodGet, "/api/v1/webhooks/"+id+"/deliveries?limit=50", nil, http.StatusOK, &sent)
	if n := len(sent.Deliveries); n < 5 || sent.Deliveries[n-1].Type != "webhook.test" || sent.Deliveries[n-1].Status != 200 {
		t.Errorf("%+v", sent)
	}
	page = ada.Must(http.MethodGet, "/account/webhooks", nil, http.StatusOK)
	if !strings.Contains(page.Body, "Last deliveries") || !strings.Contains(page.Body, "taken, status 200") || strings.Contains(page.Body, "<b>bot") {
		t.Error(page.Body)
	}
	ada.Must(http.MethodPost, "/account/webhooks/"+id+"/delete", form(), http.StatusSeeOther)
	ada.Must(http.MethodGet, "/api/v1/webhooks/"+id, nil, http.StatusNotFound)
}

func TestHooks_SayWhatWentWrong(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada").NewToken()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(map[string]int{"/moved": 302, "/broken": 500}[r.URL.Path])
		fmt.Fprint(w, "the far side's own words")
	}))
	t.Cleanup(s.Close)
	for at, want := range map[string]string{s.URL + "/moved": "redirects are not followed", s.URL + "/broken": "status 500", "http://127.0.0.1:2/x": "connection refused"} {
		var hook struct{ ID, Secret string }
		ada.Get(http.MethodPost, "/api/v1/webhooks", map[string]any{"url": at, "events": []string{"task.ended"}}, http.StatusCreated, &hook)
		if !strings.HasPrefix(hook.Secret, "whsec_") {
			t.Errorf("%+v", hook)
		}
		a := ada.Must(http.MethodPost, "/api/v1/webhooks/"+hook.ID+"/test", nil, http.StatusOK)
		if !strings.Contains(a.Body, want) || strings.Contains(a.Body, "own words") {
			t.Errorf("%s: %s", at, a.Body)
		}
	}
	a := ada.Must(http.MethodPost, "/api/v1/webhooks", map[string]any{"url": "https://example.org", "events": []string{"everything"}, "secret": "mine"}, http.StatusBadRequest)
	if a.Fields()["secret"] == "" {
		t.Errorf("%s", a.Body)
	}
	a = ada.Must(http.MethodPost, "/api/v1/webhooks", map[string]any{"url": "https://example.org", "events": []string{"everything"}}, http.StatusBadRequest)
	if !strings.Contains(a.Fields()["events"], "task.ended") {
		t.Errorf("%s", a.Body)
	}
}

// Whatever form an address is written in, a webhook and a push notification
// reach nothing private of a portal that others can reach.
func TestHooks_ReachNothingPrivate(t *testing.T) {
	t.Parallel()
	x := newTrap(t, "")
	p := apptest.Start(t, func(c *app.Config) { c.URL = "http://portal.example" })
	makers := bearers(t, p, len(forms)/4+1)
	taken := 0
	for i, f := range forms {
		c := makers[i%len(makers)]
		var k struct{ Task struct{ ID string } }
		c.Get(http.MethodPost, "/agents/calc/a2a/message:send?A2A-Version=1.0", map[string]any{"message": map[string]any{"messageId": apptest.Fresh("m"), "role": "ROLE_USER", "parts": []any{map[string]any{"text": "1+1"}}}}, http.StatusOK, &k)
		for _, scheme := range []string{"http", "https"} {
			at := scheme + "://" + f + ":" + x.port + "/hook"
			a := c.Do(http.MethodPost, "/api/v1/webhooks", map[string]any{"url": at, "events": []string{"task.ended"}})
			if a.Status == http.StatusCreated {
				taken++
				var hook struct{ ID string }
				json.Unmarshal([]byte(a.Body), &hook)
				if a := c.Must(http.MethodPost, "/api/v1/webhooks/"+hook.ID+"/test", nil, http.StatusOK); !strings.Contains(a.Body, `"error"`) {
					t.Errorf("%s was told: %s", at, a.Body)
				}
				c.Must(http.MethodDelete, "/api/v1/webhooks/"+hook.ID, nil, http.StatusNoContent)
			} else if a.Status != http.StatusBadRequest || a.Fields()["url"] == "" {
				t.Errorf("%s: %d %s", at, a.Status, a.Body)
			}
			if a := c.Do(http.MethodPost, "/agents/calc/a2a/tasks/"+k.Task.ID+"/pushNotificationConfigs?A2A-Version=1.0", map[string]any{"id": "x", "url": at, "token": "t"}); a.Status != http.StatusOK && a.Status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", at, a.Status, a.Body)
			} else if a.Status == http.StatusOK && scheme == "http" {
				t.Errorf("%s goes without https", at)
			}
		}
	}
	if n := x.hits.Load(); n != 0 {
		t.Errorf("%d connections to private addresses: %q", n, x.seen)
	}
	if taken == 0 || taken > 20 {
		t.Errorf("%d of the forms look like names", taken)
	}
}

func TestHooks_GoByHTTPSUnlessTheNetworkIsAllowed(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.URL, c.AllowCIDR = "http://portal.example", "127.0.0.0/8" })
	c := bearers(t, p, 1)[0]
	for at, want := range map[string]int{"http://example.org/x": 400, "http://localhost/x": 400, "http://127.0.0.1:2/x": 201, "https://example.org/x": 201} {
		c.Must(http.MethodPost, "/api/v1/webhooks", map[string]any{"url": at, "events": []string{"task.ended"}}, want)
	}
}

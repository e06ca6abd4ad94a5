package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/pushtest"
	"agentsite/internal/webpush"
)

// pushService is a push service of our own. It gives each request to the test, which answers it with a status.
type pushService struct {
	*httptest.Server
	came   chan []byte
	answer chan int
}

func newPushService(t *testing.T) *pushService {
	s := &pushService{came: make(chan []byte, 10), answer: make(chan int, 10)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") == "" || r.Header.Get("Cookie") != "" || strings.Contains(string(body), "bob") {
			t.Errorf("%v: %v", err, r.Header)
		}
		s.came <- body
		w.WriteHeader(<-s.answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func allowLoopback(c *app.Config) { c.AllowCIDR = "127.0.0.0/8" }

// TestPush_NoticesReachTheBrowser turns notices on in one session. A mention reaches its push service, encrypted; the
// subscription ends when the service says that it is gone, and with the session.
func TestPush_NoticesReachTheBrowser(t *testing.T) {
	p := apptest.Start(t, allowLoopback)
	far := newPushService(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	bob.Meets(ada)
	room := bob.Conversation("ada")
	b := pushtest.New(t)
	subscribe := func(who *apptest.Client, texts string) {
		t.Helper()
		who.Must(http.MethodPost, "/account/push", form("endpoint", far.URL+"/one", "p256dh", b.P256dh(), "auth", b.Auth(), "texts", texts),
			http.StatusSeeOther)
	}
	get := func() (m webpush.Message) {
		t.Helper()
		plain, err := b.Open(<-far.came)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(plain, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	subscribe(ada, "")
	far.answer <- http.StatusCreated
	bob.Say(room, "@ada the secret plan")
	if m := get(); m.Body != "Someone mentioned you." || m.Href != "/notices" {
		t.Errorf("the browser shows %+v", m)
	}
	subscribe(ada, "on")
	ada.Must(http.MethodPost, "/api/v1/notices/read", map[string]any{"up_to": newestNotice(ada)}, http.StatusNoContent)
	far.answer <- http.StatusServiceUnavailable // the first attempt fails; the notice waits
	bob.Say(room, "@ada again")
	if m := get(); !strings.Contains(m.Body, "bob mentioned you") || !strings.HasPrefix(m.Href, "/chat/"+room) || strings.Contains(m.Body, "again") {
		t.Errorf("with texts the browser shows %+v", m)
	}
	if page := ada.Must(http.MethodGet, "/account", nil, http.StatusOK).Body; !strings.Contains(page, "Turn off in this browser") {
		t.Error("the page does not say that this browser gets notices")
	}
	// Subscribing anew forgets the failure; 410 ends the subscription.
	subscribe(ada, "")
	ada.Must(http.MethodPost, "/api/v1/notices/read", map[string]any{"up_to": newestNotice(ada)}, http.StatusNoContent)
	far.answer <- http.StatusGone
	bob.Say(room, "@ada once more")
	get()
	for strings.Contains(ada.Must(http.MethodGet, "/account", nil, http.StatusOK).Body, "Turn off in this browser") {
	}
	// Another session sees it, turns it off everywhere, and it ends with the session.
	subscribe(ada, "")
	other := p.LogIn(t, "ada")
	if page := other.Must(http.MethodGet, "/account", nil, http.StatusOK).Body; !strings.Contains(page, "Turn off everywhere (1)") ||
		strings.Contains(page, "Turn off in this browser") {
		t.Error("another session does not show the browser that gets notices")
	}
	other.Must(http.MethodPost, "/account/push/end", form("all", "on"), http.StatusSeeOther)
	if page := ada.Must(http.MethodGet, "/account", nil, http.StatusOK).Body; strings.Contains(page, "Turn off in this browser") {
		t.Error("notices are still on")
	}
	subscribe(other, "")
	other.Must(http.MethodPost, "/logout", form(), http.StatusSeeOther)
	if page := ada.Must(http.MethodGet, "/account", nil, http.StatusOK).Body; strings.Contains(page, "Turn off everywhere") {
		t.Error("the subscription outlives its session")
	}
}

func newestNotice(c *apptest.Client) string {
	var list struct {
		Notices []struct{ ID string }
	}
	c.Get(http.MethodGet, "/api/v1/notices", nil, http.StatusOK, &list)
	if len(list.Notices) == 0 {
		return ""
	}
	return list.Notices[0].ID
}

func TestPush_RefusesOthers(t *testing.T) {
	p := apptest.Start(t)
	ada, b := p.User(t, "ada"), pushtest.New(t)
	good := func(endpoint string) any { return form("endpoint", endpoint, "p256dh", b.P256dh(), "auth", b.Auth()) }
	for _, endpoint := range []string{"http://push.example/a", "http://127.0.0.1:1/", "ftp://push.example/", "file:///etc/passwd", "x", ""} {
		if got := ada.Must(http.MethodPost, "/account/push", good(endpoint), http.StatusBadRequest).Body; !strings.Contains(got, "cannot be used") {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
	if got := p.Guest(t).Do(http.MethodPost, "/account/push", good("https://push.example/a")); got.Status < 400 && got.Status != http.StatusSeeOther {
		t.Errorf("a guest gets %d", got.Status)
	}
	worker := p.Visitor(t).Must(http.MethodGet, "/push-worker.js", nil, http.StatusOK)
	if !strings.HasPrefix(worker.Header.Get("Content-Type"), "text/javascript") || !strings.Contains(worker.Body, `addEventListener("push"`) {
		t.Errorf("the worker is %v", worker.Header)
	}
}

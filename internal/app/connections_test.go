package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// One account opens as many sockets and streams as it may. More are refused with a sentence, others
// connect, and all end when the operator disables the account.
func TestConnections_OneAccountKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Limits = "sockets-per-account=3,streams-per-account=2" })
	greedy, other := p.User(t, "greedy"), p.User(t, "other")
	greedy.Meets(other)
	room := greedy.Conversation("other")
	var open []*apptest.Stream
	for range 3 {
		open = append(open, greedy.Socket(room))
	}
	for range 2 {
		open = append(open, greedy.Events(room))
	}
	token := greedy.NewToken()
	live := "/api/v1/conversations/" + room + "/live"
	for _, path := range []string{live, "/api/v1/live"} {
		for saying, header := range map[string][]string{
			"Your account has 3 sockets open already": {"Upgrade", "websocket", "Connection", "Upgrade",
				"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
			"Your account has 2 event streams open already": {"Accept", "text/event-stream"},
		} {
			// One account has one bound, at whatever address and with whatever credential.
			for _, c := range []*apptest.Client{greedy, token} {
				a := c.Do(http.MethodGet, path, nil, func(r *http.Request) {
					for i := 0; i < len(header); i += 2 {
						r.Header.Set(header[i], header[i+1])
					}
				})
				if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" ||
					!strings.Contains(a.Body, saying) || a.Kind() != "rate_limited" {
					t.Errorf("%s with %s: %d %v %s", path, header[1], a.Status, a.Header, a.Body)
				}
			}
		}
	}
	// The results of a search are a stream too.
	search := greedy.Do(http.MethodGet, "/api/v1/search?q=calc", nil, func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
	if search.Status != http.StatusTooManyRequests || search.Kind() != "rate_limited" {
		t.Errorf("a streamed search: %d %s", search.Status, search.Body)
	}
	theirs := []*apptest.Stream{other.Socket(room), other.Events(room)}
	other.Say(room, "heard by all")
	for _, s := range append(theirs, open...) {
		s.Heard("heard by all")
	}

	c := p.OpenControl(t)
	defer c.Close()
	if err := c.SetUserDisabled(t.Context(), "greedy", true); err != nil {
		t.Fatal(err)
	}
	for i, s := range open {
		select {
		case <-s.Ended:
		case <-time.After(apptest.WaitTime):
			t.Fatalf("stream %d goes on after its account was disabled", i)
		}
	}
	other.Say(room, "after")
	for _, s := range theirs {
		s.Heard("after")
	}
	if err := c.SetUserDisabled(t.Context(), "greedy", false); err != nil {
		t.Fatal(err)
	}
	again := p.LogIn(t, "greedy")
	events := func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") }
	a := again.Do(http.MethodGet, live, nil, events)
	for ; a.Status == http.StatusTooManyRequests; a = again.Do(http.MethodGet, live, nil, events) {
		// the portal ends the count of a stream after its reader has seen the end
	}
	if a.Status != http.StatusOK {
		t.Errorf("after the account was enabled: %d %s", a.Status, a.Body)
	}
}

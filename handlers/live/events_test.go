package live_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"agentsite/internal/testing/sitetest"
)

// events opens server-sent events; next returns the following one that is no
// comment, as its lines.
func (s *liveSite) events(b *sitetest.Browser, path string, header ...string) (res *http.Response, next func() map[string]string) {
	s.T.Helper()
	req, err := http.NewRequestWithContext(s.T.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Cookie", "agentsite-test="+b.Cookie)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err = http.DefaultClient.Do(req)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { res.Body.Close() })
	in := bufio.NewReader(res.Body)
	return res, func() map[string]string {
		s.T.Helper()
		ev := make(map[string]string)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				s.T.Fatal(err)
			}
			line = strings.TrimSuffix(line, "\n")
			if line == "" && len(ev) > 0 {
				return ev
			}
			if k, v, ok := strings.Cut(line, ": "); ok && k != "" {
				ev[k] = v
			}
		}
	}
}

func TestLive_EventsResumeByTheirId(t *testing.T) {
	s := newLiveSite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	room := s.room(ann, bob)
	for i := range 3 {
		s.say(ann, room, fmt.Sprint("Number ", i))
	}
	res, next := s.events(bob, "/"+room+"/live?html=1", "Last-Event-ID", "2")
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatal(res.Status)
	}
	if ev := next(); ev["event"] != "ready" || ev["id"] != "" {
		t.Errorf("got %v", ev)
	}
	if ev := next(); ev["id"] != "3" || ev["event"] != "message" || !strings.Contains(ev["data"], `"html":`) {
		t.Errorf("got %v", ev)
	}
	if ev := next(); ev["event"] != "presence" || ev["id"] != "" {
		t.Errorf("got %v", ev)
	}
	for _, path := range []string{room, "01JZZZZZZZZZZZZZZZZZZZZZZZ"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/"+path+"/typing", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", "agentsite-test="+ann.Cookie)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if want := map[bool]int{true: http.StatusNoContent, false: http.StatusNotFound}[path == room]; res.StatusCode != want {
			t.Errorf("typing in %s: %s", path, res.Status)
		}
	}
	for ev := next(); ev["event"] != "typing"; ev = next() {
		if ev["event"] != "presence" {
			t.Errorf("got %v", ev)
		}
	}
	for header, id := range map[string]string{"garbage": "x", "negative": "-1"} {
		if res, _ := s.events(bob, "/"+room+"/live", "Last-Event-ID", id); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", header, res.Status)
		}
	}
}

func TestLiveInbox_TellsOfAllConversations(t *testing.T) {
	s := newLiveSite(t)
	ann, bob, eve := s.Person("ann"), s.Person("bob"), s.Person("eve")
	s.Acquaint(ann, bob, eve)
	one, two := s.room(ann, bob), s.room(bob, ann)
	socket := s.listen(bob, "/live")
	_, next := s.events(bob, "/live")
	foreign := s.listen(eve, "/live")
	s.say(ann, one, "Hello")
	s.say(ann, two, "What do you say, @bob?")
	for i, want := range []string{one, two} {
		news := socket.hears("news").Rest
		if string(news["conversation_id"]) != `"`+want+`"` || string(news["from"]) != `"ann"` || string(news["mention"]) != fmt.Sprint(i == 1) || string(news["quiet"]) != "false" {
			t.Errorf("the socket tells %s", news)
		}
		if ev := next(); ev["event"] != "news" || !strings.Contains(ev["data"], want) {
			t.Errorf("the events tell %v", ev)
		}
	}
	mine := s.room(eve, ann)
	s.say(eve, mine, "From eve")
	s.say(ann, mine, "To eve")
	if news := foreign.hears("news").Rest; string(news["snippet"]) != `"To eve"` {
		t.Errorf("eve is told %s", news)
	}
	socket.say(`{"type":"typing"}`)
	if code := socket.end(); code != websocket.StatusPolicyViolation {
		t.Errorf("ended with %d", code)
	}
	if _, err := s.dial(s.Guest(), "/live"); err == nil {
		t.Error("a stranger is told news")
	}
}

// A stream with once=1 has the updates that exist already, from the given message on, and ends.
func TestLive_OnceEnds(t *testing.T) {
	s := newLiveSite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	s.Acquaint(ann, bob)
	room := s.room(ann, bob)
	const all = 450 // more than a page of history
	for i := range all {
		s.say(ann, room, fmt.Sprint("Number ", i))
	}
	for _, after := range []int{0, all, all + 10} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/%s/live?once=1&after=%d", s.url, room, after), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Cookie", "agentsite-test="+bob.Cookie)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || strings.Count(string(b), "event: message\n") != max(0, all-after) {
			t.Errorf("after %d: %d messages, %v", after, strings.Count(string(b), "event: message\n"), err)
		}
	}
}

package apptest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// Event is one event of a live stream.
type Event struct {
	Type   string
	Seq    int64
	Sender struct{ Kind, Handle string }
	Kind   string
	Parts  []struct{ Text string }
	Task   struct{ ID, State, Reason string }
	Text   string // set only in an event of type delta
	Raw    string
}

// Plain returns the text of a message event.
func (e Event) Plain() string {
	var b strings.Builder
	for _, p := range e.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Stream is a live stream of a conversation, over a WebSocket or as server-sent events. A goroutine
// reads it until it ends.
type Stream struct {
	// Ended is closed when the stream has ended, whichever side ended it.
	Ended <-chan struct{}

	t     testing.TB
	mu    sync.Mutex // guards all; the other fields do not change
	all   []Event
	wake  chan struct{}
	close func()
}

// Socket opens a live stream of a conversation as a WebSocket. It is closed when the test ends. query begins with a
// question mark, if given.
func (c *Client) Socket(conversation string, query ...string) *Stream {
	c.t.Helper()
	req := c.Request(context.Background(), http.MethodGet, "", nil)
	h := http.Header{}
	if v := req.Header.Get("Authorization"); v != "" {
		h.Set("Authorization", v)
	}
	ctx, cancel := context.WithCancel(context.Background())
	conn, _, err := websocket.Dial(ctx, c.p.Base+"/api/v1/conversations/"+conversation+"/live"+strings.Join(query, ""),
		&websocket.DialOptions{HTTPClient: c.HTTP, HTTPHeader: h, Host: c.p.Host})
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	conn.SetReadLimit(8 << 20)
	return c.stream(func() { cancel(); conn.CloseNow() }, func() (string, error) {
		_, b, err := conn.Read(ctx)
		return string(b), err
	})
}

// Events opens a live stream of a conversation as server-sent events. It is closed when the test ends. query begins
// with a question mark, if given.
func (c *Client) Events(conversation string, query ...string) *Stream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req := c.Request(ctx, http.MethodGet, "/api/v1/conversations/"+conversation+"/live"+strings.Join(query, ""), nil)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		cancel()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		c.t.Fatalf("live stream: %d %s", resp.StatusCode, b)
	}
	in := bufio.NewReaderSize(resp.Body, 1<<20)
	return c.stream(func() { cancel(); resp.Body.Close() }, func() (string, error) {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return "", err
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				return data, nil
			}
		}
	})
}

func (c *Client) stream(stop func(), next func() (string, error)) *Stream {
	ended := make(chan struct{})
	s := &Stream{Ended: ended, t: c.t, wake: make(chan struct{}, 1), close: stop}
	p := c.p
	go func() {
		defer close(ended)
		for {
			raw, err := next()
			if err != nil {
				return
			}
			p.check(c.t, "live stream", raw)
			var e Event
			json.Unmarshal([]byte(raw), &e)
			e.Raw = raw
			s.mu.Lock()
			s.all = append(s.all, e)
			s.mu.Unlock()
			select {
			case s.wake <- struct{}{}:
			default:
			}
		}
	}()
	c.t.Cleanup(func() { stop(); <-ended })
	return s
}

// Close closes the stream and waits until its goroutine has ended.
func (s *Stream) Close() { s.close(); <-s.Ended }

// All returns a copy of the events received so far.
func (s *Stream) All() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Event(nil), s.all...)
}

// WaitTime is the longest wait for an event. It is long, because a busy machine must not fail a test.
const WaitTime = 2 * time.Minute

// Wait returns the first event, of the past or the future, for which ok returns true. It ends the test
// when the stream ends or WaitTime passes. what names the event in the message. Only one goroutine may
// wait at a time.
func (s *Stream) Wait(what string, ok func(Event) bool) Event {
	s.t.Helper()
	over := time.NewTimer(WaitTime)
	defer over.Stop()
	seen := 0
	next := func() (Event, bool) {
		s.mu.Lock()
		fresh := s.all[seen:]
		seen = len(s.all)
		s.mu.Unlock()
		i := slices.IndexFunc(fresh, ok)
		if i < 0 {
			return Event{}, false
		}
		return fresh[i], true
	}
	for {
		if e, found := next(); found {
			return e
		}
		select {
		case <-s.wake:
		case <-s.Ended:
			if e, found := next(); found {
				return e
			}
			s.t.Fatalf("the stream ended before %s", what)
		case <-over.C:
			s.t.Fatalf("no %s within %s; had %d events", what, WaitTime, len(s.All()))
		}
	}
}

// Heard waits for a message with exactly this text.
func (s *Stream) Heard(text string) Event {
	s.t.Helper()
	return s.Wait("message "+text, func(e Event) bool { return e.Type == "message" && e.Plain() == text })
}

// Answered waits for the message of an agent that ends the task.
func (s *Stream) Answered(task string) Event {
	s.t.Helper()
	return s.Wait("answer", func(e Event) bool { return e.Type == "message" && e.Task.ID == task && e.Sender.Kind == "agent" })
}

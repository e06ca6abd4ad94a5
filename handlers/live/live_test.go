package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"agentsite/handlers/live"
	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/task"
	"agentsite/internal/testing/sitetest"
)

// liveSite is a portal whose streams can be read over the network.
type liveSite struct {
	*sitetest.Site
	url string
}

func newLiveSite(t *testing.T) *liveSite {
	t.Helper()
	s := sitetest.NewSite(t, account.Open)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" {
			r.URL.Path = "/api/v1/live"
		} else {
			r.URL.Path = "/api/v1/conversations" + r.URL.Path
		}
		s.Router.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return &liveSite{s, srv.URL}
}

// room is a conversation of the first person with the others.
func (s *liveSite) room(people ...*sitetest.Browser) string {
	s.T.Helper()
	var names []string
	for _, b := range people[1:] {
		names = append(names, b.Actor.Name)
	}
	s.Acquaint(people...)
	c, err := s.Chat.Create(s.T.Context(), people[0].Actor, "", names)
	if err != nil {
		s.T.Fatal(err)
	}
	return c.ID
}

func (s *liveSite) say(b *sitetest.Browser, room, text string) chat.Message {
	s.T.Helper()
	p, err := s.Chat.Post(s.T.Context(), b.Actor, room, chat.Draft{ClientID: fmt.Sprint(rand.Int64()), Parts: []task.Part{task.TextPart(text)}})
	if err != nil {
		s.T.Fatal(err)
	}
	return p.Message
}

// event is what a stream tells.
type event struct {
	Type    string                     `json:"type"`
	Seq     int64                      `json:"seq"`
	Handle  string                     `json:"handle"`
	Handles []string                   `json:"handles"`
	Parts   []task.Part                `json:"parts"`
	HTML    string                     `json:"html"`
	Rest    map[string]json.RawMessage `json:"-"`
}

// ear is a reader's end of a socket.
type ear struct {
	t    *testing.T
	conn *websocket.Conn
}

func (s *liveSite) dial(b *sitetest.Browser, path string) (*ear, error) {
	ctx, cancel := context.WithTimeout(s.T.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, s.url+path, &websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {"agentsite-test=" + b.Cookie}}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(4 << 20)
	s.T.Cleanup(func() { conn.CloseNow() })
	return &ear{s.T, conn}, nil
}

func (s *liveSite) listen(b *sitetest.Browser, path string) *ear {
	s.T.Helper()
	e, err := s.dial(b, path)
	if err != nil {
		s.T.Fatal(err)
	}
	return e
}

func (e *ear) read() (ev event, err error) {
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	_, b, err := e.conn.Read(ctx)
	if err != nil {
		return ev, err
	}
	if err := json.Unmarshal(b, &ev.Rest); err != nil {
		return ev, err
	}
	return ev, json.Unmarshal(b, &ev)
}

// hears waits for an event of a type.
func (e *ear) hears(kind string) event {
	e.t.Helper()
	for {
		ev, err := e.read()
		if err != nil {
			e.t.Fatalf("waiting for %s: %v", kind, err)
		}
		if ev.Type == kind {
			return ev
		}
	}
}

func (e *ear) say(text string) {
	e.t.Helper()
	if err := e.conn.Write(e.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		e.t.Fatal(err)
	}
}

func TestLive_TwoDevicesAndAnotherPerson(t *testing.T) {
	s := newLiveSite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	room := s.room(ann, bob)
	s.say(ann, room, "Before **anybody** reads")
	phone, desk, other := s.listen(ann, "/"+room+"/live?html=1"), s.listen(ann, "/"+room+"/live"), s.listen(bob, "/"+room+"/live?after=1&html=1")
	if m := phone.hears("message"); m.Seq != 1 || !strings.Contains(m.HTML, "<strong>anybody</strong>") {
		t.Errorf("with HTML: %+v", m)
	}
	if m := desk.hears("message"); m.Seq != 1 || m.HTML != "" || m.Parts[0].Text != "Before **anybody** reads" {
		t.Errorf("without: %+v", m)
	}
	for !slices.Contains(other.hears("presence").Handles, "ann") {
	}
	for i := range 20 {
		s.say([]*sitetest.Browser{ann, bob}[i%2], room, fmt.Sprint("Number ", i))
	}
	for _, e := range []*ear{phone, desk, other} {
		for want := int64(2); want <= 21; want++ {
			if m := e.hears("message"); m.Seq != want {
				t.Fatalf("message %d, want %d", m.Seq, want)
			}
		}
	}
	phone.say(`{"type":"typing"}`)
	if h := other.hears("typing").Handle; h != "ann" {
		t.Errorf("%s types", h)
	}
	phone.say(`{"type":"read","seq":21}`)
	if m := desk.hears("read"); m.Handle != "ann" || m.Seq != 21 {
		t.Errorf("the other device is told %+v", m)
	}
	phone.conn.Close(websocket.StatusNormalClosure, "")
	desk.conn.CloseNow()
	for slices.Contains(other.hears("presence").Handles, "ann") {
	}
}

func TestLive_RemovalEndsTheSocket(t *testing.T) {
	s := newLiveSite(t)
	ann, bob := s.Person("ann"), s.Person("bob")
	room := s.room(ann, bob)
	e, stays := s.listen(bob, "/"+room+"/live"), s.listen(ann, "/"+room+"/live")
	e.hears("presence")
	if err := s.Chat.Remove(t.Context(), ann.Actor, room, "bob"); err != nil {
		t.Fatal(err)
	}
	s.say(ann, room, "Among us")
	for {
		ev, err := e.read()
		if err == nil {
			if ev.Type == "message" {
				t.Errorf("bob is told %+v", ev)
			}
			continue
		}
		if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Error(err)
		}
		break
	}
	for stays.hears("message").Parts[0].Text != "Among us" {
	}
}

func TestLive_MalformedFramesEndTheirSocketOnly(t *testing.T) {
	s := newLiveSite(t)
	ann := s.Person("ann")
	room := s.room(ann)
	bystander := s.listen(ann, "/"+room+"/live")
	good := s.listen(ann, "/"+room+"/live")
	for range 10 {
		good.say(` {"type":"typing"} `)
		good.say(`{"seq":0,"type":"read"}`)
		good.say(`{"type":"read","seq":9223372036854775807}`)
	}
	for name, frame := range map[string]string{
		"no JSON": "hello", "another case": `{"Type":"typing"}`, "empty": "", "a list": "[]", "two": `{"type":"typing"}{"type":"typing"}`, "trailing": `{"type":"typing"} x`, "null": "null",
		"unknown": `{"type":"message","seq":1}`, "unknown field": `{"type":"typing","to":"bob"}`, "no seq": `{"type":"read"}`, "negative": `{"type":"read","seq":-1}`,
		"fraction": `{"type":"read","seq":1.5}`, "greater than all": `{"type":"read","seq":9223372036854775808}`, "typing with seq": `{"type":"typing","seq":1}`,
		"long": `{"type":"typing"` + strings.Repeat(" ", live.LiveFrameLimit) + `}`,
	} {
		e := s.listen(ann, "/"+room+"/live")
		e.say(frame)
		if code := e.end(); code != websocket.StatusPolicyViolation {
			t.Errorf("%s: ended with %d", name, code)
		}
	}
	e := s.listen(ann, "/"+room+"/live")
	if err := e.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"typing"}`)); err != nil {
		t.Fatal(err)
	}
	if code := e.end(); code != websocket.StatusPolicyViolation {
		t.Errorf("binary: ended with %d", code)
	}
	e = s.listen(ann, "/"+room+"/live")
	for e.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"typing"}`)) == nil {
	}
	last := s.say(ann, room, "Still here")
	for _, e := range []*ear{bystander, good} {
		if m := e.hears("message"); m.Seq != last.Seq {
			t.Errorf("heard %+v", m)
		}
	}
}

func (e *ear) end() websocket.StatusCode {
	for {
		if _, err := e.read(); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// TestLive_FloodsEndTheirSocket sends for ever what the protocol allows.
func TestLive_FloodsEndTheirSocket(t *testing.T) {
	s := newLiveSite(t)
	ann := s.Person("ann")
	room := s.room(ann)
	mask := []byte{0, 0, 0, 0}
	for name, flood := range map[string][]byte{
		"pings":            append([]byte{0x89, 0x80}, mask...),
		"pongs":            append([]byte{0x8a, 0x80}, mask...),
		"empty fragments":  append([]byte{0x01, 0x80, 0, 0, 0, 0, 0x00, 0x80}, mask...),
		"a frame of 2^62":  {0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a frame of 2^63":  {0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"reserved opcodes": append([]byte{0x83, 0x80}, mask...),
		"reserved bits":    append([]byte{0xf1, 0x80}, mask...),
		"unmasked":         {0x81, 0x01, 'x'},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /%s/live HTTP/1.1\r\nHost: x\r\nCookie: agentsite-test=%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", room, ann.Cookie)
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(res, err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		done := make(chan error, 1)
		go func() {
			for { // what it sends must be read, or it could go on for ever
				if _, err := in.ReadByte(); err != nil {
					return
				}
			}
		}()
		go func() {
			for {
				if _, err := conn.Write(flood); err != nil {
					done <- err
					return
				}
			}
		}()
		var late net.Error
		if err := <-done; errors.As(err, &late) && late.Timeout() {
			t.Errorf("%s: the socket lives on", name)
		}
	}
}

func TestLive_ASlowReaderGetsEverythingAndDelaysNobody(t *testing.T) {
	s := newLiveSite(t)
	ann := s.Person("ann")
	room := s.room(ann)
	slow, quick := s.listen(ann, "/"+room+"/live?html=1"), s.listen(ann, "/"+room+"/live")
	const n = 80 // more than the kernel and the room's log hold
	long := strings.Repeat("0123456789abcdef", chat.MaxTextBytes/16)
	for want := int64(1); want <= n; want++ {
		s.say(ann, room, long)
		if m := quick.hears("message"); m.Seq != want {
			t.Fatalf("quick: message %d, want %d", m.Seq, want)
		}
	}
	for want := int64(1); want <= n; want++ {
		if m := slow.hears("message"); m.Seq != want || m.Parts[0].Text != long || !strings.Contains(m.HTML, "0123456789abcdef") {
			t.Fatalf("slow: message %d, want %d", m.Seq, want)
		}
	}
	s.say(ann, room, "It keeps up again")
	if m := slow.hears("message"); m.Seq != n+1 {
		t.Errorf("message %d", m.Seq)
	}
}

// TestLive_SurvivesAHundredCuts cuts a reader's connection wherever it is and
// checks that what it heard in all is the transcript.
func TestLive_SurvivesAHundredCuts(t *testing.T) {
	s := newLiveSite(t)
	ann := s.Person("ann")
	room := s.room(ann)
	const n = 400
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			if _, err := s.Chat.Post(t.Context(), ann.Actor, room, chat.Draft{ClientID: fmt.Sprint(i), Parts: []task.Part{task.TextPart(fmt.Sprint("Number ", i))}}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	last := int64(0)
	for cut := range 100 {
		e := s.listen(ann, fmt.Sprintf("/%s/live?after=%d", room, last))
		for range rand.IntN(8) {
			if last == n {
				break
			}
			m := e.hears("message")
			if m.Seq != last+1 {
				t.Fatalf("cut %d: message %d after %d", cut, m.Seq, last)
			}
			last = m.Seq
		}
		e.conn.CloseNow()
	}
	<-done
	e := s.listen(ann, fmt.Sprintf("/%s/live?after=%d", room, last))
	for ; last < n; last++ {
		if m := e.hears("message"); m.Seq != last+1 {
			t.Fatalf("message %d after %d", m.Seq, last)
		}
	}
}

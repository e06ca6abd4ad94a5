package app_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/handlers/peer"
	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// flood is an endless-looking body that counts what was taken of it.
type flood struct {
	head string
	left int
	// sent is read while the transport may still be sending.
	sent atomic.Int64
}

// Read implements io.Reader.
func (f *flood) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, f.head)
	f.head = f.head[n:]
	for ; n < len(p); n++ {
		p[n] = 'a'
	}
	f.left -= n
	f.sent.Add(int64(n))
	return n, nil
}

const (
	floodBytes = 64 << 20
	// takenAtMost is what may leave this side before the portal has refused:
	// its own bound and what the sockets hold.
	takenAtMost = 16 << 20
	heapGrowth  = 96 << 20
)

func TestBodies_AreCapped(t *testing.T) {
	// Not parallel: it measures this process's memory, of which no more may be
	// garbage than usual.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	w := newWorld(t)
	all := cells()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tried, refused := 0, 0
	for _, r := range readPolicy(t) {
		if r.method == http.MethodGet || r.variant != "" && r.variant != "public" {
			continue
		}
		key := r.method + " " + r.pattern
		if r.variant != "" {
			key += " [" + r.variant + "]"
		}
		c := all[key]
		actor := "owner"
		if strings.HasPrefix(r.pattern, "/admin") || r.pattern == "/api/v1/hosting" {
			actor = "oper"
		}
		caller := w.as[actor].With(t)
		if c.alone {
			caller = w.alone(t, actor, caller)
		}
		var o object
		if c.object != nil {
			o = c.object(t, w, actor)
		}
		wants := false // whether the route reads a body at all
		kind, head := "application/json", `{"text":"`
		if c.body != nil {
			switch b := c.body(w, o).(type) {
			case url.Values:
				wants, kind, head = len(b) > 0, "application/x-www-form-urlencoded", "text="
			default:
				wants = true
			}
		}
		// These routes take files, as large as one may be, and their own tests say where they end.
		file := r.pattern == "/api/v1/files" || r.pattern == "/api/v1/hosting/modules" ||
			r.pattern == "/api/v1/library/*" && r.method == http.MethodPut
		// These verify who asks before they read; hello brings the card to verify by.
		signed := strings.HasPrefix(r.pattern, peer.Base+"/") && r.pattern != peer.Base+"/hello" ||
			r.pattern == "/mcp/tools" // only with the token of a running task
		f := &flood{head: head, left: floodBytes}
		a, err := caller.Try(r.method, r.path(c, o), io.Reader(f), setHeader("Content-Type", kind))
		tried++
		switch {
		case err != nil && !wants: // cut off while sending: fine too
		case signed && (err != nil || a.Status == http.StatusUnauthorized):
			// Who has not signed is refused by its headers alone: nothing of the
			// body is asked for. peering has a test of signed ones that are too long.
			unread := &flood{head: head, left: floodBytes}
			a := caller.Do(r.method, r.path(c, o), io.Reader(unread), setHeader("Content-Type", kind), setHeader("Expect", "100-continue"))
			if n := unread.sent.Load(); a.Status != http.StatusUnauthorized || n > 0 {
				t.Errorf("%s: %d to a body that waits to be asked for, of which %d bytes were", key, a.Status, n)
			}
			refused++
		case file && err == nil && a.Status == http.StatusCreated:
		case wants && err == nil && a.Status != http.StatusRequestEntityTooLarge && a.Status != http.StatusBadRequest:
			t.Errorf("%s: %d to a body of %d MiB", key, a.Status, floodBytes>>20)
		case wants && err != nil && f.sent.Load() >= floodBytes:
			t.Errorf("%s: %v", key, err)
		}
		taken := f.sent.Load()
		for range 2 { // how much sockets hold is by the moment, what is read is not
			if taken <= takenAtMost || file {
				break
			}
			again := &flood{head: head, left: floodBytes}
			caller.Try(r.method, r.path(c, o), io.Reader(again), setHeader("Content-Type", kind))
			taken = min(taken, again.sent.Load())
		}
		if taken > takenAtMost && !file {
			t.Errorf("%s: %d MiB were sent before it was refused", key, taken>>20)
		}
		runtime.ReadMemStats(&after)
		if after.HeapInuse > before.HeapInuse+heapGrowth {
			t.Fatalf("%s: the heap grew by %d MiB", key, (after.HeapInuse-before.HeapInuse)>>20)
		}
	}
	if tried < 40 {
		t.Errorf("only %d routes tried", tried)
	}
	if refused < 4 {
		t.Errorf("only %d routes refuse who has not signed", refused)
	}
	w.as["owner"].Must(http.MethodGet, "/readyz", nil, http.StatusOK)
}

func TestBodies_OddOnesAreRefused(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	room := c.Conversation()
	at := "/api/v1/conversations/" + room + "/messages"
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for name, b := range map[string]string{
		"empty": "", "space": " \n", "not json": "hello", "half": `{"client_id":"a"`, "two values": `{"client_id":"a","text":"b"}{}`, "array": `[]`, "text": `"x"`, "number": `1`,
		"deep": deep, "deep in a field": `{"client_id":"a","parts":[{"data":` + deep + `}]}`, "deep in an unknown field": `{"x":` + deep + `}`, "nul byte": "{\"client_id\":\"a\",\"text\":\"b\x00\"}",
		"trailing": `{"client_id":"a","text":"b"} x`, "comment": `{/*x*/"client_id":"a","text":"b"}`, "NaN": `{"client_id":NaN}`,
	} {
		if a := c.Do(http.MethodPost, at, b); a.Status != http.StatusBadRequest || a.Kind() != "invalid" {
			t.Errorf("%s: %d %.100s", name, a.Status, a.Body)
		}
	}
	for _, kind := range []string{"text/plain", "multipart/form-data; boundary=x", "text/html", "application/xml"} {
		if a := c.Do(http.MethodPost, at, `{"client_id":"a","text":"b"}`, setHeader("Content-Type", kind)); a.Status != http.StatusBadRequest {
			t.Errorf("content type %s: %d", kind, a.Status)
		}
	}
	// A compressed body is not unpacked.
	if a := c.Do(http.MethodPost, at, "\x1f\x8b\x08\x00", setHeader("Content-Encoding", "gzip")); a.Status != http.StatusBadRequest {
		t.Errorf("gzip: %d", a.Status)
	}
	var out struct{ Messages []struct{} }
	c.Get(http.MethodGet, at, nil, http.StatusOK, &out)
	if len(out.Messages) != 0 {
		t.Errorf("%d messages were stored", len(out.Messages))
	}
}

// Indenting deeply nested data grows it by the square of its depth: 60 KiB
// would become a page of hundreds of megabytes.
func TestData_DeepIsNotBlownUp(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	room := c.Conversation()
	deep := strings.Repeat("[", 9000) + "1" + strings.Repeat("]", 9000)
	part := `{"data":` + deep + `}`
	a := c.Do(http.MethodPost, "/api/v1/conversations/"+room+"/messages", `{"client_id":"a","parts":[`+part+","+part+","+part+`]}`)
	if a.Status != http.StatusCreated && a.Status != http.StatusBadRequest {
		t.Fatalf("%d %.200s", a.Status, a.Body)
	}
	if n := len(c.Must(http.MethodGet, "/chat/"+room, nil, http.StatusOK).Body); n > 1<<20 {
		t.Errorf("the page is %d bytes", n)
	}
}

func TestHeaders_AreCapped(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	for name, h := range map[string]string{
		"one long":  "X-Long: " + strings.Repeat("a", 128<<10) + "\r\n",
		"many":      strings.Repeat("X-Many: 1234567890\r\n", 8000),
		"long path": "",
	} {
		conn, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		path := "/"
		if name == "long path" {
			path += strings.Repeat("a", 128<<10)
		}
		go fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, p.Host, h)
		conn.SetReadDeadline(time.Now().Add(apptest.WaitTime))
		line := make([]byte, 12)
		if _, err := io.ReadFull(conn, line); err != nil || string(line) != "HTTP/1.1 431" {
			t.Errorf("%s: %q %v", name, line, err)
		}
		conn.Close()
	}
}

func TestSlowHeaders_AreCutOff(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	var conns []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nX-A: ", p.Host)
		conns = append(conns, conn)
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() { // a byte now and then
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				for _, c := range conns {
					c.Write([]byte("a"))
				}
			case <-stop:
				return
			}
		}
	}()
	p.Guest(t).Must(http.MethodGet, "/healthz", nil, http.StatusOK) // others are served
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(apptest.WaitTime))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection whose headers do not end lives on")
		}
	}
}

// frame is one WebSocket frame of a client.
func frame(fin bool, op byte, masked bool, payload []byte) []byte {
	b := []byte{op, 0}
	if fin {
		b[0] |= 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b[1] = byte(n)
	case n < 1<<16:
		b[1] = 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] = 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	if masked {
		b[1] |= 0x80
		b = append(b, 0, 0, 0, 0) // a mask of zeros changes nothing
	}
	return append(b, payload...)
}

func TestSocket_AbuseEndsOnlyItself(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.User(t, "olga")
	room := c.Conversation()
	bystander := c.Socket(room)
	endless := func(conn net.Conn, b []byte) {
		for {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}
	for name, attack := range map[string]func(net.Conn){
		"length 2^63": func(conn net.Conn) { conn.Write([]byte{0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) },
		"length 2^63-1": func(conn net.Conn) {
			conn.Write([]byte{0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0})
		},
		"unmasked": func(conn net.Conn) { conn.Write(frame(true, 1, false, []byte("hello"))) },
		"fragments forever": func(conn net.Conn) {
			conn.Write(frame(false, 1, true, []byte("a")))
			endless(conn, frame(false, 0, true, bytes.Repeat([]byte("a"), 1000)))
		},
		"empty fragments":   func(conn net.Conn) { conn.Write(frame(false, 1, true, nil)); endless(conn, frame(false, 0, true, nil)) },
		"frame of 1 MiB":    func(conn net.Conn) { conn.Write(frame(true, 2, true, make([]byte, 1<<20))) },
		"unknown opcode":    func(conn net.Conn) { conn.Write(frame(true, 0xb, true, nil)) },
		"reserved bits":     func(conn net.Conn) { b := frame(true, 1, true, []byte("a")); b[0] |= 0x70; conn.Write(b) },
		"long control":      func(conn net.Conn) { conn.Write(frame(true, 9, true, make([]byte, 1000))) },
		"lone continuation": func(conn net.Conn) { conn.Write(frame(true, 0, true, []byte("a"))) },
		"not a frame":       func(conn net.Conn) { conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, in, code := handshake(t, p, c, room, "")
			if code != http.StatusSwitchingProtocols {
				t.Fatal(code)
			}
			go attack(conn)
			conn.SetReadDeadline(time.Now().Add(apptest.WaitTime))
			if _, err := io.Copy(io.Discard, in); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the socket lives on")
			}
			text := apptest.Fresh("still")
			c.With(t).Say(room, text)
			bystander.Heard(text)
		})
	}
}

func TestSocket_TwoHundredOfOneUser(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Limits = "sockets-per-account=200" })
	c := p.User(t, "olga")
	room := c.Conversation()
	var all []*apptest.Stream
	for range 200 {
		all = append(all, c.Socket(room))
	}
	c.Say(room, "to all")
	for _, s := range all {
		s.Heard("to all")
	}
	if !slices.ContainsFunc(p.User(t, "otto").Do(http.MethodGet, "/", nil).Header["Content-Type"], func(s string) bool { return strings.HasPrefix(s, "text/html") }) {
		t.Error("others are not served")
	}
}

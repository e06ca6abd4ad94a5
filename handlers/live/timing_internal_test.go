package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/task"
)

// oneRoom is a store of one conversation for one person.
type oneRoom struct {
	chat.Store
	mu   sync.Mutex // guards list
	list []chat.Message
}

func (o *oneRoom) Room(_ context.Context, id, _, member string) (chat.Conversation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return chat.Conversation{ID: id, LastSeq: int64(len(o.list)), Members: o.members(member)}, nil
}

func (o *oneRoom) members(id string) []chat.Member {
	return []chat.Member{{Kind: "person", ID: id, Handle: id, Role: chat.RoleOwner}}
}

func (o *oneRoom) Messages(_ context.Context, _ string, span chat.Span) ([]chat.Message, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := min(int64(len(o.list)), span.After+int64(span.Limit))
	return append([]chat.Message(nil), o.list[span.After:end]...), end < int64(len(o.list)), nil
}

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// timed serves one room's sockets in a bubble and returns the reader's end of
// one, after the handshake.
func timed(t *testing.T, wrap ...func(http.Handler) http.Handler) (s *chat.Service, id string, reader func() net.Conn) {
	ada := ident.Actor{Kind: ident.Person, ID: "ada", Name: "ada"}
	s, id = chat.New(&oneRoom{}, nil, nil, chat.Config{}), ident.NewID()
	d := &Streams{chat: s, log: slog.New(slog.DiscardHandler)}
	l := make(pipes)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sub, err := s.Subscribe(r.Context(), ada, id, 0)
		if err != nil {
			t.Error(err)
			return
		}
		so, err := d.openSocket(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		so.form, so.sub = plainFrame, sub
		so.reader = &frameReader{d, ada, id}
		so.serveSocket(r.Context(), r.Context(), so.followRoom, sub.Close)
	})}
	for _, w := range wrap {
		srv.Handler = w(srv.Handler)
	}
	served := make(chan struct{})
	go func() { defer close(served); srv.Serve(l) }()
	t.Cleanup(func() { close(l); <-served; srv.Close(); synctest.Wait() })
	return s, id, func() net.Conn {
		ours, theirs := net.Pipe()
		l <- theirs
		conn, _, err := websocket.Dial(t.Context(), "ws://room.test/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
		return ours
	}
}

// gone returns after how long a connection was closed, while its reader reads
// nothing but answers pings if told to.
func gone(t *testing.T, c net.Conn, read func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < time.Hour {
		if err := read(); errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
			return time.Since(began)
		}
	}
	return time.Hour
}

func TestSocket_LetsGoOfAReaderWhoTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, id, reader := timed(t)
		c := reader()
		s.Working(task.Task{ID: "t", ConversationID: id})
		// Writing shows whether the other end is there; nothing is read.
		took := gone(t, c, func() error {
			time.Sleep(100 * time.Millisecond) // of the bubble
			_, err := c.Write(nil)
			return err
		})
		if took < liveWriteTimeout-time.Second || took > liveWriteTimeout+time.Second {
			t.Errorf("let go after %s", took)
		}
	})
}

// A reader whose share of the memory is in use is asked to come back.
func TestSocket_AsksAReaderWithoutMemoryToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := limit.NewMemory(limit.MemoryConfig{Total: 1 << 20, Share: 256 << 10})
		memory.Force(limit.Reader{Key: "addr 192.0.2.1"}, 256<<10)
		readers := respond.NewReaders(memory, limit.NewConcurrent(1), time.Minute)
		_, _, reader := timed(t, func(h http.Handler) http.Handler {
			return readers.Handler(func(*http.Request) string { return "192.0.2.1" }, h)
		})
		c, b := reader(), make([]byte, 1024)
		n, err := c.Read(b)
		if code := []byte{1013 >> 8, 1013 & 0xff}; err != nil || n < 4 || b[0] != 0x88 || !bytes.Equal(b[2:4], code) {
			t.Errorf("got %x, %v, want a close frame with status 1013", b[:n], err)
		}
		if all, _ := memory.Used(""); all != 256<<10 {
			t.Errorf("%d bytes are counted", all)
		}
	})
}

func TestSocket_LetsGoOfAReaderWhoIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, reader := timed(t)
		c, b := reader(), make([]byte, 1024)
		took := gone(t, c, func() error { _, err := c.Read(b); return err }) // reads, never answers
		if took < livePing || took > 3*livePing {
			t.Errorf("let go after %s", took)
		}
	})
}

func TestSocket_StaysWhileItsReaderAnswersPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, reader := timed(t)
		c, b := reader(), make([]byte, 1024)
		stop := time.Now().Add(10 * livePing)
		took := gone(t, c, func() error {
			n, err := c.Read(b)
			if n == 2 && b[0] == 0x89 && time.Now().Before(stop) {
				_, err = c.Write([]byte{0x8a, 0x80, 0, 0, 0, 0})
			}
			return err
		})
		if took < 10*livePing || took > 13*livePing {
			t.Errorf("let go after %s", took)
		}
	})
}

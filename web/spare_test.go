package web

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/limit"
)

// pipes is a listener in memory.
type pipes struct {
	come chan net.Conn
	done chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serving calls use with a way to connect to a server that repeats bodies.
func serving(t *testing.T, use func(dial func() net.Conn)) {
	t.Helper()
	servingWith(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
		w.Write(b)
	}), use)
}

// servingWith is serving with another handler.
func servingWith(t *testing.T, h http.Handler, use func(dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := pipes{make(chan net.Conn), make(chan struct{})}
		done := make(chan error)
		go func() {
			done <- Serve(ctx, l, h, ServerConfig{Penalized: limit.NewPenaltyBox(),
				Connections: ConnectionLimits{All: 1000, PerAddress: 1000}, Log: slog.New(slog.DiscardHandler)})
		}()
		use(func() net.Conn {
			near, far := net.Pipe()
			l.come <- far
			return near
		})
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// exchange sends parts with pauses between them and returns the status, 0 when
// the connection was closed, and the body.
func exchange(t *testing.T, c net.Conn, pause time.Duration, parts ...string) (code int, body string, took time.Duration) {
	t.Helper()
	began := time.Now()
	sent := make(chan struct{})
	defer func() { c.SetWriteDeadline(time.Now()); <-sent; c.SetWriteDeadline(time.Time{}) }()
	go func() {
		defer close(sent)
		for i, p := range parts {
			if i > 0 {
				time.Sleep(pause)
			}
			if _, err := io.WriteString(c, p); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", time.Since(began)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b), time.Since(began)
}

const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"

func TestServe_SpareConnectionsMayWait(t *testing.T) {
	for _, wait := range []time.Duration{0, 6 * time.Second, 100 * time.Second} {
		serving(t, func(dial func() net.Conn) {
			c := dial()
			defer c.Close()
			time.Sleep(wait)
			// Its body may take as long as any other's.
			if code, body, _ := exchange(t, c, 50*time.Second, head, "hello"); code != http.StatusOK || body != "hello" {
				t.Errorf("after %s: %d %q", wait, code, body)
			}
			time.Sleep(wait)
			if code, body, _ := exchange(t, c, 0, head+"again"); code != http.StatusOK || body != "again" {
				t.Errorf("again after %s: %d %q", wait, code, body)
			}
		})
	}
}

func TestServe_SlowRequestsEnd(t *testing.T) {
	for what, c := range map[string]struct {
		wait, pause time.Duration
		parts       []string
		end         time.Duration // after the wait
	}{
		"a spare connection":             {idleTimeout + time.Second, 0, []string{head + "hello"}, 0},
		"a slow header":                  {0, readTimeout, []string{"POST / HT", "TP/1.1\r\n\r\n"}, readHeaderTimeout},
		"a slow header after a wait":     {time.Minute, readTimeout, []string{"POST / HT", "TP/1.1\r\n\r\n"}, readHeaderTimeout},
		"a dripping header after a wait": {time.Minute, time.Second, strings.Split(head+"hello", ""), readHeaderTimeout},
		"a slow body":                    {0, 2 * readTimeout, []string{head, "hello"}, readTimeout},
		"a slow body after a wait":       {time.Minute, 2 * readTimeout, []string{head, "hello"}, readTimeout},
	} {
		serving(t, func(dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			time.Sleep(c.wait)
			code, _, took := exchange(t, conn, c.pause, c.parts...)
			if code == http.StatusOK {
				t.Errorf("%s is served", what)
			}
			if took > c.end {
				t.Errorf("%s took %s", what, took)
			}
		})
	}
}

// half is a connection that can be closed one way.
type half struct {
	net.Conn
	closed bool
}

func (h *half) CloseWrite() error { h.closed = true; return nil }

// one is a listener that accepts one connection.
type one struct {
	net.Listener
	c net.Conn
}

func (l one) Accept() (net.Conn, error) { return l.c, nil }

// net/http looks for it, so that who still sends a body that was refused reads
// the answer before the connection breaks.
func TestSpareConn_ClosesOneWay(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	inner := &half{Conn: far}
	c, err := spareListener{one{c: inner}}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	w, ok := c.(interface{ CloseWrite() error })
	if !ok || w.CloseWrite() != nil || !inner.closed {
		t.Error("it is not closed one way")
	}
}

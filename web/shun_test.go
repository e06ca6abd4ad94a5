package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// shunned is every address once it is set.
type shunned struct{ atomic.Bool }

func (s *shunned) Contains(netip.Addr) bool { return s.Load() }

func TestServe_SendsAwayWhoIsShunned(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var shun shunned
	asked, done := 0, make(chan error)
	go func() {
		done <- Serve(ctx, l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }), ServerConfig{Penalized: &shun,
			Connections: ConnectionLimits{All: 100, PerAddress: 100}, Log: slog.New(slog.DiscardHandler)})
	}()
	tr := new(http.Transport)
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	ask := func() (status int, close bool) {
		resp, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			return 0, true
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Close
	}
	if status, close := ask(); status != http.StatusOK || close {
		t.Error("an honest request:", status, close)
	}
	shun.Store(true)
	if status, close := ask(); status != http.StatusTooManyRequests || !close {
		t.Error("on the connection that was there:", status, close)
	}
	// A new one is held, never answered, and keeps nobody from stopping.
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // it may be closed by then
	c.SetReadDeadline(time.Now().Add(holdFor / 20))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a new connection is not left waiting:", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if asked != 1 {
		t.Error("the handler was asked", asked, "times")
	}
}

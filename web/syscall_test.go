package web

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"

	"agentsite/internal/limit"
)

// Live sockets write to the hijacked connection without blocking, which needs its descriptor.
func TestServe_HijackedConnectionsHaveADescriptor(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			s, ok := c.(syscall.Conn)
			if !ok {
				t.Errorf("%T has no descriptor", c)
				return
			}
			raw, err := s.SyscallConn()
			if err == nil {
				err = raw.Write(func(fd uintptr) bool {
					_, err = syscall.Write(int(fd), []byte("raw"))
					return true
				})
			}
			if err != nil {
				t.Error(err)
			}
		}), ServerConfig{Penalized: limit.NewPenaltyBox(), Connections: ConnectionLimits{All: 10, PerAddress: 10},
			Log: slog.New(slog.DiscardHandler)})
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // an error shows in the answer
	if b, err := io.ReadAll(c); string(b) != "raw" {
		t.Errorf("read %q, %v", b, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

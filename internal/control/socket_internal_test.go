package control

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// The HTTP server of the control socket reports faults to the portal's log, as every other part does. Here
// the fault is a panic, because the server has no services.
func TestListen_LogsByTheLoggerOfThePortal(t *testing.T) {
	t.Parallel()
	var out lockedBuffer
	dir := t.TempDir()
	s, err := Listen(ServerConfig{Dir: dir, Log: slog.New(slog.NewJSONHandler(&out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	c, ok := dialControl(ctx, dir)
	if !ok {
		t.Fatal("the socket does not answer")
	}
	if _, err := c.Users(ctx); err == nil {
		t.Error("a server without services lists users")
	}
	c.Close()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := out.String(); !strings.Contains(got, `"level":"WARN","msg":"http: panic serving`) {
		t.Errorf("logged %q", got)
	}
}

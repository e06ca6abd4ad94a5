package control

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentsite/store"
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

// A backup that fails before its first byte says why at the command line, and not only in the log.
func TestBackup_SaysWhyItFailed(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	db, err := store.Open(t.Context(), dir, log) // a folder without keys
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := Listen(ServerConfig{Dir: dir, DB: db, Log: log})
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
	var out bytes.Buffer
	if err := c.Backup(ctx, &out, ""); err == nil || !strings.Contains(err.Error(), "back up seal.key") || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
	c.Close()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A portal whose folder was replaced leaves the socket of the portal on the new folder alone.
func TestClose_LeavesTheSocketOfAnother(t *testing.T) {
	t.Parallel()
	dir, log := filepath.Join(t.TempDir(), "data"), slog.New(slog.DiscardHandler)
	var portals []*Server
	for i := range 2 {
		if i > 0 {
			if err := os.Rename(dir, dir+".moved"); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := Listen(ServerConfig{Dir: dir, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		portals = append(portals, s)
	}
	portals[0].Close()
	if _, err := os.Stat(filepath.Join(dir, controlSocket)); err != nil {
		t.Error(err)
	}
	portals[1].Close()
	if _, err := os.Stat(filepath.Join(dir, controlSocket)); err == nil {
		t.Error("the socket is left behind")
	}
}

// A socket that was removed comes back, and one that is there stays.
func TestServer_RestoresTheSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Listen(ServerConfig{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	path := filepath.Join(dir, controlSocket)
	for _, remove := range []bool{false, true, true} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if remove {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Restore(); err != nil {
			t.Fatal(err)
		}
		after, err := os.Lstat(path)
		if err != nil || !remove && !os.SameFile(before, after) {
			t.Errorf("removed %v: %v, another socket", remove, err)
		}
		c, ok := dialControl(ctx, dir)
		if !ok {
			t.Fatalf("removed %v: the socket does not answer", remove)
		}
		c.Close()
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.Close()
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is there after the end")
	}
}

// Commands that use the API find the portal that runs on a folder by its socket, unless that is another user's.
func TestRunningAddress_IsThatOfTheOwnPortal(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	if address, ok := RunningAddress(ctx, dir); ok {
		t.Errorf("an empty folder has a portal at %s", address)
	}
	s, err := Listen(ServerConfig{Dir: dir, URL: "http://portal.example:81", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- s.Run(run) }()
	if address, ok := RunningAddress(ctx, dir); !ok || address != "http://portal.example:81" {
		t.Error(address, ok)
	}
	if os.Geteuid() == 0 { // others may not give a file away
		if err := os.Lchown(filepath.Join(dir, controlSocket), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if address, ok := RunningAddress(ctx, dir); ok {
			t.Errorf("the socket of another user sends commands to %s", address)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

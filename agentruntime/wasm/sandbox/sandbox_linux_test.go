package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/testing/wasmtest"
)

func TestMain(m *testing.M) {
	if code, ok := process(os.Args[1:]); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func newPool(t *testing.T, change func(*sandbox.Config)) *sandbox.Pool {
	t.Helper()
	cfg := sandbox.Config{Command: []string{os.Args[0], guest.Argument}, Folder: t.TempDir(), CacheBytes: 1 << 30,
		Children: 2, Limits: sandbox.DefaultLimits(), Modules: stored{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&cfg)
	}
	p := sandbox.New(cfg)
	t.Cleanup(p.Close)
	return p
}

// modules holds the modules of all tests.
var modules sync.Map

type stored struct{}

func (stored) ReadModule(_ context.Context, hash string) ([]byte, error) {
	b, ok := modules.Load(hash)
	if !ok {
		return nil, errors.New("not here")
	}
	return b.([]byte), nil
}

// moduleOf stores a module and returns its hash.
func moduleOf(b []byte) string {
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	modules.Store(hash, b)
	return hash
}

// host records the calls of a program.
type host struct {
	mu    sync.Mutex
	calls []string
	logs  []string
	on    func(ctx context.Context, name string, arg []byte) ([]byte, error)
}

func (h *host) Call(ctx context.Context, name string, arg []byte) ([]byte, error) {
	h.mu.Lock()
	h.calls = append(h.calls, name+" "+string(arg))
	h.mu.Unlock()
	if h.on != nil {
		return h.on(ctx, name, arg)
	}
	return nil, nil
}

func (h *host) Log(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs = append(h.logs, line)
}

func TestCall_RunsAProgram(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	h := &host{}
	for range 3 { // each in an instance of its own
		out, err := p.Call(t.Context(), moduleOf(wasmtest.Says("Hello.").Bytes()), nil, []byte(`{}`), h)
		if err != nil || len(out) > 0 {
			t.Fatalf("%q %v", out, err)
		}
	}
	if len(h.calls) != 3 || h.calls[2] != "reply Hello." {
		t.Errorf("calls %q", h.calls)
	}
	out, err := p.Call(t.Context(), moduleOf(wasmtest.Outputs("out").Bytes()), nil, []byte(`{}`), h)
	if err != nil || string(out) != "out" {
		t.Errorf("%q %v", out, err)
	}
	guards, err := p.Guards(t.Context())
	t.Logf("guards %q, %v", guards, err)
}

func TestCall_StopsAnEndlessLoop(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *sandbox.Config) { c.Limits.Run = 50 * time.Millisecond })
	loop := moduleOf(wasmtest.New(wasmtest.Forever()).Bytes())
	_, err := p.Call(t.Context(), loop, nil, []byte(`{}`), &host{})
	if f, ok := errors.AsType[*sandbox.Failure](err); !ok || f.Status != frame.Expired {
		t.Fatalf("the loop ended with %v", err)
	}
	h := &host{}
	if _, err := p.Call(t.Context(), moduleOf(wasmtest.Says("x").Bytes()), nil, []byte(`{}`), h); err != nil || len(h.calls) != 1 {
		t.Errorf("the next program: %v %q", err, h.calls)
	}
}

// A call that waits inside a function of the portal ends with its context.
func TestCall_EndsInsideAPortalCall(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	h := &host{on: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if _, err := p.Call(ctx, moduleOf(wasmtest.Says("x").Bytes()), nil, []byte(`{}`), h); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestCall_ReplacesAProcess(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := newPool(t, func(c *sandbox.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	m := moduleOf(wasmtest.Says("x").Bytes())
	h := &host{}
	for range 2 {
		if _, err := p.Call(t.Context(), m, nil, []byte(`{}`), h); err != nil {
			t.Fatal(err)
		}
		p.Drop(m)
	}
	// More programs than places: the one that was used longest ago makes room.
	for _, text := range []string{"a", "b", "c", "a"} {
		if _, err := p.Call(t.Context(), moduleOf(wasmtest.Says(text).Bytes()), nil, []byte(`{}`), h); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(h.calls, ","); got != "reply x,reply x,reply a,reply b,reply c,reply a" {
		t.Error(got)
	}
}

func TestCheck_RefusesModules(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *sandbox.Config) { c.Limits.Module = 1 << 20 })
	big := wasmtest.New()
	big.Data = make([]byte, 1<<20)
	for name, b := range map[string][]byte{
		"text":                 []byte("this is no module"),
		"a module over a size": big.Bytes(),
		"an invalid function":  wasmtest.New([]byte{0x6a}).Bytes(),
	} {
		_, err := p.Check(t.Context(), moduleOf(b), b)
		if why, ok := sandbox.IsRefused(err); !ok || why == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := wasmtest.Says("x").Bytes()
	if info, err := p.Check(t.Context(), moduleOf(good), good); err != nil || len(info.Imports) != 3 {
		t.Errorf("%+v %v", info, err)
	}
}

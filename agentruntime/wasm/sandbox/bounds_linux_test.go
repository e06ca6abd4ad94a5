package sandbox_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/wasmtest"
)

// callOnce runs a module and returns its output, or the text of the error.
func callOnce(t *testing.T, p *sandbox.Pool, module []byte) string {
	t.Helper()
	out, err := p.Call(t.Context(), moduleOf(module), nil, []byte(`{}`), &host{})
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// trapUnless are instructions that trap unless the i32 on the stack is the wanted one.
func trapUnless(want int32) []byte {
	return slices.Concat(wasmtest.Const32(want), []byte{0x47, 0x04, 0x40}, wasmtest.Trap(), []byte{0x0b})
}

// A call finds the memory and the variables as the module has them, whatever earlier calls left there.
func TestCall_LeavesNothingForTheNext(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	m := wasmtest.New()
	alloc, get, set := m.Env("alloc", 1, 1), m.Env("var_get", 1, 1), m.Env("var_set", 2, 0)
	m.Functions[0].Body = slices.Concat(
		// The byte at 4096 is 0, and becomes 1.
		wasmtest.Const32(4096), []byte{0x2d, 0, 0}, trapUnless(0),
		wasmtest.Const32(4096), wasmtest.Const32(1), []byte{0x3a, 0, 0},
		// No variable has this name, then one has it.
		wasmtest.Const(8), wasmtest.Call(alloc), wasmtest.Set(0),
		wasmtest.Get(0), wasmtest.Call(get), wasmtest.Const(0), []byte{0x52, 0x04, 0x40}, wasmtest.Trap(), []byte{0x0b},
		wasmtest.Get(0), wasmtest.Get(0), wasmtest.Call(set),
		// It stays within the call.
		wasmtest.Get(0), wasmtest.Call(get), []byte{0x50, 0x04, 0x40}, wasmtest.Trap(), []byte{0x0b},
		wasmtest.Const32(4096), []byte{0x2d, 0, 0}, trapUnless(1))
	for i := range 5 { // more than the instances that wait
		if got := callOnce(t, p, m.Bytes()); got != "" {
			t.Errorf("call %d: %s", i, got)
		}
	}
}

// A memory ends at its bound, and recursion at that of the stack.
func TestCall_BoundsMemoryAndStack(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *sandbox.Config) { c.Limits.Pages = 64 })
	grow := func(by int32) []byte { return slices.Concat(wasmtest.Const32(by), []byte{0x40, 0}) }
	m := wasmtest.New(grow(63), trapUnless(1), grow(1), trapUnless(-1))
	if got := callOnce(t, p, m.Bytes()); got != "" {
		t.Errorf("a memory of 64 pages: %s", got)
	}
	if racetest.Enabled {
		return // there the process may end instead, because the detector needs memory for each stack
	}
	m = wasmtest.New()
	m.Functions[0].Body = wasmtest.Call(m.Run())
	if got := callOnce(t, p, m.Bytes()); !strings.Contains(got, "stack overflow") {
		t.Errorf("endless recursion: %s", got)
	}
}

// A process that uses more memory than it may is killed, and its call says why. Other programs go on.
func TestProcess_IsKilledForItsMemory(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *sandbox.Config) {
		c.Limits.Pages, c.Limits.Resident, c.Limits.Data = 16384, 300<<20, 8<<30
	})
	good := wasmtest.Outputs("within").Bytes()
	if got := callOnce(t, p, good); got != "within" {
		t.Fatalf("a small program: %s", got)
	}
	// It writes into each page of a memory of 1 GiB, and then runs on.
	m := wasmtest.New(wasmtest.Const32(16383), []byte{0x40, 0}, wasmtest.Drop(),
		wasmtest.Times(1<<18, wasmtest.Get(0), []byte{0xa7}, wasmtest.Const32(1), []byte{0x3a, 0, 0},
			wasmtest.Get(0), wasmtest.Const(4096), []byte{0x7c}, wasmtest.Set(0)), wasmtest.Forever())
	if got := callOnce(t, p, m.Bytes()); got != "The program used more memory than it may." {
		t.Errorf("a large program: %s", got)
	}
	if got := callOnce(t, p, good); got != "within" {
		t.Errorf("the small program afterwards: %s", got)
	}
}

// Programs that a process started end with it, in namespaces of its own and without them.
func TestProcess_EndsWithItsChildren(t *testing.T) {
	t.Parallel()
	for _, namespaces := range []string{"own", "shared"} {
		t.Run(namespaces, func(t *testing.T) {
			t.Parallel()
			address := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			p := newPool(t, func(c *sandbox.Config) { c.Command = []string{os.Args[0], "lie", "child", address, namespaces} })
			if got := callOnce(t, p, wasmtest.Says("child").Bytes()); !strings.Contains(got, protocol) {
				t.Errorf("the call ended with %s", got)
			}
			child, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer child.Close()
			if n, err := child.Read(make([]byte, 10)); n != 0 || err == nil {
				t.Errorf("the child wrote %d bytes, %v", n, err)
			}
		})
	}
}

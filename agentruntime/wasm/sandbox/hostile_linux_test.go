package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/testing/wasmtest"
)

// hostile is a module that tries to do harm. want is a part of the reason why it is refused or fails; "" if it may also
// end by itself.
type hostile struct {
	name, want string
	b          []byte
}

func body(code ...[]byte) []byte { return wasmtest.New(code...).Bytes() }

// with returns a module and makes its body after its imports.
func with(make func(m *wasmtest.Module) []byte) []byte {
	m := wasmtest.New()
	m.Functions[0].Body = make(m)
	return m.Bytes()
}

// env returns a module that calls a function of Extism's environment with arguments.
func env(name string, results int, args ...int64) []byte {
	return with(func(m *wasmtest.Module) []byte {
		f := m.Env(name, len(args), results)
		var code []byte
		for _, a := range args {
			code = append(code, wasmtest.Const(a)...)
		}
		code = append(code, wasmtest.Call(f)...)
		return append(code, bytes.Repeat(wasmtest.Drop(), results)...)
	})
}

// wasi returns a module that calls a function of WASI with 32-bit zeros and fails unless it returns an error.
func wasi(name string, params ...byte) []byte {
	return with(func(m *wasmtest.Module) []byte {
		f := m.Import("wasi_snapshot_preview1", name, params, []byte{wasmtest.I32})
		var code []byte
		for _, p := range params {
			if p == wasmtest.I64 {
				code = append(code, wasmtest.Const(0)...)
			} else {
				code = append(code, wasmtest.Const32(3)...)
			}
		}
		// if the result is 0, the function worked: unreachable
		return slices.Concat(code, wasmtest.Call(f), []byte{0x45, 0x04, 0x40, 0x00, 0x0b})
	})
}

func hostileModules() []hostile {
	i32, i64 := wasmtest.I32, wasmtest.I64
	grow := func(pages int32) []byte {
		return slices.Concat(wasmtest.Const32(pages), []byte{0x40, 0}, wasmtest.Drop())
	}
	started := func(code ...[]byte) []byte {
		m := wasmtest.New(code...)
		m.Start = 0
		return m.Bytes()
	}
	initialized := func(code ...[]byte) []byte {
		m := wasmtest.New()
		m.Functions = append(m.Functions, wasmtest.Function{Locals: 4, Body: slices.Concat(code...)})
		m.Exports = map[string]int{"_initialize": 1}
		return m.Bytes()
	}
	table := func(entries int, code ...[]byte) []byte {
		m := wasmtest.New(code...)
		m.Table = entries
		return m.Bytes()
	}
	many := wasmtest.New()
	for range 61_000 {
		many.Functions = append(many.Functions, wasmtest.Function{})
	}
	wide := wasmtest.New()
	wide.Functions[0].Locals = 1 << 30
	long := wasmtest.New(bytes.Repeat(slices.Concat(wasmtest.Const(1), wasmtest.Drop()), 500_000))
	deep := wasmtest.New(bytes.Repeat([]byte{0x02, 0x40}, 200_000), bytes.Repeat([]byte{0x0b}, 200_000))
	paged := wasmtest.New()
	paged.Pages = 65_536
	recursive := func(m *wasmtest.Module) []byte { return wasmtest.Call(m.Run()) }
	userLoop := func(name string) []byte {
		return with(func(m *wasmtest.Module) []byte {
			f := m.User(name)
			return wasmtest.Forever(wasmtest.Const(0), wasmtest.Call(f), wasmtest.Drop())
		})
	}
	logs := with(func(m *wasmtest.Module) []byte {
		alloc, log := m.Env("alloc", 1, 1), m.Env("log_error", 1, 0)
		return wasmtest.Forever(wasmtest.Const(2000), wasmtest.Call(alloc), wasmtest.Call(log))
	})
	output := with(func(m *wasmtest.Module) []byte {
		alloc, out := m.Env("alloc", 1, 1), m.Import("extism:host/env", "output_set", []byte{i64, i64}, nil)
		return slices.Concat(wasmtest.Const(200_000), wasmtest.Call(alloc), wasmtest.Const(200_000), wasmtest.Call(out))
	})
	allocs := with(func(m *wasmtest.Module) []byte {
		return wasmtest.Forever(wasmtest.Const(1000), wasmtest.Call(m.Env("alloc", 1, 1)), wasmtest.Drop())
	})
	vars := with(func(m *wasmtest.Module) []byte {
		alloc, set := m.Env("alloc", 1, 1), m.Env("var_set", 2, 0)
		return wasmtest.Forever(wasmtest.Const(8), wasmtest.Call(alloc), wasmtest.Set(0), wasmtest.Get(0), wasmtest.Get(0),
			wasmtest.Call(set))
	})
	resets := with(func(m *wasmtest.Module) []byte {
		return wasmtest.Forever(wasmtest.Call(m.Env("reset", 0, 0)))
	})
	huge := int64(1) << 62
	return []hostile{
		{"loops for ever", "time", body(wasmtest.Forever())},
		{"loops at the start", "time", started(wasmtest.Forever())},
		{"loops while it is initialized", "time", initialized(wasmtest.Forever())},
		{"traps", "unreachable", body(wasmtest.Trap())},
		{"traps at the start", "unreachable", started(wasmtest.Trap())},
		{"traps while it is initialized", "unreachable", initialized(wasmtest.Trap())},
		{"asks the portal before its task", "before", func() []byte {
			m := wasmtest.New()
			f := m.User("reply")
			m.Functions = append(m.Functions, wasmtest.Function{Body: slices.Concat(wasmtest.Const(0), wasmtest.Call(f), wasmtest.Drop())})
			m.Exports = map[string]int{"_initialize": 2}
			return m.Bytes()
		}()},
		{"grows its memory for ever", "time", body(wasmtest.Forever(grow(16)))},
		{"grows its memory at once", "", body(grow(65_535))},
		{"begins with 4 GiB", "memory", paged.Bytes()},
		{"recurses for ever", "", with(recursive)},
		{"has a table of 2^27 entries", "table", table(1<<27, nil)},
		{"grows a table for ever", "", table(1, wasmtest.Forever([]byte{0xd0, 0x70}, wasmtest.Const32(1_000_000),
			[]byte{0xfc, 0x0f, 0}, wasmtest.Drop()))},
		{"has 61,000 functions", "types", many.Bytes()},
		{"has a billion variables", "variables", wide.Bytes()},
		{"has a function over the bound", "count", long.Bytes()},
		{"nests 200,000 blocks", "", deep.Bytes()},
		{"has a section of 4 GiB", "count", append(wasmtest.New().Bytes(), 0, 0xff, 0xff, 0xff, 0xff, 0x0f)},
		{"has an invalid body", "invalid", body([]byte{0x6a})},
		{"ends too early", "ends", wasmtest.New().Bytes()[:40]},
		{"imports a system call", "offers", with(func(m *wasmtest.Module) []byte {
			return wasmtest.Call(m.Import("env", "execve", nil, nil))
		})},
		{"imports an unknown function", "not exported", with(func(m *wasmtest.Module) []byte {
			return wasmtest.Call(m.Env("open_file", 0, 0))
		})},
		{"imports a function of another type", "signature", with(func(m *wasmtest.Module) []byte {
			return wasmtest.Call(m.Env("alloc", 0, 0))
		})},
		{"floods the output", "output", output},
		{"allocates for ever", "shared memory", allocs},
		{"allocates 2^62 bytes", "shared memory", slices.Concat(env("alloc", 1, huge))},
		{"allocates -1 bytes", "shared memory", env("alloc", 1, -1)},
		{"keeps variables for ever", "", vars},
		{"resets its memory for ever", "time", resets},
		{"floods the log", "", logs},
		{"reads at 2^62", "outside", env("load_u64", 1, huge)},
		{"reads at -1", "outside", env("load_u64", 1, -1)},
		{"writes at -8", "outside", env("store_u64", 0, -8, 1)},
		{"writes behind its memory", "outside", env("store_u64", 0, 1<<20, 1)},
		{"reads the input at -1", "behind", env("input_load_u64", 1, -1)},
		{"reads behind the input", "behind", env("input_load_u64", 1, 1<<20)},
		{"sets an output of 2^62 bytes", "outside", env("output_set", 0, 16, huge)},
		{"sets an output that wraps around", "outside", env("output_set", 0, -1, 2)},
		{"sets an input of -1", "outside", env("input_set", 0, -1, -1)},
		{"frees what is none", "", env("free", 0, 12345)},
		{"sets an error that is none", "", env("error_set", 0, 99_999)},
		{"asks for settings at -1", "", env("config_get", 1, -1)},
		{"asks for HTTP without a request", "HTTP", env("http_request", 1, 0, 0)},
		{"replies for ever", "", userLoop("reply")},
		{"asks for ever", "", userLoop("ask")},
		{"opens a file", "", wasi("path_open", i32, i32, i32, i32, i32, i64, i64, i32, i32)},
		{"reads a folder", "", wasi("fd_readdir", i32, i32, i32, i64, i32)},
		{"asks for an open folder", "", wasi("fd_prestat_get", i32, i32)},
		{"accepts a connection", "", wasi("sock_accept", i32, i32, i32)},
		{"sends to a socket", "", wasi("sock_send", i32, i32, i32, i32, i32)},
		{"makes a folder", "", wasi("path_create_directory", i32, i32, i32)},
		{"ends the process", "", with(func(m *wasmtest.Module) []byte {
			return slices.Concat(wasmtest.Const32(7), wasmtest.Call(m.Import("wasi_snapshot_preview1", "proc_exit", []byte{i32}, nil)))
		})},
		{"sleeps for years", "time", with(func(m *wasmtest.Module) []byte {
			f := m.Import("wasi_snapshot_preview1", "poll_oneoff", []byte{i32, i32, i32, i32}, []byte{i32})
			store := func(at int32, v int64) []byte {
				return slices.Concat(wasmtest.Const32(at), wasmtest.Const(v), []byte{0x37, 0x03, 0})
			}
			return wasmtest.Forever(store(64+24, 1<<60), wasmtest.Const32(64), wasmtest.Const32(256), wasmtest.Const32(1),
				wasmtest.Const32(512), wasmtest.Call(f), wasmtest.Drop())
		})},
		{"measures time finely", "", with(func(m *wasmtest.Module) []byte {
			f := m.Import("wasi_snapshot_preview1", "clock_time_get", []byte{i32, i64, i32}, []byte{i32})
			// Two different times less than 20 ms apart are a trap.
			read := slices.Concat(wasmtest.Const32(1), wasmtest.Const(0), wasmtest.Const32(64), wasmtest.Call(f), wasmtest.Drop(),
				wasmtest.Const32(64), []byte{0x29, 0x03, 0}, wasmtest.Set(0))
			odd := slices.Concat(wasmtest.Get(0), wasmtest.Const(20_000_000), []byte{0x82}, wasmtest.Const(0),
				[]byte{0x52, 0x04, 0x40, 0x00, 0x0b})
			return wasmtest.Times(2000, read, odd)
		})},
	}
}

// No module has an effect outside its process: it is refused or stopped, and the portal and other programs go on.
func TestHostile_ModulesStayInside(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *sandbox.Config) {
		c.Limits.Run, c.Limits.Start, c.Limits.Pages = 300*time.Millisecond, 300*time.Millisecond, 64
		c.Limits.Shared, c.Limits.Output, c.Limits.Resident = 1<<20, 64<<10, 400<<20
		c.Limits.Load = 3 * time.Second
	})
	good := moduleOf(wasmtest.Says("Still here.").Bytes())
	list := hostileModules()
	if len(list) < 40 {
		t.Fatalf("only %d modules", len(list))
	}
	for _, m := range list {
		calls := 0
		ctx, cancel := context.WithCancelCause(t.Context())
		h := &host{on: func(context.Context, string, []byte) ([]byte, error) {
			if calls++; calls > 1000 {
				cancel(errors.New("too many calls")) // as the driver does
			}
			return nil, nil
		}}
		hash := moduleOf(m.b)
		_, err := p.Check(ctx, hash, m.b)
		if err == nil {
			_, err = p.Call(ctx, hash, nil, []byte(`{}`), h)
		}
		cancel(nil)
		if m.want != "" && (err == nil || !strings.Contains(err.Error(), m.want)) {
			t.Errorf("a module that %s: %v, want %q", m.name, err, m.want)
		}
		if strings.HasPrefix(m.name, "opens") || strings.Contains(m.name, "folder") || strings.Contains(m.name, "socket") ||
			strings.Contains(m.name, "connection") || strings.Contains(m.name, "finely") {
			if err != nil && strings.Contains(err.Error(), "unreachable") {
				t.Errorf("a module that %s can do that", m.name)
			}
		}
		for _, c := range h.calls {
			if !strings.HasPrefix(c, "reply ") && !strings.HasPrefix(c, "ask ") {
				t.Errorf("a module that %s called %q", m.name, c)
			}
		}
	}
	h := &host{}
	if _, err := p.Call(t.Context(), good, nil, []byte(`{}`), h); err != nil || len(h.calls) != 1 {
		t.Errorf("a program after all of them: %v %q", err, h.calls)
	}
}

// lies are the ways in which a process misbehaves after a program has escaped in it.
var lies = []string{"silent", "huge", "unknown", "ready", "stray", "twice", "logs", "noise", "gone", "deaf", "hangs", "half", "child",
	"setup", "answer"}

// lie is the process.
func lie(how string) int {
	out := func(b []byte) { os.Stdout.Write(b) }
	send := func(f frame.Frame) { frame.Write(os.Stdout, f) }
	head := func(kind frame.Kind, size, call uint32) []byte {
		return binary.BigEndian.AppendUint32(append(binary.BigEndian.AppendUint32(nil, size), byte(kind)), call)
	}
	module, _ := frame.Read(os.Stdin)
	module, _ = frame.Read(os.Stdin)
	ready := frame.Frame{Kind: frame.Ready, Body: []byte(`{}`)}
	if how == "silent" {
		select {}
	}
	if send(ready); bytes.HasSuffix(module.Body, []byte("\x00\x0b")) && len(module.Body) < 50 {
		io.Copy(io.Discard, os.Stdin) // the portal's own first module
		return 0
	}
	call, _ := frame.Read(os.Stdin)
	switch how {
	case "huge":
		out(head(frame.Done, 1<<31, call.Call))
	case "unknown":
		out(head(99, 0, call.Call))
	case "ready":
		send(ready)
		send(ready)
	case "stray":
		send(frame.Frame{Kind: frame.Done, Call: call.Call + 1, Body: []byte{0}})
	case "twice":
		for range 10 {
			send(frame.Frame{Kind: frame.Host, Call: call.Call, Body: frame.HostBody("reply", nil)})
		}
	case "logs":
		for range 1000 {
			send(frame.Frame{Kind: frame.Log, Call: call.Call, Body: make([]byte, 1000)})
		}
	case "noise":
		for range 1000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 1000))
		}
	case "gone":
		return 3
	case "half":
		out(head(frame.Done, 1000, call.Call))
		out([]byte("x"))
	case "child":
		exec.Command(os.Args[0], "sleep").Start()
	case "setup":
		send(frame.Frame{Kind: frame.Setup, Body: []byte("{}")})
	case "answer":
		send(frame.Frame{Kind: frame.Host, Call: call.Call, Body: []byte{40, 'x'}})
	}
	select {}
}

// A process that does not keep to the protocol is ended, whatever it sends, and its call fails.
func TestHostile_ProcessesAreEnded(t *testing.T) {
	t.Parallel()
	for _, how := range lies {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, func(c *sandbox.Config) {
				c.Command = []string{os.Args[0], "lie", how}
				c.Limits.Run, c.Limits.Load = 200*time.Millisecond, 2*time.Second
			})
			h := &host{}
			_, err := p.Call(t.Context(), moduleOf(wasmtest.Says(how).Bytes()), nil, []byte(`{}`), h)
			if err == nil || len(h.calls) > 10 {
				t.Errorf("ended with %v, calls %q", err, h.calls)
			}
		})
	}
}

// A process that is being killed for one call takes no other one: each call fails at its own deadline.
func TestProcess_ThatIsKilledTakesNoCall(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *sandbox.Config) {
		c.Command = []string{os.Args[0], "lie", "hangs"}
		c.Limits.Run = 20 * time.Millisecond
	})
	hash := moduleOf(wasmtest.Says("hangs twice").Bytes())
	for i := range 20 {
		_, err := p.Call(t.Context(), hash, nil, []byte(`{}`), &host{})
		if f, ok := errors.AsType[*sandbox.Failure](err); !ok || f.Status != frame.Expired {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

// A process inherits nothing: no environment, and no descriptors but its pipes.
func TestProcess_InheritsNothing(t *testing.T) {
	t.Setenv("SECRET", "canary")
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := newPool(t, func(c *sandbox.Config) { c.Command = []string{os.Args[0], "lie", "inspect"} })
	_, err = p.Call(t.Context(), moduleOf(wasmtest.Says("x").Bytes()), nil, []byte(`{}`), &host{})
	failure, ok := errors.AsType[*sandbox.Failure](err)
	if !ok || failure.Text != "environment [], descriptors [pipe: pipe: pipe:]" {
		t.Errorf("the process has %v", err)
	}
}

// inspect answers the first call with a list of all that the process inherited.
func inspect() int {
	var open []string
	list, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range list {
		link, err := os.Readlink("/proc/self/fd/" + fd.Name())
		// Go's poller and its view of the processors, and the folder that is read
		if err == nil && !strings.HasPrefix(link, "anon_inode:") && !strings.HasPrefix(link, "/sys/fs/cgroup/") &&
			!strings.Contains(link, "/fd") {
			open = append(open, strings.TrimRight(link, "0123456789[]"))
		}
	}
	frame.Read(os.Stdin)
	frame.Read(os.Stdin)
	frame.Write(os.Stdout, frame.Frame{Kind: frame.Ready, Body: []byte(`{}`)})
	for {
		call, err := frame.Read(os.Stdin)
		if err != nil {
			return 0
		}
		text := fmt.Sprintf("environment %v, descriptors %v", os.Environ(), open)
		frame.Write(os.Stdout, frame.Frame{Kind: frame.Done, Call: call.Call, Body: frame.WithStatus(frame.Failed, []byte(text))})
	}
}

// process is the entry of this test program as a child.
func process(args []string) (code int, ok bool) {
	switch {
	case len(args) == 1 && args[0] == guest.Argument:
		return guest.Run(), true
	case len(args) == 2 && args[0] == "lie" && args[1] == "inspect":
		return inspect(), true
	case len(args) == 2 && args[0] == "lie":
		return lie(args[1]), true
	case len(args) == 1 && args[0] == "sleep":
		select {}
	}
	return 0, false
}

package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/testing/wasmtest"
)

// No module has an effect outside its process: it is refused or stopped, and the portal and other programs go on.
func TestHostile_ModulesStayInside(t *testing.T) {
	t.Parallel()
	bounded := func(run, load time.Duration) *sandbox.Pool {
		return newPool(t, func(c *sandbox.Config) {
			c.Limits.Run, c.Limits.Start, c.Limits.Load, c.Limits.Pages = run, run, load, 64
			c.Limits.Shared, c.Limits.Output, c.Limits.Resident = 1<<20, 64<<10, 400<<20
		})
	}
	// Modules that another bound ends have time for it on a busy machine.
	hasty, patient := bounded(300*time.Millisecond, 3*time.Second), bounded(time.Minute, time.Minute)
	good := moduleOf(wasmtest.Says("Still here.").Bytes())
	list := wasmtest.HostileModules()
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
		p := hasty
		if m.Want != "" && m.Want != "time" {
			p = patient
		}
		hash := moduleOf(m.Bytes)
		_, err := p.Check(ctx, hash, m.Bytes)
		if err == nil {
			_, err = p.Call(ctx, hash, nil, []byte(`{}`), h)
		}
		cancel(nil)
		if m.Want != "" && (err == nil || !strings.Contains(err.Error(), m.Want)) {
			t.Errorf("a module that %s: %v, want %q", m.Name, err, m.Want)
		}
		if strings.HasPrefix(m.Name, "opens") || strings.Contains(m.Name, "folder") || strings.Contains(m.Name, "socket") ||
			strings.Contains(m.Name, "connection") || strings.Contains(m.Name, "finely") || strings.Contains(m.Name, "environment") {
			if err != nil && strings.Contains(err.Error(), "unreachable") {
				t.Errorf("a module that %s can do that", m.Name)
			}
		}
		logged := 0
		for _, line := range h.logs {
			logged += len(line)
		}
		if logged > 32<<10 {
			t.Errorf("a module that %s logged %d bytes", m.Name, logged)
		}
		for _, c := range h.calls {
			if !strings.HasPrefix(c, "reply ") && !strings.HasPrefix(c, "ask ") {
				t.Errorf("a module that %s called %q", m.Name, c)
			}
		}
	}
	for _, p := range []*sandbox.Pool{hasty, patient} {
		h := &host{}
		if _, err := p.Call(t.Context(), good, nil, []byte(`{}`), h); err != nil || len(h.calls) != 1 {
			t.Errorf("a program after all of them: %v %q", err, h.calls)
		}
	}
}

// lies are the ways in which a process misbehaves after a program has escaped in it, each with a part of the reason for
// which it is ended.
var lies = map[string]string{"silent": "too long to load", "huge": protocol, "unknown": protocol, "ready": protocol,
	"stray": protocol, "twice": protocol, "logs": protocol, "noise": "in time", "gone": "ended", "hangs": "in time",
	"half": "in time", "setup": protocol, "answer": protocol}

const protocol = "broke the protocol"

// endings is a slog.Handler that has the reasons for which processes ended.
type endings chan string

func (endings) Enabled(context.Context, slog.Level) bool { return true }
func (e endings) WithAttrs([]slog.Attr) slog.Handler     { return e }
func (e endings) WithGroup(string) slog.Handler          { return e }

func (e endings) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "a process of a hosted program ended" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			e <- a.Value.String()
		}
		return true
	})
	return nil
}

// lie is the process.
func lie(how string) int {
	out := func(b []byte) { os.Stdout.Write(b) }
	send := func(f frame.Frame) { frame.Write(os.Stdout, f) }
	head := func(kind frame.Kind, size, call uint32) []byte {
		return binary.BigEndian.AppendUint32(append(binary.BigEndian.AppendUint32(nil, size), byte(kind)), call)
	}
	setup, _ := frame.Read(os.Stdin)
	module, _ := frame.Read(os.Stdin)
	ready := frame.Frame{Kind: frame.Ready, Body: []byte(`{}`)}
	if how == "child" && os.Args[4] == "shared" && bytes.Contains(setup.Body, []byte(`"isolated":true`)) {
		ready.Body = []byte(`{"unlocked":true,"failure":"no namespaces here"}`)
	}
	if how == "silent" {
		pause()
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
		// The portal ends this process once the child has reached the test.
		cmd := exec.Command(os.Args[0], "sleep", os.Args[3])
		connected, _ := cmd.StdoutPipe()
		cmd.Start()
		connected.Read(make([]byte, 1))
		send(frame.Frame{Kind: frame.Setup, Body: []byte("{}")})
	case "setup":
		send(frame.Frame{Kind: frame.Setup, Body: []byte("{}")})
	case "answer":
		send(frame.Frame{Kind: frame.Host, Call: call.Call, Body: []byte{40, 'x'}})
	}
	pause()
	return 0
}

// pause never returns. An empty select would end a program without C code, as a deadlock.
func pause() {
	for {
		_ = unix.Pause() // signals of Go's runtime interrupt it
	}
}

// A process that does not keep to the protocol is ended, whatever it sends, and its call fails.
func TestHostile_ProcessesAreEnded(t *testing.T) {
	t.Parallel()
	for how, want := range lies {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ended, reason := make(endings, 10), make(chan string, 1)
			p := newPool(t, func(c *sandbox.Config) {
				c.Command, c.Log = []string{os.Args[0], "lie", how}, slog.New(ended)
				switch want {
				case "in time":
					c.Limits.Run = 200 * time.Millisecond
				case "too long to load":
					c.Limits.Load = 200 * time.Millisecond
				}
			})
			// The portal works on the first question until the process is ended for the next one.
			h := &host{on: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				select {
				case text := <-ended:
					reason <- text
				case <-ctx.Done():
				}
				return nil, nil
			}}
			_, err := p.Call(t.Context(), moduleOf(wasmtest.Says(how).Bytes()), nil, []byte(`{}`), h)
			var got string
			select {
			case got = <-reason:
			case got = <-ended:
			}
			if err == nil || !strings.Contains(got, want) || len(h.calls) > 1 {
				t.Errorf("ended with %v for %q, want %q; calls %q", err, got, want, h.calls)
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

// A process inherits nothing: no environment, and no descriptors but its pipes. All of its threads have a low priority.
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
	if !ok || failure.Text != "environment [], descriptors [pipe: pipe: pipe:], nice [10]" {
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
		text := fmt.Sprintf("environment %v, descriptors %v, nice %v", os.Environ(), open, niceOfThreads())
		frame.Write(os.Stdout, frame.Frame{Kind: frame.Done, Call: call.Call, Body: frame.WithStatus(frame.Failed, []byte(text))})
	}
}

// niceOfThreads returns the different priorities of the threads of this process.
func niceOfThreads() (all []string) {
	stats, _ := filepath.Glob("/proc/self/task/*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		_, rest, _ := bytes.Cut(b, []byte(") ")) // the name may have spaces
		if fields := bytes.Fields(rest); err == nil && len(fields) > 16 && !slices.Contains(all, string(fields[16])) {
			all = append(all, string(fields[16]))
		}
	}
	return all
}

// process is the entry of this test program as a child.
func process(args []string) (code int, ok bool) {
	switch {
	case len(args) == 1 && args[0] == guest.Argument:
		return guest.Run(), true
	case len(args) == 2 && args[0] == "lie" && args[1] == "inspect":
		return inspect(), true
	case len(args) == 2 && args[0] == "lie" && args[1] == "unshared":
		return unshared(), true
	case len(args) >= 2 && args[0] == "lie":
		return lie(args[1]), true
	case len(args) == 1 && args[0] == "escape":
		return escape(), true
	case len(args) == 2 && args[0] == "sleep":
		conn, err := net.Dial("unix", args[1])
		if err != nil {
			return 1, true
		}
		os.Stdout.WriteString("x")
		conn.Read(make([]byte, 1)) // until the end
	}
	return 0, false
}

package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/testing/wasmtest"
)

// escaped is a program that runs outside of WebAssembly, in a process that was locked down. It reports its rights.
type escaped struct{}

func (escaped) Prepare() {}

func (escaped) Run(context.Context, *guest.Call, frame.Start) (frame.Status, []byte) {
	b, err := json.Marshal(ownRights())
	if err != nil {
		return frame.Failed, []byte(err.Error())
	}
	return frame.OK, b
}

// rights are the actions that native code in a process can take.
type rights struct {
	Files, Folder, Cards, Dials, Capabilities, Limits string
	PID                                               int
	Gains                                             bool // rights by starting a program
}

func ownRights() (r rights) {
	r.PID = os.Getpid()
	_, err := os.ReadFile("/etc/passwd")
	r.Files = fmt.Sprint(err)
	entries, _ := os.ReadDir("/")
	for _, e := range entries {
		r.Folder += e.Name() + " "
	}
	cards, _ := net.Interfaces()
	for _, c := range cards {
		r.Cards += fmt.Sprintf("%s %s, ", c.Name, c.Flags)
	}
	conn, err := net.Dial("udp", "192.0.2.1:53") // sends nothing; it needs a route
	if err == nil {
		conn.Close()
	}
	r.Dials = fmt.Sprint(err)
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err = unix.Capget(&head, &data[0])
	r.Capabilities = fmt.Sprint(data, err)
	for _, which := range []int{unix.RLIMIT_CORE, unix.RLIMIT_NOFILE, unix.RLIMIT_DATA} {
		var l unix.Rlimit
		err := unix.Getrlimit(which, &l)
		r.Limits += fmt.Sprintf("%d of %d %v, ", l.Cur, l.Max, err)
	}
	closed, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	r.Gains = closed != 1 || err != nil
	return r
}

// escape is the process of such a program.
func escape() int {
	return guest.Serve(func([]byte, frame.Settings) (guest.Program, error) { return escaped{}, nil })
}

// A program that escaped from WebAssembly finds limits of the operating system and, where the kernel allows namespaces,
// no network, no process but its own, no capability, and no folder but that of its compiled code.
func TestProcess_GivesNothingToAnEscapedProgram(t *testing.T) {
	t.Parallel()
	var folder string
	p := newPool(t, func(c *sandbox.Config) {
		c.Command = []string{os.Args[0], "escape"}
		c.Limits.Data = 3 << 30
		folder = c.Folder
	})
	if err := os.WriteFile(folder+"/secret", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := p.Call(t.Context(), moduleOf(wasmtest.Says("escape").Bytes()), nil, []byte(`{}`), &host{})
	if err != nil {
		t.Fatal(err)
	}
	var r rights
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if r.Limits != "0 of 0 <nil>, 32 of 32 <nil>, 3221225472 of 3221225472 <nil>, " {
		t.Errorf("limits %s", r.Limits)
	}
	guards, err := p.Guards(t.Context())
	if err != nil || !slices.Contains(guards, frame.GuardLimits) {
		t.Errorf("guards %q, %v", guards, err)
	}
	if !slices.Contains(guards, frame.GuardPrivileges) {
		// A binary with C code cannot give them up. bench/nightly builds this test without.
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "privileges") {
			t.Errorf("it keeps its privileges: %q", guards)
		}
	} else if r.Capabilities != "[{0 0 0} {0 0 0}] <nil>" || r.Gains {
		t.Errorf("capabilities %s, gains others: %t", r.Capabilities, r.Gains)
	}
	if !slices.Contains(guards, frame.GuardFolder) {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "namespaces") {
			t.Fatalf("only %q", guards)
		}
		t.Skipf("the kernel allows no namespaces, only %q", guards)
	}
	if !strings.Contains(r.Files, "no such file") || r.Folder != "" {
		t.Errorf("a file outside: %s; the folder has %q", r.Files, r.Folder)
	}
	if strings.Contains(r.Cards, "up") || !strings.Contains(r.Dials, "unreachable") {
		t.Errorf("network %s, dialling: %s", r.Cards, r.Dials)
	}
	if r.PID != 1 {
		t.Errorf("it is process %d among others", r.PID)
	}
}

// Where the kernel allows no namespaces, programs run without them, and the portal logs that once.
func TestProcess_WithoutNamespacesIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := newPool(t, func(c *sandbox.Config) {
		c.Command = []string{os.Args[0], "lie", "unshared"}
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for _, text := range []string{"a", "b"} {
		if _, err := p.Call(t.Context(), moduleOf(wasmtest.Says(text).Bytes()), nil, []byte(`{}`), &host{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := log.String(); strings.Count(got, "without namespaces") != 1 {
		t.Errorf("logged: %s", got)
	}
}

// unshared is a process that cannot shut itself in.
func unshared() int {
	setup, _ := frame.Read(os.Stdin)
	frame.Read(os.Stdin)
	var set frame.Settings
	if err := json.Unmarshal(setup.Body, &set); err != nil {
		return 1
	}
	state := frame.State{}
	if set.Isolated {
		state = frame.State{Failure: "no chroot here", Unlocked: true}
	}
	b, err := json.Marshal(state)
	if err != nil {
		return 1
	}
	frame.Write(os.Stdout, frame.Frame{Kind: frame.Ready, Body: b})
	for {
		call, err := frame.Read(os.Stdin)
		if err != nil {
			return 0
		}
		frame.Write(os.Stdout, frame.Frame{Kind: frame.Done, Call: call.Call, Body: frame.WithStatus(frame.OK, nil)})
	}
}

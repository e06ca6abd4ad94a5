package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	driver "agentsite/agentruntime/link"
	door "agentsite/handlers/link"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/linkwire"
	"agentsite/internal/task"
	"agentsite/internal/testing/agenttest"
)

// waitTime bounds a wait. It is long, because a busy machine must not fail a test.
const waitTime = 3 * time.Minute

// TestMain makes this test binary act as the client in Go.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && strings.HasPrefix(os.Args[1], "http://") {
		main()
	}
	// The clients wait before they connect again, so all run at once.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// cutter passes connections on to a server until they are cut.
type cutter struct {
	net.Listener
	to string

	mu  sync.Mutex // guards all
	all []net.Conn
}

func newCutter(t *testing.T, to string) *cutter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			c.mu.Lock()
			c.all = append(c.all, in, out)
			c.mu.Unlock()
			for a, b := range map[net.Conn]net.Conn{in: out, out: in} {
				wg.Go(func() { io.Copy(a, b); a.Close() })
			}
		}
	})
	t.Cleanup(func() { l.Close(); c.cut(); wg.Wait() })
	return c
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		conn.Close()
	}
	c.all = nil
}

// sink tells of each piece of text.
type sink struct {
	agenttest.Recorder
	pieces chan string
}

// Text implements task.Sink.
func (s *sink) Text(delta string) {
	s.Recorder.Text(delta)
	s.pieces <- delta
}

const secret = ident.TokenPrefix + "test"

// states is a driver.Observer that passes the states on.
type states chan<- hub.Live

func (s states) Observe(_ context.Context, _ string, l hub.Liveness) { s <- l.State }

// ada is the only account. Her token is secret, and every agent is hers.
type ada struct{}

func (ada) AuthenticateProgram(_ *http.Request, token string) (ident.Actor, error) {
	if token != secret {
		return ident.Actor{}, fault.New(fault.Unauthenticated, "Your token is unknown.")
	}
	return ident.Actor{Kind: ident.Person, ID: "ada"}, nil
}

func (ada) Guard(ctx context.Context, _ ident.Actor) (context.Context, func()) {
	return context.WithCancel(ctx)
}

func (ada) Claim(_ context.Context, a ident.Actor, h linkwire.Hello) (task.Attached, error) {
	return task.Attached{AgentID: h.Name, Name: h.Name, OwnerID: a.ID}, nil
}

func (ada) Holds(context.Context, ident.Actor, task.Attached) error { return nil }

// portal is the real door and the real driver behind a line that can be cut.
func portal(t *testing.T) (*driver.Driver, *cutter, <-chan hub.Live) {
	seen := make(chan hub.Live, 1000)
	d := driver.New(driver.Config{Portal: "portal.example", Observer: states(seen)})
	srv := httptest.NewServer(door.New(door.Config{Callers: ada{}, Accounts: ada{}, Agents: ada{}, Attach: d}))
	t.Cleanup(func() { d.Close(); srv.Close() })
	return d, newCutter(t, srv.Listener.Addr().String()), seen
}

func start(d *driver.Driver, text string) (out *sink, result <-chan task.Result, stop context.CancelFunc) {
	out = &sink{pieces: make(chan string, 10_000)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan task.Result, 1)
	go func() {
		defer close(done)
		res, err := d.Run(ctx, task.Call{TaskID: ident.NewID(), MessageID: ident.NewID(), Attempt: 1, Agent: task.Target{ID: "echo", Name: "echo"},
			Parts: []task.Part{task.TextPart(text)}}, out)
		if err == nil {
			done <- res
		}
	}()
	return out, done, stop
}

// client returns the command line of a client; it skips the test where there
// is no such thing, unless the environment says that there must be.
func client(t *testing.T, which string) []string {
	need := func(program string) string {
		path, err := exec.LookPath(program)
		if err != nil {
			if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), program) {
				t.Fatal(err)
			}
			t.Skipf("%s is not here", program)
		}
		return path
	}
	switch which {
	case "JavaScript":
		node := need("node")
		version, err := exec.Command(node, "-p", "typeof WebSocket + process.versions.node").Output()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(version), "undefined") { // before 22 it has to be asked for
			return []string{node, "--experimental-websocket", "../link.mjs"}
		}
		return []string{node, "../link.mjs"}
	case "Python":
		return []string{need("python3"), "../link.py"}
	}
	return []string{os.Args[0]}
}

func TestClients(t *testing.T) {
	for _, which := range []string{"Go", "JavaScript", "Python"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			args := client(t, which)
			d, line, seen := portal(t)
			cmd := exec.Command(args[0], append(args[1:], "http://"+line.Addr().String(), "echo")...)
			cmd.Env = append(os.Environ(), "AGENTSITE_TOKEN="+secret)
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				cmd.Process.Kill()
				cmd.Wait()
				if t.Failed() {
					t.Log(said.String())
				}
			}()
			select {
			case l := <-seen:
				if l != hub.Alive {
					t.Fatal(l)
				}
			case <-time.After(waitTime):
				t.Fatal("it does not connect")
			}
			want := func(result <-chan task.Result, text string) {
				t.Helper()
				select {
				case r := <-result:
					if got := task.PlainText(r.Parts); r.State != task.Completed || got != agenttest.Echoed(text) {
						t.Errorf("%s %q %q", r.State, got, r.Reason)
					}
				case <-time.After(waitTime):
					t.Fatal("no answer")
				}
			}
			_, first, _ := start(d, "hello")
			want(first, "hello")
			// Two answers at once, cut in the middle, twice.
			long := strings.Repeat("Grüße aus 東京 ☃ ", 25)
			out, result, _ := start(d, long)
			_, second, _ := start(d, long+"too")
			for range 2 {
				for range 5 {
					<-out.pieces
				}
				line.cut()
			}
			want(result, long)
			want(second, long+"too")
			if out.Shown() != agenttest.Echoed(long) {
				t.Errorf("shown %q", out.Shown())
			}
			// A frame of more than 64 KiB each way, and one that is stopped.
			big := strings.Repeat("a", 100<<10)
			_, result, _ = start(d, big)
			want(result, big)
			out, result, stop := start(d, long)
			<-out.pieces
			stop()
			if r, ok := <-result; ok {
				t.Errorf("stopped, and yet %+v", r)
			}
			_, result, _ = start(d, "still there?")
			want(result, "still there?")
		})
	}
}

func TestClients_StayAwayWhenRefused(t *testing.T) {
	for _, which := range []string{"Go", "JavaScript", "Python"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			args := client(t, which)
			d, line, seen := portal(t)
			_ = d
			ctx, cancel := context.WithTimeout(t.Context(), waitTime)
			defer cancel()
			cmd := exec.CommandContext(ctx, args[0], append(args[1:], "http://"+line.Addr().String(), "echo")...)
			cmd.Env = append(os.Environ(), "AGENTSITE_TOKEN="+secret)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-seen
			// Another program takes its place.
			s, err := linkwire.Dial(ctx, "http://"+line.Addr().String(), secret, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Wait()
			defer s.Close("bye")
			if err := s.Send(ctx, linkwire.EncodeRequest(1, linkwire.MethodHello, linkwire.Hello{Protocol: 1, Name: "echo"})); err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestClients_AreShort counts lines of code: not comments, imports and blanks.
func TestClients_AreShort(t *testing.T) {
	for _, name := range []string{"main.go", "../link.mjs", "../link.py"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n, imports := 0, false
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			switch {
			case line == "import (":
				imports = true
			case imports:
				imports = line != ")"
			case line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "package "):
				n++
			}
		}
		if n > 60 {
			t.Errorf("%s has %d lines", name, n)
		}
		t.Logf("%s: %d", name, n)
	}
}

// Package guest is the child process that runs one hosted program. The portal starts its own binary with the argument
// Argument, and talks to it over standard input and output, see package frame. The process has an empty environment and
// no other files; it ends when its input ends. Each call runs in an instance of its own, which is then dropped.
//
// Programs use Extism's ABI, implemented here on wazero: Extism's own host library would bring its HTTP client into
// the process, and cannot initialize instances before they are called.
package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"agentsite/agentruntime/wasm/frame"
)

// Argument is the argument with which the portal's binary becomes such a process.
const Argument = "run-hosted-program"

// maxThreads bounds the processors that one program may keep busy.
const maxThreads = 2

// gcPercent makes garbage collections more frequent than Go's 100, because a portal has many such processes, and
// memories of dropped instances are most of their garbage.
const gcPercent = 25

// Program serves calls in the process. Its methods are safe for concurrent use.
type Program interface {
	// Run runs one call. After ctx ends it should return soon: if it does not, the portal kills the process.
	Run(ctx context.Context, c *Call, s frame.Start) (frame.Status, []byte)
	// Prepare is called after each call, to get ready for the next one.
	Prepare()
}

// Run serves the calls of one hosted program until the input ends, and returns the exit status.
func Run() int { return Serve(loadModule) }

// Serve serves calls until the input ends, and returns the exit status. load gets the bytes of the Module frame; its
// error is a text for people.
func Serve(load func(module []byte, set frame.Settings) (Program, error)) int {
	in, out := os.Stdin, &writer{w: os.Stdout}
	// A library that prints something must not write into the frames.
	os.Stdout = os.Stderr
	runtime.GOMAXPROCS(maxThreads)
	debug.SetGCPercent(gcPercent)
	r := bufio.NewReader(in)
	set, err := readSettings(r)
	if err != nil {
		return 1
	}
	guards, err := lockDown(&set)
	if err != nil {
		out.sendState(frame.State{Failure: err.Error(), Unlocked: true})
		return 1
	}
	if set.DataBytes > 0 {
		debug.SetMemoryLimit(int64(set.DataBytes) * 3 / 4)
	}
	f, err := frame.Read(r)
	if err != nil || f.Kind != frame.Module {
		return 1
	}
	s := &server{out: out, calls: make(map[uint32]*Call)}
	// The input is read while the module is compiled, so that the process ends with the portal at any time.
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		state := frame.State{Guards: guards}
		var err error
		if s.prog, err = load(f.Body, set); err != nil {
			state.Failure = clipText(firstLine(err))
		}
		debug.FreeOSMemory() // compiling needs more memory than running
		out.sendState(state)
	}()
	for {
		f, err := frame.Read(r)
		if err != nil {
			return 0
		}
		<-loaded
		s.handleFrame(f)
	}
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func readSettings(r io.Reader) (frame.Settings, error) {
	var set frame.Settings
	f, err := frame.Read(r)
	if err == nil && f.Kind != frame.Setup {
		err = frame.ErrFrame
	}
	if err == nil {
		err = json.Unmarshal(f.Body, &set)
	}
	return set, err
}

// server holds the program and its calls.
type server struct {
	out  *writer
	prog Program

	mu    sync.Mutex // guards calls
	calls map[uint32]*Call
}

// loadModule compiles the module and prepares its first instances.
func loadModule(b []byte, set frame.Settings) (Program, error) {
	ctx := context.Background()
	conf := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(set.Pages).
		WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	if set.Cache != "" {
		// Without the cache the module is compiled, which only takes longer.
		if cache, err := wazero.NewCompilationCacheWithDir(set.Cache); err == nil {
			conf = conf.WithCompilationCache(cache)
		}
	}
	p := &program{runtime: wazero.NewRuntimeWithConfig(ctx, conf), settings: set}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return nil, err
	}
	err := exportAll(ctx, p.runtime)
	if err == nil {
		p.compiled, err = p.runtime.CompileModule(ctx, b)
	}
	if err == nil {
		err = p.prepareInstances(ctx)
	}
	return p, err
}

// handleFrame takes a frame of the portal. It does not block for long.
func (s *server) handleFrame(f frame.Frame) {
	s.mu.Lock()
	c := s.calls[f.Call]
	s.mu.Unlock()
	switch {
	case f.Kind == frame.Call && c == nil:
		s.beginCall(f)
	case f.Kind == frame.Answer && c != nil:
		c.answers <- f.Body
	case f.Kind == frame.Cancel && c != nil:
		c.cancel(errCancelled)
	}
}

func (s *server) beginCall(f frame.Frame) {
	var start frame.Start
	if json.Unmarshal(f.Body, &start) != nil {
		return // the portal writes the frame, so this does not happen
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Call{id: f.Call, out: s.out, config: start.Config, answers: make(chan []byte, 1), cancel: cancel}
	c.clock = startStopwatch(time.Duration(start.Millis)*time.Millisecond, func() { cancel(errExpired) })
	s.mu.Lock()
	s.calls[c.id] = c
	s.mu.Unlock()
	go func() {
		status, out := s.prog.Run(ctx, c, start)
		c.clock.timer.Stop()
		s.mu.Lock()
		delete(s.calls, c.id)
		s.mu.Unlock()
		s.out.sendFrame(frame.Frame{Kind: frame.Done, Call: c.id, Body: frame.WithStatus(status, out)})
		cancel(nil)
		s.prog.Prepare()
	}()
}

// writer writes frames from several goroutines. If the portal is gone, the process is about to end.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *writer) sendFrame(f frame.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if frame.Write(w.w, f) != nil {
		os.Exit(1)
	}
}

func (w *writer) sendState(s frame.State) {
	b, err := json.Marshal(s)
	if err != nil {
		os.Exit(1)
	}
	w.sendFrame(frame.Frame{Kind: frame.Ready, Body: b})
}

package guest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/module"
)

var order = binary.LittleEndian

// instance is one instance of the program with the state of its ABI. It serves one call. Its fields are used by the
// goroutine of the call only.
type instance struct {
	mod    api.Module
	shared *blocks
	vars   map[string][]byte
	call   *Call // nil while the instance is prepared

	input, inputSize, output, outputSize, failure uint64

	status  int32 // of the last HTTP response
	headers []byte
}

// Call is one call under way.
type Call struct {
	id      uint32
	out     *writer
	config  map[string]string
	answers chan []byte // the Answer to the Host frame, at most one
	cancel  context.CancelCauseFunc
	clock   *stopwatch
	logged  int
}

// maxLog bounds the bytes of the logs of one call, maxLine those of one line.
const (
	maxLog  = 32 << 10
	maxLine = 2 << 10
)

func (in *instance) currentCall() *Call {
	if in.call == nil {
		panic(errors.New("the program asks the portal before it was given a task"))
	}
	return in.call
}

// inputBytes returns bytes of the input.
func (in *instance) inputBytes(off, size uint64) []byte {
	if off+size < off || off+size > (in.inputSize+7)&^7 {
		panic(errors.New("the program reads behind its input"))
	}
	return in.shared.bytesAt(in.input+off, size)
}

func (in *instance) writeLog(b []byte) {
	c := in.currentCall()
	b = b[:min(len(b), maxLine, max(maxLog-c.logged, 0))]
	if len(b) == 0 {
		return
	}
	c.logged += len(b) + 1
	c.out.sendFrame(frame.Frame{Kind: frame.Log, Call: c.id, Body: b})
}

func (in *instance) askPortal(ctx context.Context, name string, arg []byte) ([]byte, frame.Status) {
	return in.currentCall().Ask(ctx, name, arg)
}

// Ask sends a Host frame and waits for the answer, OK or Failed with a reason. The time of the program stands still
// meanwhile. It panics when ctx ends. One goroutine asks at a time.
func (c *Call) Ask(ctx context.Context, name string, arg []byte) ([]byte, frame.Status) {
	body := frame.HostBody(name, arg)
	if len(body) > frame.MaxBody {
		return []byte("the data is too long"), frame.Failed
	}
	c.clock.stopClock()
	defer c.clock.startClock()
	c.out.sendFrame(frame.Frame{Kind: frame.Host, Call: c.id, Body: body})
	select {
	case b := <-c.answers:
		status, out, err := frame.SplitStatus(b)
		if err != nil {
			panic(err)
		}
		return out, status
	case <-ctx.Done():
		panic(context.Cause(ctx))
	}
}

// errExpired is the cause of the end of a call at its deadline, errCancelled that of a call cancelled by the portal.
var (
	errExpired   = errors.New("the program used up its time")
	errCancelled = errors.New("cancelled")
)

// stopwatch ends a call when the program has run for its time.
type stopwatch struct {
	left  time.Duration
	since time.Time
	timer *time.Timer
}

func startStopwatch(left time.Duration, expire func()) *stopwatch {
	return &stopwatch{left, time.Now(), time.AfterFunc(left, expire)}
}

func (w *stopwatch) stopClock() {
	w.timer.Stop()
	w.left -= time.Since(w.since)
}

func (w *stopwatch) startClock() {
	w.since = time.Now()
	w.timer.Reset(max(w.left, 0))
}

// tick is the precision of the clocks that programs see, so that they cannot measure the work of others.
const tick = 20 * time.Millisecond

// maxSleep bounds one sleep of a program; it asks again for the rest.
const maxSleep = 20 * time.Millisecond

func moduleConfig() wazero.ModuleConfig {
	begin := time.Now().Add(-time.Second) // Go's runtime takes a clock at 0 for broken
	return wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader).
		WithWalltime(func() (int64, int32) {
			t := time.Now().Truncate(tick)
			return t.Unix(), int32(t.Nanosecond())
		}, sys.ClockResolution(tick)).
		WithNanotime(func() int64 { return int64(time.Since(begin).Truncate(tick)) }, sys.ClockResolution(tick)).
		WithNanosleep(func(ns int64) { time.Sleep(min(time.Duration(max(ns, 0)), maxSleep)) })
}

// program is the compiled module, with instances that wait for calls.
type program struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	settings frame.Settings

	mu    sync.Mutex // guards ready
	ready []*instance
}

// spares is the number of prepared instances that wait.
const spares = 2

// newInstance makes an instance and runs the initialization of its language.
func (p *program) newInstance(ctx context.Context) (*instance, error) {
	in := &instance{shared: newBlocks(p.settings.Block), vars: make(map[string][]byte)}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(p.settings.StartMillis)*time.Millisecond, errExpired)
	defer cancel()
	ctx = context.WithValue(ctx, instanceKey{}, in)
	var err error
	if in.mod, err = p.runtime.InstantiateModule(ctx, p.compiled, moduleConfig()); err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	if f := in.mod.ExportedFunction("_initialize"); f != nil && len(f.Definition().ParamTypes()) == 0 {
		if _, err := f.Call(ctx); err != nil {
			in.close()
			return nil, cmp.Or(context.Cause(ctx), err)
		}
	}
	return in, nil
}

func (in *instance) close() { _ = in.mod.Close(context.Background()) } // frees its memory; there is nothing to flush

// takeInstance returns a prepared instance, or makes one.
func (p *program) takeInstance(ctx context.Context) (*instance, error) {
	p.mu.Lock()
	if n := len(p.ready); n > 0 {
		in := p.ready[n-1]
		p.ready = p.ready[:n-1]
		p.mu.Unlock()
		return in, nil
	}
	p.mu.Unlock()
	return p.newInstance(ctx)
}

// prepareInstances makes instances until enough wait.
func (p *program) prepareInstances(ctx context.Context) error {
	for {
		p.mu.Lock()
		enough := len(p.ready) >= spares
		p.mu.Unlock()
		if enough {
			return nil
		}
		in, err := p.newInstance(ctx)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.ready = append(p.ready, in)
		p.mu.Unlock()
	}
}

// Prepare implements Program. A program that cannot start fails at its next call.
func (p *program) Prepare() { _ = p.prepareInstances(context.Background()) }

// Run implements Program: it runs the program on an input. The text of a failure is for the author of the program.
func (p *program) Run(ctx context.Context, c *Call, s frame.Start) (status frame.Status, out []byte) {
	defer func() {
		if v := recover(); v != nil {
			status, out = frame.Trapped, []byte(clipText(fmt.Sprint(v)))
		}
	}()
	in, err := p.takeInstance(ctx)
	if err != nil {
		return failureOf(ctx, err)
	}
	defer in.close()
	in.call = c
	in.input, in.inputSize = in.shared.putBlock(s.Input), uint64(len(s.Input))
	in.shared.allocBlock(8) // kits read the input in words of 8 bytes
	res, err := in.mod.ExportedFunction(module.Entry).Call(context.WithValue(ctx, instanceKey{}, in))
	if exit, ok := errors.AsType[*sys.ExitError](err); ok && exit.ExitCode() == 0 && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return failureOf(ctx, err)
	}
	if in.failure != 0 {
		return frame.Failed, []byte(clipText(string(in.shared.blockAt(in.failure))))
	}
	if len(res) == 1 && uint32(res[0]) != 0 {
		return frame.Failed, fmt.Appendf(nil, "the program ended with code %d", uint32(res[0]))
	}
	if in.outputSize > uint64(p.settings.Output) {
		return frame.Trapped, fmt.Appendf(nil, "the output is longer than %d bytes", p.settings.Output)
	}
	return frame.OK, in.shared.bytesAt(in.output, in.outputSize)
}

func failureOf(ctx context.Context, err error) (frame.Status, []byte) {
	if cause := context.Cause(ctx); cause != nil {
		return frame.Expired, []byte(cause.Error())
	}
	// The rest of the text is the stack of the program.
	text, _, _ := strings.Cut(err.Error(), "\n")
	return frame.Trapped, []byte(clipText(strings.TrimSuffix(text, " (recovered by wazero)")))
}

// clipText shortens a text for a frame.
func clipText(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxLine)], "") }

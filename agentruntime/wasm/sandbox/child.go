package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"agentsite/agentruntime/wasm/frame"
)

// child is a process that runs one program.
type child struct {
	limits  Limits
	hash    string
	cmd     *exec.Cmd
	in      *os.File
	writing sync.Mutex // one frame at a time goes to in

	state chan frame.State // the Ready frame, at most one
	dead  chan struct{}    // closed when the process has ended
	err   error            // the reason, set before dead is closed
	busy  chan struct{}    // wakes the watch of the memory

	mu     sync.Mutex // guards the fields below
	calls  map[uint32]*pending
	last   uint32
	reason error // the first reason to kill
}

// pending is a call under way as the reader of the frames sees it. The child sends one Host frame at a time, and Done
// once, so that frames never blocks the reader.
type pending struct {
	frames chan frame.Frame
	asked  bool // a Host frame has no Answer yet
	ended  bool
	logged int
	host   Host
}

const (
	// writeTime bounds the writing of one frame. A child reads at once.
	writeTime = 5 * time.Second
	// maxErrors bounds the standard error of a child, which the portal logs.
	maxErrors = 8 << 10
	// watchEvery is the time between two looks at the memory of a child that works.
	watchEvery = 50 * time.Millisecond
	// maxLogs bounds the bytes of logs that one call may send.
	maxLogs = 64 << 10
)

// Reasons to end a child.
var (
	errProtocol = errors.New("the process of the program broke the protocol")
	errMemory   = errors.New("the program used more memory than it may")
	errHangs    = errors.New("the program did not stop in time")
	errClosed   = errors.New("the sandbox is closed")
	errIdle     = errors.New("the program was not used")
)

// startChild starts a process for a module and sends it the module. It does not wait until the process is ready.
func (p *Pool) startChild(hash string, b []byte, isolate bool) (*child, error) {
	c := &child{limits: p.cfg.Limits, hash: hash, state: make(chan frame.State, 1), dead: make(chan struct{}),
		busy: make(chan struct{}, 1), calls: make(map[uint32]*pending)}
	cache := ""
	if p.cfg.Folder != "" {
		cache = filepath.Join(p.cfg.Folder, hash)
		if err := os.MkdirAll(cache, 0o700); err != nil {
			return nil, err
		}
	}
	c.cmd = exec.Command(p.cfg.Command[0], p.cfg.Command[1:]...)
	c.cmd.Env = []string{} // nil would be the portal's own
	c.cmd.Dir = "/"
	prepareCommand(c.cmd, isolate)
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, yours, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirs.Close(), in.Close())
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.Join(errClosed, theirs.Close(), in.Close(), out.Close(), yours.Close())
	}
	p.ending.Add(1)
	p.mu.Unlock()
	errs := &tail{most: maxErrors}
	c.in, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, theirs, yours, errs
	c.cmd.WaitDelay = time.Second
	err = startLow(c.cmd)
	// The child has its own descriptors of these ends.
	err = errors.Join(err, theirs.Close(), yours.Close())
	if err != nil {
		p.ending.Done()
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	go c.readFrames(out)
	go c.awaitEnd(p, errs)
	go c.watchMemory()
	set := frame.Settings{Cache: cache, Pages: c.limits.Pages, Output: c.limits.Output, Block: c.limits.Shared,
		StartMillis: c.limits.Start.Milliseconds(), DataBytes: c.limits.Data, Isolated: isolate}
	s, err := json.Marshal(set)
	if err == nil {
		go func() { // a module does not fit into the pipe
			if c.sendFrame(frame.Frame{Kind: frame.Setup, Body: s}) == nil {
				_ = c.sendFrame(frame.Frame{Kind: frame.Module, Body: b}) // sendFrame kills the child if it fails
			}
		}()
	}
	return c, err
}

// sendFrame writes a frame to the child, and kills it if it does not take it.
func (c *child) sendFrame(f frame.Frame) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := c.in.SetWriteDeadline(time.Now().Add(writeTime))
	if err == nil {
		err = frame.Write(c.in, f)
	}
	if err != nil {
		c.endProcess(fmt.Errorf("%w: %w", errHangs, err))
	}
	return err
}

// endProcess ends the process. Calls under way fail with the reason.
func (c *child) endProcess(reason error) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = reason
	}
	c.mu.Unlock()
	if c.isDead() {
		return // its number may belong to another process
	}
	killGroup(c.cmd.Process.Pid)
	_ = c.cmd.Process.Kill() // it may be gone already
}

// awaitEnd collects the process when it has ended.
func (c *child) awaitEnd(p *Pool, errs *tail) {
	defer p.ending.Done()
	err := c.cmd.Wait()
	_ = c.in.Close() // the other end is gone
	c.mu.Lock()
	c.err = c.reason
	c.mu.Unlock()
	if c.err == nil {
		c.err = fmt.Errorf("the process of the program ended: %w", errors.Join(err, errs.err()))
	}
	close(c.dead)
	p.removeChild(c)
}

// isEnding reports whether the process has ended or is being killed, so that it must get no other call.
func (c *child) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason != nil || c.isDead()
}

func (c *child) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// readFrames takes the frames of the child until its output ends. Any frame that does not fit ends the child.
func (c *child) readFrames(out *os.File) {
	defer out.Close()
	r := bufio.NewReader(out)
	for {
		f, err := frame.Read(r)
		if err == nil {
			err = c.takeFrame(f)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			c.endProcess(fmt.Errorf("the process of the program ended: %w", err))
			return
		}
		if err != nil {
			c.endProcess(fmt.Errorf("%w: %w", errProtocol, err))
			return
		}
	}
}

// takeFrame handles one frame of the child. It never blocks.
func (c *child) takeFrame(f frame.Frame) error {
	if f.Kind == frame.Ready {
		var s frame.State
		if err := json.Unmarshal(f.Body, &s); err != nil {
			return err
		}
		select {
		case c.state <- s:
			return nil
		default:
			return errors.New("ready twice")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[f.Call]
	if call == nil || call.ended {
		return fmt.Errorf("a frame of kind %d for no call", f.Kind)
	}
	switch f.Kind {
	case frame.Host:
		if call.asked {
			return errors.New("two questions at once")
		}
		call.asked = true
		call.frames <- f
	case frame.Done:
		call.ended = true
		call.frames <- f
	case frame.Log:
		if call.logged += len(f.Body) + 1; call.logged > maxLogs {
			return errors.New("too many logs")
		}
		call.host.Log(string(f.Body))
	default:
		return fmt.Errorf("a frame of kind %d", f.Kind)
	}
	return nil
}

// addCall registers a call and returns its number.
func (c *child) addCall(h Host) (uint32, *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	// There is room for one Host frame and Done.
	call := &pending{frames: make(chan frame.Frame, 2), host: h}
	c.calls[c.last] = call
	c.wakeWatch()
	return c.last, call
}

func (c *child) wakeWatch() {
	select {
	case c.busy <- struct{}{}:
	default:
	}
}

func (c *child) removeCall(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// noteAnswer notes that the Host frame of a call has its answer.
func (c *child) noteAnswer(call *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.asked = false
}

// watchMemory kills the child when it uses more memory than it may. It looks while the module is loaded and while calls
// run; a limit of the operating system on the address space would not do, because Go and wazero reserve more than they
// use.
func (c *child) watchMemory() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for loading := true; ; {
		c.mu.Lock()
		idle := len(c.calls) == 0 && !loading
		c.mu.Unlock()
		var next <-chan time.Time
		if !idle {
			next = tick.C
		}
		select {
		case <-c.dead:
			return
		case <-c.busy:
			loading = false
		case <-next:
		}
		if residentBytes(c.cmd.Process.Pid) > c.limits.Resident {
			c.endProcess(errMemory)
			return
		}
	}
}

// awaitReady waits until the module is loaded. A module that cannot be run is an errRefused.
func (c *child) awaitReady(ctx context.Context) (frame.State, error) {
	limit := time.NewTimer(c.limits.Load)
	defer limit.Stop()
	select {
	case s := <-c.state:
		c.wakeWatch()
		var err error
		switch {
		case s.Unlocked:
			err = fmt.Errorf("set up a sandbox: %s", s.Failure)
		case s.Failure != "":
			err = refuse("cannot be run: " + s.Failure)
		}
		if err != nil {
			c.endProcess(err)
		}
		return s, err
	case <-c.dead:
		return frame.State{}, c.err
	case <-limit.C:
		err := refuse("takes too long to load")
		c.endProcess(err)
		return frame.State{}, err
	case <-ctx.Done():
		c.endProcess(errIdle)
		return frame.State{}, context.Cause(ctx)
	}
}

// tail keeps the first bytes that a child writes to its standard error.
type tail struct {
	mu   sync.Mutex
	b    []byte
	most int
}

// Write implements io.Writer. It never fails, so that the child does not notice the bound.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b[:min(len(b), t.most-len(t.b))]...)
	return len(b), nil
}

func (t *tail) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b) == 0 {
		return nil
	}
	return fmt.Errorf("%q", t.b)
}

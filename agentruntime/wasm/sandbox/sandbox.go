// Package sandbox runs hosted programs in child processes of the portal's own binary, one process a program. It starts
// and replaces the processes, bounds their time and memory, and kills those that do not keep a bound. All that a
// process sends is hostile until checked: a program may have escaped from WebAssembly inside it.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/module"
)

// Limits are the bounds of a program.
type Limits struct {
	// Module bounds the bytes of a module.
	Module int
	// Pages bounds its memory in pages of 64 KiB.
	Pages uint32
	// Output bounds the bytes of its output, Shared those of the memory that it shares with the portal's functions.
	Output, Shared int
	// Run bounds the time of one call in which the program itself runs, Start that of its initialization, Load that of
	// compiling.
	Run, Start, Load time.Duration
	// Resident bounds the memory that its process uses; Data is the limit of the operating system on writable memory.
	Resident int64
	Data     uint64
	// Calls bounds the calls that one process serves at once.
	Calls int
}

// DefaultLimits returns the bounds of a portal.
func DefaultLimits() Limits {
	return Limits{Module: 16 << 20, Pages: 1024, Output: 512 << 10, Shared: 16 << 20, Run: 30 * time.Second,
		Start: 5 * time.Second, Load: time.Minute, Resident: 512 << 20, Data: 1 << 30, Calls: 8}
}

// Config is the configuration of a Pool.
type Config struct {
	// Command starts a process; its program must call guest.Run. It must not be empty.
	Command []string
	// Folder keeps compiled modules, one folder a module; empty keeps none. CacheBytes bounds it.
	Folder     string
	CacheBytes int64
	// Children bounds the processes.
	Children int
	Limits   Limits
	Modules  Modules
	Log      *slog.Logger
}

// Modules has the modules of programs.
type Modules interface {
	// ReadModule returns the bytes of a module by its SHA-256 in lower-case hexadecimal. It is called when no process
	// has loaded the module.
	ReadModule(ctx context.Context, hash string) ([]byte, error)
}

// Host answers a program. Its methods are called from one goroutine at a time and must return soon after ctx ends.
type Host interface {
	// Call runs a function of the portal. The text of an error is shown to the program.
	Call(ctx context.Context, name string, arg []byte) ([]byte, error)
	// Log takes a line of the program's log. It must not block.
	Log(line string)
}

// Failure is the end of a call that is the fault of the program. Text is a sentence for its owner.
type Failure struct {
	Status frame.Status
	Text   string
}

func (f *Failure) Error() string { return f.Text }

// errRefused is the error of a module that cannot be run.
type errRefused string

func (e errRefused) Error() string { return string(e) }

func refuse(text string) error { return errRefused(text) }

// IsRefused reports whether a module cannot be run, and returns the reason for its author.
func IsRefused(err error) (string, bool) {
	r, ok := errors.AsType[errRefused](err)
	return string(r), ok
}

// ErrBusy is returned when no process is free before the context ends.
var ErrBusy = errors.New("all places for programs are taken")

// Pool holds the processes. Create it with New and close it.
type Pool struct {
	cfg Config

	mu       sync.Mutex // guards the fields below
	children map[string]*slot
	uses     int64
	free     chan struct{} // closed and replaced when a place may be free
	closed   bool

	ending sync.WaitGroup // of the processes that have not been collected

	probing sync.Mutex // guards the fields below
	probed  bool
	isolate bool // the kernel allows namespaces
	guards  []string
}

// slot is the place of a program: its process, or one that is being started.
type slot struct {
	ready chan struct{} // closed when child or err is set
	child *child
	err   error
	users int
	used  int64
	idle  *time.Timer
}

// idleTime is how long a process without calls is kept.
const idleTime = 5 * time.Minute

// New returns a pool without processes.
func New(cfg Config) *Pool {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Pool{cfg: cfg, children: make(map[string]*slot), free: make(chan struct{})}
}

// Limits returns the bounds of the pool's programs.
func (p *Pool) Limits() Limits { return p.cfg.Limits }

// Guards returns the protections that hold besides WebAssembly's own. It starts a process if none was started before.
func (p *Pool) Guards(ctx context.Context) ([]string, error) {
	if _, err := p.probeKernel(ctx); err != nil {
		return nil, err
	}
	p.probing.Lock()
	defer p.probing.Unlock()
	return p.guards, nil
}

// Check loads a module and ends its process again. The error is an errRefused if the module cannot be run.
func (p *Pool) Check(ctx context.Context, hash string, b []byte) (module.Info, error) {
	if len(b) > p.cfg.Limits.Module {
		return module.Info{}, refuse(fmt.Sprintf("is larger than %d bytes", p.cfg.Limits.Module))
	}
	info, err := module.Check(b, p.cfg.Limits.Pages)
	if err != nil {
		return info, refuse(err.Error())
	}
	_, done, err := p.takeChild(ctx, hash, b)
	if err == nil {
		done()
	}
	return info, err
}

// Call runs a program on an input, which is JSON, and returns its output. A *Failure is the program's fault.
func (p *Pool) Call(ctx context.Context, hash string, config map[string]string, input []byte, h Host) ([]byte, error) {
	for again := true; ; again = false {
		c, done, err := p.takeChild(ctx, hash, nil)
		if err != nil {
			return nil, err
		}
		out, begun, err := c.runCall(ctx, config, input, h)
		done()
		if err != nil && !begun && again && ctx.Err() == nil {
			continue // the process died before it got the call
		}
		return out, err
	}
}

// takeChild returns a process with the module, and a function that gives it back. b is the module, nil to read it.
func (p *Pool) takeChild(ctx context.Context, hash string, b []byte) (*child, func(), error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, nil, errClosed
		}
		s := p.children[hash]
		if s == nil && len(p.children) >= p.cfg.Children && !p.evictOldest() {
			s = nil
		} else if s == nil {
			s = p.openSlot(ctx, hash, b)
		}
		if s != nil && s.users < p.cfg.Limits.Calls {
			s.users++
			s.idle.Stop()
			p.uses++
			s.used = p.uses
			p.mu.Unlock()
			select {
			case <-s.ready:
			case <-ctx.Done():
				p.giveBack(s)
				return nil, nil, context.Cause(ctx)
			}
			if s.err != nil {
				p.giveBack(s)
				return nil, nil, s.err
			}
			if s.child.isEnding() {
				p.giveBack(s)
				p.removeSlot(hash, s)
				continue
			}
			return s.child, func() { p.giveBack(s) }, nil
		}
		free := p.free
		p.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, nil, ErrBusy
		}
	}
}

// openSlot starts a process for a module; the caller holds mu.
func (p *Pool) openSlot(ctx context.Context, hash string, b []byte) *slot {
	s := &slot{ready: make(chan struct{})}
	s.idle = time.AfterFunc(idleTime, func() { p.endIdle(hash, s) })
	s.idle.Stop()
	p.children[hash] = s
	// Others may wait for the same process, so that it is not ended with the first call.
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(s.ready)
		s.child, s.err = p.launchChild(ctx, hash, b)
		if s.err == nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.children[hash] == s {
			delete(p.children, hash)
		}
		p.wakeWaiting()
	}()
	return s
}

// empty is a module that does nothing. It is run once, to find out which protections the kernel allows: the module of
// a stranger must not be able to fail in a way that takes protections from others.
var empty = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" +
	"\x07\x07\x01\x03run\x00\x00" + "\x0a\x04\x01\x02\x00\x0b")

const emptyName = "empty"

// probeKernel finds out once whether the kernel allows namespaces, and returns whether it does.
func (p *Pool) probeKernel(ctx context.Context) (isolate bool, err error) {
	p.probing.Lock()
	defer p.probing.Unlock()
	if p.probed {
		return p.isolate, nil
	}
	var first error
	for _, p.isolate = range []bool{true, false} {
		c, serr := p.startChild(emptyName, empty, p.isolate)
		var state frame.State
		if serr == nil {
			state, serr = c.awaitReady(ctx)
		}
		if serr == nil {
			c.endProcess(errIdle)
			if p.probed, p.guards = true, state.Guards; first != nil {
				p.cfg.Log.Warn("hosted programs run without namespaces of their own, because the kernel does not "+
					"allow them", "error", first)
			}
			if slices.Contains(state.Guards, frame.GuardFolder) && !slices.Contains(state.Guards, frame.GuardPrivileges) {
				p.cfg.Log.Warn("hosted programs run with the capabilities of their namespaces, because this binary has C code; " +
					"build it with CGO_ENABLED=0")
			}
			return p.isolate, nil
		}
		first = errors.Join(first, serr)
	}
	return false, fmt.Errorf("start a process for programs: %w", first)
}

// launchChild starts a process and waits until it is ready.
func (p *Pool) launchChild(ctx context.Context, hash string, b []byte) (*child, error) {
	isolate, err := p.probeKernel(ctx)
	if err != nil {
		return nil, err
	}
	if b == nil {
		if b, err = p.cfg.Modules.ReadModule(ctx, hash); err != nil {
			return nil, err
		}
	}
	p.makeRoom(hash)
	c, err := p.startChild(hash, b, isolate)
	if err != nil {
		return nil, err
	}
	if _, err := c.awaitReady(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.endProcess(errClosed)
		return nil, errClosed
	}
	return c, nil
}

// giveBack ends the use of a process.
func (p *Pool) giveBack(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 {
		s.idle.Reset(idleTime)
	}
	p.wakeWaiting()
}

// wakeWaiting wakes calls that wait for a place; the caller holds mu.
func (p *Pool) wakeWaiting() {
	close(p.free)
	p.free = make(chan struct{})
}

// evictOldest ends the process that was used longest ago and serves no call; the caller holds mu.
func (p *Pool) evictOldest() bool {
	var hash string
	var oldest *slot
	for h, s := range p.children {
		if s.users == 0 && (oldest == nil || s.used < oldest.used) {
			hash, oldest = h, s
		}
	}
	if oldest == nil {
		return false
	}
	p.dropSlot(hash, oldest, errIdle)
	return true
}

// dropSlot removes a process without calls from the pool and kills it; the caller holds mu.
func (p *Pool) dropSlot(hash string, s *slot, reason error) {
	delete(p.children, hash)
	s.idle.Stop()
	go func() {
		<-s.ready
		if s.child != nil {
			s.child.endProcess(reason)
		}
	}()
}

func (p *Pool) endIdle(hash string, s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.children[hash] == s && s.users == 0 {
		p.dropSlot(hash, s, errIdle)
	}
}

// removeChild removes a process that has ended, so that the next call starts another one.
func (p *Pool) removeChild(c *child) {
	if c.err != errIdle && c.err != errClosed {
		p.cfg.Log.Info("a process of a hosted program ended", "module", c.hash, "error", c.err)
	}
	p.mu.Lock()
	s := p.children[c.hash]
	p.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case <-s.ready:
		if s.child == c {
			p.removeSlot(c.hash, s)
		}
	default: // it died at once; the call that waits for it removes it
	}
}

// removeSlot removes a process that has ended.
func (p *Pool) removeSlot(hash string, s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.children[hash] == s {
		delete(p.children, hash)
		s.idle.Stop()
	}
	p.wakeWaiting()
}

// Drop ends the process of a program, for example because its module was deleted. Its calls fail.
func (p *Pool) Drop(hash string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.children[hash]; s != nil {
		p.dropSlot(hash, s, errClosed)
	}
}

// Forget ends the process of a program and deletes its compiled code.
func (p *Pool) Forget(hash string) error {
	p.Drop(hash)
	if p.cfg.Folder == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(p.cfg.Folder, hash))
}

// Keep deletes the compiled code of all programs but those with the hashes, and ends their processes.
func (p *Pool) Keep(hashes map[string]bool) error {
	if p.cfg.Folder == "" {
		return nil
	}
	entries, err := os.ReadDir(p.cfg.Folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !hashes[e.Name()] && e.Name() != emptyName {
			err = errors.Join(err, p.Forget(e.Name()))
		}
	}
	return err
}

// Close ends all processes and waits for them. Calls under way fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	list := p.children
	p.children = make(map[string]*slot)
	p.wakeWaiting()
	p.mu.Unlock()
	for _, s := range list {
		s.idle.Stop()
		<-s.ready
		if s.child != nil {
			s.child.endProcess(errClosed)
		}
	}
	p.ending.Wait() // also for those that were dropped before
}

// makeRoom deletes the compiled modules that were used longest ago until the folder is within its bound. The one of
// the module that is about to be loaded counts as used now.
func (p *Pool) makeRoom(hash string) {
	if p.cfg.Folder == "" {
		return
	}
	if err := pruneCache(p.cfg.Folder, hash, p.cfg.CacheBytes); err != nil && !errors.Is(err, os.ErrNotExist) {
		p.cfg.Log.Warn("the cache of compiled programs was not pruned", "error", err)
	}
}

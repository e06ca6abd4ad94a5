// Package agenttest tests that an implementation of task.Agent keeps its contract, and provides the
// servers to which drivers connect in tests: a scripted server of the OpenAI API, and A2A agents and
// MCP servers built on the protocols' SDKs.
package agenttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// Mode is the behaviour of the server that a call reaches.
type Mode string

// In mode Echo the server answers with Echoed of the text, in mode Wait it works until the call is
// cancelled. In all other modes it misbehaves, and the call must fail.
const (
	Echo     Mode = "echo"
	Wait     Mode = "wait"
	Hang     Mode = "hang"     // reads the request and never answers
	Stall    Mode = "stall"    // begins an answer and then sends nothing more
	Babble   Mode = "babble"   // sends an answer that never ends
	Oversize Mode = "oversize" // one answer of 100 MiB
	Garbage  Mode = "garbage"  // bytes that are valid in no protocol
	Page     Mode = "page"     // a web page instead of an answer
	Cut      Mode = "cut"      // closes the connection in the middle of an answer
)

// bad lists the modes in which a call must fail.
var bad = []Mode{Hang, Stall, Babble, Oversize, Garbage, Page, Cut}

// Echoed returns the answer to text in mode Echo.
func Echoed(text string) string { return "You said: " + text }

// Script describes the server of the agent under test to Run.
type Script struct {
	// Call returns a call that sends text to a server in that mode. ok is false if this kind of agent
	// has no such mode.
	Call func(mode Mode, text string) (call task.Call, ok bool)
	// Started receives a value when a call in mode Wait has reached the server, Stopped when the server
	// was asked to stop. Either may be nil. With Stopped, the call must use its sink before the test
	// cancels it.
	Started, Stopped <-chan struct{}
	// Streams means that the answer must arrive in more than one piece.
	Streams bool
}

const (
	stopWithin = 500 * time.Millisecond
	// badWithin is the time in which a call of a misbehaving server must end. The time is virtual; the
	// timeouts are those of the product.
	badWithin = 30 * time.Minute
	maxShown  = 300 << 10
	// maxGrowth is the memory in bytes that may still be in use after one call of a misbehaving server.
	maxGrowth = 64 << 20
)

// Run tests that the agents from fresh keep the contract of task.Agent. fresh is called once per test
// and cleans up through its t. Each test runs under testing/synctest, so servers must be on a Network
// in memory.
func Run(t *testing.T, fresh func(t *testing.T) (task.Agent, Script)) {
	check := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	check("AnswersOnce", func(t *testing.T) { answersOnce(t, fresh) })
	check("CancelEndsAtOnce", func(t *testing.T) { cancelEnds(t, fresh) })
	check("ConcurrentCallsDoNotMix", func(t *testing.T) { concurrent(t, fresh) })
	for _, m := range bad {
		check("FarSide/"+string(m), func(t *testing.T) { misbehaves(t, fresh, m) })
	}
}

// outcome makes one call and checks the rules that hold for every call.
func outcome(t *testing.T, ctx context.Context, a task.Agent, call task.Call) (task.Result, *Recorder, error) {
	t.Helper()
	rec := &Recorder{}
	res, err := recorded(t, ctx, a, call, rec)
	return res, rec, err
}

func recorded(t *testing.T, ctx context.Context, a task.Agent, call task.Call, rec *Recorder) (task.Result, error) {
	t.Helper()
	res, err := a.Run(ctx, call, rec)
	rec.Over()
	t.Cleanup(func() {
		for _, f := range rec.Faults() {
			t.Errorf("sink: %s", f)
		}
	})
	if err == nil && ctx.Err() == nil {
		switch res.State {
		case task.Completed, task.Failed, task.Rejected, task.InputRequired, task.AuthRequired:
		default:
			t.Errorf("the call ended in state %q", res.State)
		}
	}
	return res, err
}

func answersOnce(t *testing.T, fresh func(*testing.T) (task.Agent, Script)) {
	a, script := fresh(t)
	for _, text := range []string{"hello", "Grüße, 世界 👋\n\nsecond *paragraph*"} {
		call, ok := script.Call(Echo, text)
		if !ok {
			t.Fatal("every agent must echo")
		}
		res, rec, err := outcome(t, t.Context(), a, call)
		if err != nil || res.State != task.Completed {
			t.Fatalf("%v %q: %v", res.State, res.Reason, err)
		}
		got := task.PlainText(res.Parts)
		if got != Echoed(text) {
			t.Errorf("answered %q, want %q", got, Echoed(text))
		}
		if shown := rec.Shown(); shown != "" && shown != got {
			t.Errorf("streamed %q, answered %q", shown, got)
		}
		if script.Streams && rec.Deltas() < 2 {
			t.Errorf("the answer came in %d pieces", rec.Deltas())
		}
	}
}

func cancelEnds(t *testing.T, fresh func(*testing.T) (task.Agent, Script)) {
	a, script := fresh(t)
	call, ok := script.Call(Wait, "never mind")
	if !ok {
		t.Skip("this kind cannot wait")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan time.Time, 1)
	active := make(chan struct{})
	go func() {
		recorded(t, ctx, a, call, &Recorder{Active: active})
		done <- time.Now()
	}()
	wait := func(until <-chan struct{}) {
		select {
		case <-until:
		case <-done:
			t.Fatal("the call ended before it was stopped")
		case <-time.After(badWithin):
			t.Fatal("the call did not reach the far side")
		}
	}
	if script.Started != nil {
		wait(script.Started)
	}
	if script.Stopped != nil {
		// Before the first use of the sink the agent may not know the server's task, so it could not stop it.
		wait(active)
	}
	at := time.Now()
	cancel()
	if took := (<-done).Sub(at); took > stopWithin {
		t.Errorf("ended %v after it was stopped", took)
	}
	if script.Stopped != nil {
		select {
		case <-script.Stopped:
		case <-time.After(10 * time.Second):
			t.Error("the far side was not told to stop")
		}
	}
}

func concurrent(t *testing.T, fresh func(*testing.T) (task.Agent, Script)) {
	a, script := fresh(t)
	var wg sync.WaitGroup
	for i := range 8 {
		text := fmt.Sprintf("call number %d", i)
		call, _ := script.Call(Echo, text)
		wg.Go(func() {
			res, rec, err := outcome(t, t.Context(), a, call)
			if err != nil || task.PlainText(res.Parts) != Echoed(text) {
				t.Errorf("%s: %v %+v", text, err, res)
			}
			if shown := rec.Shown(); shown != "" && shown != Echoed(text) {
				t.Errorf("%s: streamed %q", text, shown)
			}
		})
	}
	wg.Wait()
}

func misbehaves(t *testing.T, fresh func(*testing.T) (task.Agent, Script), mode Mode) {
	a, script := fresh(t)
	call, ok := script.Call(mode, "are you well?")
	if !ok {
		t.Skip("this kind has no such far side")
	}
	ctx, cancel := context.WithTimeout(t.Context(), badWithin)
	defer cancel()
	before := liveBytes()
	res, rec, err := outcome(t, ctx, a, call)
	if ctx.Err() != nil {
		t.Fatal("the call did not end by itself")
	}
	if grown := int64(liveBytes()) - int64(before); grown > maxGrowth {
		t.Errorf("%d MiB stay in use", grown>>20)
	}
	why := res.Reason
	if err != nil {
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Fatalf("the error is not for users: %v", err)
		}
		why = f.Safe
	} else if res.State != task.Failed {
		t.Errorf("ended as %q", res.State)
	}
	readable(t, why)
	t.Logf("%s: %s", mode, why)
	text := task.PlainText(res.Parts)
	if len(text) > maxShown || len(rec.Shown()) > maxShown {
		t.Errorf("%d bytes answered, %d shown", len(text), len(rec.Shown()))
	}
	if shown := rec.Shown(); shown != text {
		t.Errorf("shown %d bytes, kept %d", len(shown), len(text))
	}
}

// readable checks that a reason is a sentence for people, without internals of the program.
func readable(t *testing.T, why string) {
	t.Helper()
	if len(why) < 15 || len(why) > 600 || !strings.HasSuffix(why, ".") {
		t.Errorf("the reason is no sentence: %q", why)
	}
	for _, internal := range []string{"%!", "0x", "goroutine", "json:", "net/http", "dial tcp", "invalid character", "unexpected EOF", "context "} {
		if strings.Contains(why, internal) {
			t.Errorf("the reason shows internals: %q", why)
		}
	}
}

func liveBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

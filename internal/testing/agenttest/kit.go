// Package agenttest is the conformance kit that every kind of agent passes,
// and the far sides that drivers are tested against: a scripted server of the
// OpenAI API and A2A agents built on the protocol's own SDK. It is imported by
// tests only.
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

// Mode is how the far side of a call behaves.
type Mode string

// The modes. Echo answers with Echoed of what it was asked; Wait works until
// it is told to stop; the others misbehave.
const (
	Echo     Mode = "echo"
	Wait     Mode = "wait"
	Hang     Mode = "hang"     // takes the request and never answers
	Stall    Mode = "stall"    // begins an answer, then falls silent
	Babble   Mode = "babble"   // never stops answering
	Oversize Mode = "oversize" // one answer of 100 MiB
	Garbage  Mode = "garbage"  // bytes that mean nothing
	Page     Mode = "page"     // a web page
	Cut      Mode = "cut"      // the connection ends in the middle
)

// bad lists the modes that must end in failure.
var bad = []Mode{Hang, Stall, Babble, Oversize, Garbage, Page, Cut}

// Echoed is what an agent in mode Echo answers to text.
func Echoed(text string) string { return "You said: " + text }

// Script tells the kit how to make an agent's far side behave.
type Script struct {
	// Call returns a call that asks text of an agent behaving like mode; ok is
	// false where the kind has no such thing.
	Call func(mode Mode, text string) (call task.Call, ok bool)
	// Started receives a value when a call in mode Wait has reached the far
	// side, Stopped when the far side was told to stop. Either may be nil;
	// with Stopped such a call must use its sink before it is stopped.
	Started, Stopped <-chan struct{}
	// Streams is true when the answer must grow in more than one piece.
	Streams bool
}

const (
	stopWithin = 500 * time.Millisecond
	// badWithin bounds how long a misbehaving far side may hold a driver
	// whose RoundTripper has the timeouts of the product.
	badWithin = 30 * time.Minute
	maxShown  = 300 << 10
	// maxGrowth is how much live memory one misbehaving call may cost.
	maxGrowth = 64 << 20
)

// Run checks that agents made by fresh keep the promises of task.Agent. fresh
// is called once per check and cleans up by t. Each check runs under
// testing/synctest, so far sides must be in memory: see Network.
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

// outcome runs one call and checks what holds for every call.
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
		wait(active) // an agent that knows of nothing cannot stop it
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

// readable checks that a reason is a sentence for people.
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

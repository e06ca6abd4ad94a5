package wasm

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"agentsite/agentruntime/wasm/guest"
	"agentsite/internal/task"
)

// textSink collects the text that a program streams.
type textSink struct{ task.Sink }

func (textSink) Text(string)            {}
func (textSink) Status(string)          {}
func (textSink) Artifact(task.Artifact) {}

// A program without grants reaches nothing but its own answer, by no function of the portal.
func TestCall_NeedsAGrantForEachFunction(t *testing.T) {
	t.Parallel()
	args := map[string]string{"reply": "Hello.", "status": "Working", "artifact": `{"name":"a.txt","text":"a"}`, "find": `{"query":"tea"}`,
		"ask": `{"agent":"calc","text":"1"}`, "memory": `{"recall":"tea"}`, "library": `{"list":""}`,
		"model":            `{"messages":[{"role":"user","content":"Hello"}]}`,
		guest.HTTPFunction: `{"method":"GET","url":"https://api.example.org/"}`}
	free := []string{"reply", "status", "artifact"}
	r := &run{d: New(Config{}), keeper: &keeper{Sink: textSink{}}}
	for _, name := range append(slices.Clone(guest.PortalFunctions), guest.HTTPFunction) {
		arg, ok := args[name]
		if !ok {
			t.Fatalf("the test has no argument for %s", name)
		}
		out, err := r.Call(t.Context(), name, []byte(arg))
		switch {
		case slices.Contains(free, name) && err != nil:
			t.Errorf("%s: %v", name, err)
		case !slices.Contains(free, name) && (err == nil || !strings.Contains(err.Error(), "no grant")):
			t.Errorf("%s without a grant: %q, %v", name, out, err)
		}
	}
	if _, err := r.Call(t.Context(), "execve", nil); err == nil {
		t.Error("a function that there is not was called")
	}
}

// Each call of a function counts. A program that goes beyond the bound is stopped.
func TestCall_CountsEachFunction(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	r := &run{d: New(Config{}), keeper: &keeper{Sink: textSink{}}, meter: meter{stop: stop}}
	for i := range maxCalls {
		if _, err := r.Call(ctx, []string{"status", "reply", "find"}[i%3], []byte("x")); ctx.Err() != nil {
			t.Fatalf("stopped at call %d: %v", i, err)
		}
	}
	if _, err := r.Call(ctx, "status", nil); err == nil || context.Cause(ctx) != err {
		t.Errorf("one more: %v, and the run ends with %v", err, context.Cause(ctx))
	}
	ctx, stop = context.WithCancelCause(t.Context())
	r = &run{d: New(Config{}), keeper: &keeper{Sink: textSink{}}, meter: meter{stop: stop}}
	for range 2 {
		if _, err := r.Call(ctx, "reply", bytes.Repeat([]byte("x"), maxSaid/2)); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Call(ctx, "reply", []byte("x")); err == nil || context.Cause(ctx) != err {
		t.Errorf("a longer answer: %v, and the run ends with %v", err, context.Cause(ctx))
	}
}

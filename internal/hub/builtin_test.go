package hub_test

import (
	"strings"
	"testing"
)

// TestCallable_GoesOnWithABuiltInAgentThatHadARecord has a conversation from a version in which built-in agents
// were published.
func TestCallable_GoesOnWithABuiltInAgentThatHadARecord(t *testing.T) {
	t.Parallel()
	w, f := away(t)
	ctx := t.Context()
	const handle = "guide@b.example:8443"
	before, err := w.Callable(ctx, w.ada, handle)
	if err == nil {
		err = w.Met(ctx, before)
	}
	if err != nil || before.NetworkID != portalB+"/01g" {
		t.Fatalf("%+v %v", before, err)
	}
	f.agents[handle] = remoteAgent("guide", "b.example:8443", portalB+"/builtin/guide") // it was withdrawn
	after, err := w.Callable(ctx, w.ada, handle)
	if err != nil || after.ID != before.ID || after.NetworkID != before.NetworkID {
		t.Errorf("%+v, before %+v: %v", after, before, err)
	}
	// It goes on under another address of its portal too.
	f.ways[portalB] = "https://new.example"
	f.agents["guide@new.example"] = remoteAgent("guide", "new.example", portalB+"/builtin/guide")
	delete(f.agents, handle)
	if moved, err := w.Callable(ctx, w.ada, handle); err != nil || moved.ID != before.ID || moved.Handle() != "guide@new.example" {
		t.Errorf("%+v, before %+v: %v", moved, before, err)
	}
	if got, _, err := w.Open(ctx, before.ID); err != nil || !strings.HasSuffix(got.Endpoint, "/agents/guide/a2a") {
		t.Errorf("%+v %v", got, err)
	}
}

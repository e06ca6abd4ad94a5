package wasm

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"agentsite/internal/task"
)

// artifactSink counts artifacts by their id.
type artifactSink struct {
	task.Sink
	got map[string]int
}

func (s *artifactSink) Artifact(a task.Artifact) { s.got[a.ID]++ }

// The number and the bytes of files are bounded for each run; the same name replaces a file and counts once.
func TestAddArtifact_IsBounded(t *testing.T) {
	t.Parallel()
	add := func(r *run, name string, size int) string {
		b, err := json.Marshal(map[string]string{"name": name, "text": strings.Repeat("a", size)})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.addArtifact(b); err != nil {
			return err.Error()
		}
		return ""
	}
	few, many := &artifactSink{got: map[string]int{}}, &artifactSink{got: map[string]int{}}
	r := &run{keeper: &keeper{Sink: few}}
	if got := add(r, "a", maxArtifactBytes+1); !strings.Contains(got, "larger than 512 KiB") {
		t.Errorf("a large file: %q", got)
	}
	for i := range 5 {
		got := add(r, strconv.Itoa(i), maxArtifactBytes)
		if over := i == 4; over != strings.Contains(got, "larger than 2 MiB") || !over && got != "" {
			t.Errorf("file %d: %q", i, got)
		}
	}
	if got := add(r, "0", maxArtifactBytes); got != "" || len(few.got) != 4 || few.got["0"] != 2 {
		t.Errorf("replaced: %q, %v", got, few.got)
	}
	r = &run{keeper: &keeper{Sink: many}}
	for i := range maxArtifacts + 1 {
		got := add(r, strconv.Itoa(i), 1)
		if over := i == maxArtifacts; over != strings.Contains(got, "at most 8 files") || !over && got != "" {
			t.Errorf("file %d: %q", i, got)
		}
	}
	if len(many.got) != maxArtifacts {
		t.Errorf("%v", many.got)
	}
}

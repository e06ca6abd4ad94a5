package agenttest

import (
	"encoding/json"
	"strings"
	"testing"

	"agentsite/internal/task"
)

func TestRecorder_SeesMisuse(t *testing.T) {
	r := &Recorder{}
	r.OnCheckpoint = func(json.RawMessage) error {
		r.Text("from inside") // a second use while the first runs
		return nil
	}
	r.Checkpoint(t.Context(), json.RawMessage(`{}`))
	r.Over()
	r.Status("late")
	got := strings.Join(r.Faults(), "; ")
	if got != "Text was called while another call ran; Status was called after Run had returned" {
		t.Error(got)
	}
}

func TestRecorder_Remembers(t *testing.T) {
	active := make(chan struct{})
	r := &Recorder{Active: active}
	r.Text("a")
	r.Text("b")
	r.Artifact(task.Artifact{ID: "1", Name: "old"})
	r.Artifact(task.Artifact{ID: "1", Name: "new"})
	<-active
	if r.Shown() != "ab" || r.Deltas() != 2 || len(r.Artifacts()) != 1 || r.Artifacts()[0].Name != "new" {
		t.Errorf("%v", r)
	}
	r.Replace("c")
	if r.Shown() != "c" || r.LastCheckpoint() != nil || len(r.Faults()) != 0 {
		t.Errorf("%v %v", r, r.Faults())
	}
}

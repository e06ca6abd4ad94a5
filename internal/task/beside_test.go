package task_test

import (
	"testing"

	"agentsite/internal/task"
)

func TestBeside_LeavesOutWhatTheAnswerHolds(t *testing.T) {
	t.Parallel()
	text, file := task.TextPart("Here it is."), task.Part{URL: "https://portal.example/files/x", Filename: "x.csv"}
	list := []task.Artifact{{ID: "whole", Parts: []task.Part{text, file}}, {ID: "more", Parts: []task.Part{text, task.TextPart("A word more.")}}, {ID: "lost"}}
	got := task.WithoutAnswer(list, []task.Part{text, file})
	if len(got) != 1 || got[0].ID != "more" || len(got[0].Parts) != 1 || got[0].Parts[0].Text != "A word more." {
		t.Errorf("%+v", got)
	}
	if len(list[1].Parts) != 2 || list[1].Parts[0].Text != text.Text {
		t.Error("the artifacts were changed")
	}
	if got := task.WithoutAnswer(list, nil); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

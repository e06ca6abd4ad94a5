package a2a

import (
	"testing"

	"agentsite/internal/task"
)

func TestMade_GivesEachArtifactAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	text := []task.Part{task.TextPart("x")}
	k := task.Task{ID: "T", Artifacts: []task.Artifact{{ID: "answer", Parts: text}, {ID: "a", Parts: text}, {ID: "a", Parts: text}, {Parts: text}, {ID: "lost"}}}
	seen := map[string]bool{answerID: true}
	list := made(t.Context(), nil, k, nil)
	for _, a := range list {
		if a.ID == "" || seen[a.ID] || len(a.Parts) == 0 {
			t.Errorf("%+v", a)
		}
		seen[a.ID] = true
	}
	if len(list) != 4 || list[1].ID != "a" {
		t.Errorf("%+v", list)
	}
}

func TestMade_LeavesOutWhatTheAnswerHolds(t *testing.T) {
	t.Parallel()
	text, file := task.TextPart("Here it is."), task.Part{URL: "https://portal.example/files/x", Filename: "x.csv"}
	k := task.Task{ID: "T", Artifacts: []task.Artifact{{ID: "whole", Parts: []task.Part{text, file}}, {ID: "more", Parts: []task.Part{text, task.TextPart("A word more.")}}}}
	list := made(t.Context(), nil, k, []task.Part{text, file})
	if len(list) != 1 || list[0].ID != "more" || len(list[0].Parts) != 1 || list[0].Parts[0].Text != "A word more." {
		t.Errorf("%+v", list)
	}
	if len(k.Artifacts[1].Parts) != 2 {
		t.Error("the task was changed")
	}
}

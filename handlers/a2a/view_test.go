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
	list := madeArtifacts(t.Context(), nil, k, nil)
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

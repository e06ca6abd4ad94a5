package handover_test

import (
	"testing"

	"agentsite/internal/team/handover"
)

func TestJoinAndSplit(t *testing.T) {
	t.Parallel()
	if got := handover.Join("Add.", nil); got != "Add." {
		t.Errorf("%q", got)
	}
	message := handover.Join("Add.", []handover.Result{{"calc", "**12**\n\n3 × 4"}, {"dates@b.example:80", "**26 days** lie between"}})
	text, results := handover.Split(message)
	if text != "Add." || results != "**12**\n\n3 × 4\n\n**26 days** lie between" {
		t.Errorf("%q, %q", text, results)
	}
	if text, results := handover.Split("Add [x]\n1"); text != "Add [x]\n1" || results != "" {
		t.Errorf("%q, %q", text, results)
	}
	for in, want := range map[string]string{results: "26 days", "It is 3, or 4.5 at most.": "4.5", "none": "", "": "",
		"**bold** and 7": "7", "**≈ 3.3**": "3.3"} {
		if got := handover.Value(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if n := handover.Number("26 days"); n != "26" {
		t.Error(n)
	}
}

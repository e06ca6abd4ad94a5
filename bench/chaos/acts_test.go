package main

import "testing"

func TestAct_FindsEachBrokenPromise(t *testing.T) {
	end := func(task, state string) message { return message{task: task, state: state, fromAgent: true} }
	for name, c := range map[string]struct {
		before, now map[string]string
		transcript  []message
		want        string // kind of the violation, "" for none
	}{
		"ended once": {now: map[string]string{"a": "completed", "b": "failed"},
			transcript: []message{end("a", "completed"), end("b", "failed"), end("b", "working")}},
		"still runs":  {now: map[string]string{"a": "working"}, want: unanswered},
		"waits":       {now: map[string]string{"a": "input_required"}, want: unanswered},
		"ended twice": {now: map[string]string{"a": "completed"}, transcript: []message{end("a", "failed"), end("a", "completed")}, want: duplicated},
		"no end":      {now: map[string]string{"a": "completed"}, want: lost},
		"changed": {before: map[string]string{"a": "failed"}, now: map[string]string{"a": "completed"},
			transcript: []message{end("a", "completed")}, want: changed},
		"gone": {before: map[string]string{"a": "failed"}, now: map[string]string{}, want: changed},
	} {
		a := &act{kind: "test", states: c.before}
		found := a.compare(c.now, c.transcript)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || found[0].kind != c.want) {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestStage_NamesRepeatedCalls(t *testing.T) {
	s := &stage{counts: map[string]int{"once": 1, "twice": 2}}
	if got := s.repeated(); len(got) != 1 || got[0] != "twice 2 times" || s.counted() != 3 {
		t.Errorf("%q of %d", got, s.counted())
	}
}

package team

import (
	"testing"

	"agentsite/internal/hub"
)

func TestReasonOf_NamesWordsThenTheMeaning(t *testing.T) {
	meaning := hub.Match{Found: "Canine illness", How: hub.ByMeaning, Field: "skills"}
	for _, c := range []struct {
		why  []hub.Match
		want string
	}{
		{nil, ""},
		{[]hub.Match{{Word: "the", Found: "the", How: "exact"}}, ""},
		{[]hub.Match{meaning}, "similar in meaning to “Canine illness”"},
		{[]hub.Match{{Word: "the", Found: "the", How: "exact"}, meaning}, "similar in meaning to “Canine illness”"},
		{[]hub.Match{{Word: "fever", Found: "fever", How: "exact"}, meaning}, "fits “fever”"},
	} {
		if got := reasonOf(hub.Result{Why: c.why}); got != c.want {
			t.Errorf("%+v: %q, want %q", c.why, got, c.want)
		}
	}
}

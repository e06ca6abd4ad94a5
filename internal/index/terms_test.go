package index_test

import (
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/index"
)

func TestTerms_AreWhatAnAgentIsFoundBy(t *testing.T) {
	t.Parallel()
	a := hub.Agent{ID: "1", Name: "real-time", Title: "Übersetzer", Description: "It's for Node.js, 翻译 too.", Visibility: hub.Public, Status: hub.Status{State: hub.Active},
		Skills: []hub.Skill{{ID: "s", Name: "Sum up", Tags: []string{"c++"}, Examples: []string{"Shorten this"}, Description: "Long texts"}}}
	got := make(map[string]bool)
	index.Terms(a, func(term string) { got[term] = true })
	for _, want := range []string{"real", "time", "realtime", "ubersetzer", "its", "node", "js", "nodejs", "翻", "译", "sum", "c", "shorten", "long"} {
		if !got[want] {
			t.Errorf("%q is missing in %v", want, got)
		}
	}
	x := index.New()
	x.Put(a)
	for term := range got {
		if p, err := x.Search(hub.Query{Text: term, Limit: 1}); err != nil || p.Total != 1 {
			t.Errorf("%q finds %d, %v", term, p.Total, err)
		}
	}
}

package hub

import (
	"testing"

	"agentsite/internal/federation"
)

// TestWithAsked_NamesNobodyByAnEmptyList: clients check answers by their
// schema, where null is no list.
func TestWithAsked_NamesNobodyByAnEmptyList(t *testing.T) {
	held := federation.Coverage{Silent: []string{}}
	if c := withAsked(held, federation.Coverage{}); c.Silent == nil {
		t.Error("no list")
	}
	held.Silent = append(make([]string, 0, 4), "a.example")
	one, two := withAsked(held, federation.Coverage{Silent: []string{"b.example"}}), withAsked(held, federation.Coverage{Silent: []string{"c.example"}})
	if one.Silent[1] != "b.example" || two.Silent[1] != "c.example" {
		t.Errorf("%v and %v share what they were made of", one.Silent, two.Silent)
	}
}

package agentkind_test

import (
	"slices"
	"testing"

	"agentsite/internal/agentkind"
)

func TestTable_RowsAreComplete(t *testing.T) {
	t.Parallel()
	var seen []agentkind.Kind
	for _, s := range agentkind.All() {
		if s.Kind == "" || slices.Contains(seen, s.Kind) {
			t.Errorf("%q is in the table twice, or has no name", s.Kind)
		}
		seen = append(seen, s.Kind)
		if s.Label == "" || s.Help == "" || s.Remote == "" {
			t.Errorf("%s lacks a text of its page: %+v", s.Kind, s)
		}
		if s.Registered && (s.Choice == "" || s.When == "" || s.Example == "" && !s.Hosted) {
			t.Errorf("%s lacks a text of the form: %+v", s.Kind, s)
		}
		if (s.Secret != "" || s.Supplied != "") && s.Address == "" {
			t.Errorf("%s has no address that needs a credential or describes it: %+v", s.Kind, s)
		}
		if !s.Hosted && (s.Address == "" || s.Unprobed) {
			t.Errorf("%s is reached at an address and is not probed, or has no example: %+v", s.Kind, s)
		}
		if got := agentkind.Of(s.Kind); got != s {
			t.Errorf("the row of %s is %+v", s.Kind, got)
		}
	}
	if got := agentkind.Of("other"); got.Label != "other" || got.Registered || got.Unprobed {
		t.Errorf("an unknown kind has the row %+v", got)
	}
}

package app

import (
	"testing"

	"agentsite/internal/agentkind"
)

func TestDrivers_OfEveryKind(t *testing.T) {
	t.Parallel()
	byKind := new(drivers).byKind()
	for _, s := range agentkind.All() {
		if _, ok := byKind[s.Kind]; !ok {
			t.Errorf("no driver runs agents of kind %s", s.Kind)
		}
	}
}

package hub

import (
	"testing"

	"agentsite/internal/agentkind"
)

func TestNewSettings_OfEveryRegisteredKind(t *testing.T) {
	t.Parallel()
	for _, s := range agentkind.All() {
		conf, ok := newSettings(s.Kind)
		if ok != s.Registered {
			t.Errorf("%s has settings: %v, is registered: %v", s.Kind, ok, s.Registered)
		}
		if !ok || s.Supplied == "" {
			continue
		}
		found := false
		for _, name := range settingNames(conf) {
			found = found || name == s.Supplied
		}
		if !found {
			t.Errorf("%s has no setting %q, which its address is to supply", s.Kind, s.Supplied)
		}
	}
}

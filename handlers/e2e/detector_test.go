package e2e

import (
	"testing"

	"agentsite/internal/raced"
)

// onlyDrawn says that a test looks at how pages are drawn and what their
// scripts make of hostile words. It asks for one page at a time, so the race
// detector has nothing to find in the portal, and most of its time is the
// browser's: such tests run without the detector only.
func onlyDrawn(t *testing.T) {
	t.Helper()
	raced.Skip(t)
}

// walked are the screens that people walk through the portal on. To the portal,
// whose races are looked for, a desk asks for what a phone does.
func walked() map[string]screen {
	if raced.On {
		return map[string]screen{"phone": screens["phone"], "desk without scripts": screens["desk without scripts"]}
	}
	return screens
}

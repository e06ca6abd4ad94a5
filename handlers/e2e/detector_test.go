package e2e

import (
	"os"
	"testing"

	"agentsite/internal/testing/racetest"
)

// onlyDrawn says that a test looks at how pages are drawn and what their
// scripts make of hostile words. It asks for one page at a time, so the race
// detector has nothing to find in the portal, and most of its time is the
// browser's: such tests run without the detector only.
func onlyDrawn(t *testing.T) {
	t.Helper()
	racetest.Skip(t)
}

// full reports whether the tests run in their whole form: every walk on all of
// its screens, every page at all sizes and in both color schemes. Otherwise
// each walk takes one screen and each page its two extreme sizes.
func full() bool { return os.Getenv("AGENTSITE_TEST_FULL") == "1" }

// walked returns the screens of a walk through the portal: those in names, or
// all of them if the tests run in their whole form. The race detector looks
// for races in the portal, to which a desk sends the same requests as a phone.
func walked(names ...string) map[string]screen {
	switch {
	case full() && !racetest.Enabled:
		return screens
	case racetest.Enabled && len(names) == 1:
		names = []string{"phone", "desk without scripts"}
	}
	chosen := make(map[string]screen, len(names))
	for _, name := range names {
		chosen[name] = screens[name]
	}
	return chosen
}

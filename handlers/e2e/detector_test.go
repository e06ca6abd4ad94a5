//go:build !race

package e2e

import "testing"

// onlyDrawn says that a test looks at how pages are drawn and what their
// scripts make of hostile words. It asks for one page at a time, so the race
// detector has nothing to find in the portal, and most of its time is the
// browser's: such tests run without the detector only.
func onlyDrawn(*testing.T) {}

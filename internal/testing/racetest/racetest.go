// Package racetest lets a test do less under the race detector, which makes
// code about ten times as slow. It knows nothing of what is tested.
package racetest

import "testing"

// Skip skips a test under the race detector: one that runs in a single
// goroutine, or one that repeats at length what a shorter test runs too.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("the race detector has nothing to find here")
	}
}

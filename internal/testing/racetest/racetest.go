// Package racetest lets a test do less under the race detector, which makes code about ten times
// slower.
package racetest

import "testing"

// Skip skips the test under the race detector. It is for a test with a single goroutine, or one that
// repeats many times the steps of a shorter test, or only waits for another process.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("the race detector has nothing to find here")
	}
}

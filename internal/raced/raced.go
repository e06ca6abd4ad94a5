// Package raced tells tests whether the race detector watches, which makes them
// ten times as slow: what has nothing for it to find is run without it only.
package raced

// On is whether the race detector watches.
const On = on

// Test is what of testing.TB is needed here.
type Test interface {
	Helper()
	Skip(args ...any)
}

// Skip skips a test under the race detector. It is for those that do one thing
// after the other, and for those that run long what others run shortly.
func Skip(t Test) {
	t.Helper()
	if On {
		t.Skip("nothing for the race detector to find: run without it")
	}
}

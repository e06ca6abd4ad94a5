//go:build race

package e2e

import "testing"

func onlyDrawn(t *testing.T) {
	t.Helper()
	t.Skip("looks at how pages are drawn: run without the race detector")
}

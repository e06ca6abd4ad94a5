//go:build !race

package peering_test

// raced is whether the race detector watches.
const raced = false

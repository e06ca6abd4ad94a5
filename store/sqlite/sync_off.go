//go:build unsafesync

package store

// For one purpose only: bench/nightly shows with it that its power-cut test
// notices lost writes.
const (
	synchronous      = "OFF"
	synchronousValue = "0"
)

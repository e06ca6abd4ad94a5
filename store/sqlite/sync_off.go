//go:build unsafesync

package sqlite

// For one purpose only: bench/nightly shows with it that its power-cut test
// notices lost writes.
const (
	Synchronous      = "OFF"
	synchronousValue = "0"
)

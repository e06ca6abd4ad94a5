//go:build unsafesync

package sqlite

// For bench/nightly only, which shows with this setting that its power-cut test notices lost writes.
const (
	Synchronous      = "OFF"
	synchronousValue = "0"
)

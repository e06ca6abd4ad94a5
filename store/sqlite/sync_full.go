//go:build !unsafesync

package sqlite

// Every commit reaches the disk before it is acknowledged.
const (
	Synchronous      = "FULL"
	synchronousValue = "2"
)

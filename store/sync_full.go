//go:build !unsafesync

package store

// Every commit reaches the disk before it is acknowledged.
const (
	synchronous      = "FULL"
	synchronousValue = "2"
)

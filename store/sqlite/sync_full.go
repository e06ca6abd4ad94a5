//go:build !unsafesync

package sqlite

// The setting of every release: each commit is on disk before it is acknowledged.
const (
	Synchronous      = "FULL"
	synchronousValue = "2"
)

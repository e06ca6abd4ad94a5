//go:build !linux

package space

import (
	"errors"
	"os"
)

// allocate creates a file that takes size bytes of the disk.
func allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(writeZeros(f, size), f.Sync(), f.Close())
}

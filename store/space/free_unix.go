//go:build linux || darwin

package space

import "syscall"

// fileSystem asks the operating system.
type fileSystem struct{}

// FreeBytes implements Meter.
func (fileSystem) FreeBytes(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(min(st.Bavail, 1<<40)) * int64(st.Bsize), nil
}

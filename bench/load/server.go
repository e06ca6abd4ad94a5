package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"agentsite/bench/proc"
)

// server is a process under load.
type server struct{ *proc.Process }

// start runs a program until it is ready. Whoever starts it ends it with Stop
// or Kill.
func start(name, program string, args ...string) (*server, error) {
	p, err := proc.Start(name, program, args...)
	if err != nil {
		return nil, err
	}
	return &server{p}, nil
}

// forget drops a folder's files from the page cache, so that they are read
// from the disk again.
func forget(dir string) error {
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range list {
		f, ferr := os.Open(name)
		if ferr != nil {
			continue // a socket
		}
		f.Sync()
		const dontNeed = 4
		if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
			err = errors.Join(err, errno)
		}
		f.Close()
	}
	return err
}

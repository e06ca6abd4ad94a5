package main

import (
	"os"
	"path/filepath"

	"agentsite/bench/proc"
)

// server is a process under load.
type server struct{ *proc.Process }

// start runs a program until it is ready. Whoever starts it ends it with Kill.
func start(name, program string, args ...string) (*server, error) {
	p, err := proc.Start(name, program, args...)
	if err != nil {
		return nil, err
	}
	return &server{p}, nil
}

// portal starts the portal on its data.
func (b *bench) portal(listen string) (*server, error) {
	return start("portal", b.binary, "serve", "--listen", listen, "--data", b.data.dir, "--log-level", "warn")
}

// broadcast starts the floor.
func (b *bench) broadcast() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start("floor", self, "-floor")
}

// durable starts the floor that stores messages.
func (b *bench) durable() (*server, error) {
	dir, err := os.MkdirTemp(b.dir, "floor-")
	if err != nil {
		return nil, err
	}
	return start("durable floor", b.floor, "-data", filepath.Clean(dir), "-agents", "100")
}

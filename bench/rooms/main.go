// Command rooms compares live conversations in a real portal with two floors, which are minimal
// servers: a broadcast by plain coder/websocket with a goroutine and a channel for each client (this
// program with -floor), and bench/floor, which stores messages. Portal and floors are processes of
// their own and take turns. The result is the ratio of their processor times. The program prints a
// table, and ends with status 1 when a judged bar is missed.
//
//	go run ./bench/rooms                  all rows: about three minutes
//	go run ./bench/rooms -quick           to see that it works
//	go run ./bench/rooms -rows fan,idle
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsite/bench/proc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
}

// bench is one run: its settings, the portal's data and the results.
type bench struct {
	proc.Bench
	floor string // path of the binary of bench/floor
	data  *data
}

func run(args []string) error {
	if slices.Equal(args, []string{"-floor"}) {
		return serveFloor()
	}
	b := &bench{Bench: proc.Bench{Rounds: 5, Round: 2 * time.Second, Rows: []string{"fan", "stall", "idle", "two"}}}
	b.Init("rooms")
	return b.Run(args, b.prepare, func(name string) error {
		return map[string]func() error{"fan": b.fans, "stall": b.stall, "idle": b.idle, "two": b.two}[name]()
	})
}

func (b *bench) prepare() (err error) {
	if _, err := proc.OpenFiles(1 << 16); err != nil {
		return err
	}
	if err := b.BuildPortal(); err != nil {
		return err
	}
	if b.Wants("two") {
		b.floor = filepath.Join(b.Dir, "floor")
		if err := proc.Build(b.floor, "./bench/floor"); err != nil {
			return err
		}
	}
	if b.data, err = seed(filepath.Join(b.Dir, "portal"), 500); err != nil {
		return fmt.Errorf("fill a portal: %w", err)
	}
	return nil
}

// readers returns the number of readers of the large room.
func (b *bench) readers() int { return b.Pick(200, 1000) }

// server is the process of a floor or the portal under load.
type server struct{ *proc.Process }

func started(p *proc.Process, err error) (*server, error) {
	if err != nil {
		return nil, err
	}
	return &server{p}, nil
}

// portal starts the portal on its data. The caller must end it.
func (b *bench) portal() (*server, error) { return started(b.Serve(b.data.dir)) }

// broadcast starts the floor without storage. The caller must end it.
func (b *bench) broadcast() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return started(proc.Start("floor", self, "-floor"))
}

// durable starts the floor that stores messages, on a new folder. The caller must end it.
func (b *bench) durable() (*server, error) {
	dir, err := os.MkdirTemp(b.Dir, "floor-")
	if err != nil {
		return nil, err
	}
	return started(proc.Start("durable floor", b.floor, "-data", dir, "-agents", "100"))
}

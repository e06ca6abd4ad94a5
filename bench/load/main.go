// Command load compares the directory, the pages and the upkeep of the portal with bench/floor, a
// minimal server for the same requests. Both are processes of their own and get the same load in turn
// over connections that stay open. The result is the ratio of their processor times. The program prints
// a table, and ends with status 1 when a judged bar is missed.
//
//	go run ./bench/load                      all rows: about seven minutes
//	go run ./bench/load -quick               to see that it works
//	go run ./bench/load -rows page,register
//
// docs/performance.md explains the bars and has the latest figures.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentsite/bench/proc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// bench is one run: its settings, the servers that several rows share, and the results. One goroutine
// uses it.
type bench struct {
	proc.Bench
	agents int
	floor  string // path of the binary of bench/floor

	big  *big  // nil until the first row that needs it
	rest *rest // nil unless row idle is measured; then started before the first row, so that it is idle for long
}

func run(args []string) error {
	b := &bench{Bench: proc.Bench{Rounds: 5, Round: 1500 * time.Millisecond,
		Rows: []string{"start", "import", "page", "talk", "search", "register", "agents", "idle"}}}
	b.Init("load")
	b.Flags.IntVar(&b.agents, "agents", 50_000, "agents in the directory")
	defer func() {
		if b.big != nil {
			b.big.end()
		}
		if b.rest != nil {
			b.rest.end()
		}
	}()
	return b.Run(args, b.prepare, func(name string) error {
		return map[string]func() error{"start": b.starts, "import": b.imports, "page": b.pages, "talk": b.talk, "search": b.search,
			"register": b.registers, "agents": b.reportAgents, "idle": b.idle}[name]()
	})
}

func (b *bench) prepare() error {
	if b.Quick {
		b.agents = min(b.agents, 20_000)
	}
	if err := b.BuildPortal(); err != nil {
		return err
	}
	b.floor = filepath.Join(b.Dir, "floor")
	if err := proc.Build(b.floor, "./bench/floor"); err != nil {
		return err
	}
	if b.Wants("idle") {
		return b.beginRest()
	}
	return nil
}

// startFloor starts the floor on a new folder with that number of agents. The caller must end it.
func (b *bench) startFloor(agents int) (*server, error) {
	dir, err := os.MkdirTemp(b.Dir, "floor-data-")
	if err != nil {
		return nil, err
	}
	return started(proc.Start("floor", b.floor, "-data", dir, "-agents", fmt.Sprint(agents)))
}

// startPortal starts the portal on a data folder. The caller must end it.
func (b *bench) startPortal(dir string) (*server, error) { return started(b.Serve(dir)) }

// server is the process of a floor or a portal under load.
type server struct{ *proc.Process }

func started(p *proc.Process, err error) (*server, error) {
	if err != nil {
		return nil, err
	}
	return &server{p}, nil
}

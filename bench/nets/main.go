// Command nets runs a network of portals, each a process in a network namespace of its own. The portals
// find each other, are killed, restarted, and separated into two halves that are joined again; one of
// them is behind an old proxy, and one further portal lies. The program needs root and the command ip;
// it removes everything it made.
//
//	go run ./bench/nets -portals 12 -register 100 -apart 10m
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	var (
		p      plan
		binary = flag.String("binary", "", "the portal's `program`; built when it is not given")
		level  = flag.String("log-level", "info", "of the portals")
	)
	flag.IntVar(&p.portals, "portals", 10, "how many")
	flag.IntVar(&p.register, "register", 20, "agents of which is measured how long it takes until all find them")
	flag.IntVar(&p.changes, "changes", 5, "agents registered in each half while they are apart")
	flag.DurationVar(&p.apart, "apart", 30*time.Second, "how long the halves are apart at least")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if why := able(); why != "" {
		fmt.Fprintln(os.Stderr, "nets:", why)
		os.Exit(1)
	}
	if err := measure(ctx, *binary, *level, p, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "nets:", err)
		os.Exit(1)
	}
}

// measure builds the portal unless binary is given, and runs the plan in new namespaces. When the plan
// fails, it prints the end of every portal's log.
func measure(ctx context.Context, binary, level string, p plan, out io.Writer) error {
	if p.portals < 4 {
		return errors.New("four portals are the least: two for each half")
	}
	dir, remove, err := temp()
	if err != nil {
		return err
	}
	defer remove()
	if binary == "" {
		binary = filepath.Join(dir, "agentsite")
		// Without build flags, as the tests are built, so that most packages are in the build cache.
		if b, err := exec.Command("go", "build", "-o", binary, "agentsite").CombinedOutput(); err != nil {
			return fmt.Errorf("build the portal: %w: %s", err, b)
		}
	}
	w, err := newWorld(dir, binary, level, p.portals, out)
	defer w.close()
	if err == nil {
		err = w.run(ctx, p)
	}
	if err != nil {
		w.logs()
	}
	return err
}

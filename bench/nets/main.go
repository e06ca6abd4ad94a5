// Command nets runs a network of portals, each a process in a network
// namespace of its own: they find each other, are killed, parted, healed and
// restarted, one of them is behind an old proxy, and one of their neighbours
// lies. It needs root and the program ip, and leaves nothing behind.
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

// measure runs a plan in a world of its own. When it fails, what the portals
// logged is printed.
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
		// Built as the tests are, so that most of it is there already.
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

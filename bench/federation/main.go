// Command federation measures what a first sync costs a portal, without the
// network: signed logs of many portals are read from files, verified by the
// Gate, kept in a Replica on disk and put into the search index, as the puller
// does it. The bar is a million records of a thousand portals in 120 s on two
// cores.
//
//	go run ./bench/federation -records 1000000 -portals 1000
//
// Making the logs is not measured. With -logs DIR they are kept there and used
// again for a day.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "federation:", err)
		os.Exit(1)
	}
}

// plan is what the flags say.
type plan struct {
	records, portals, workers int
	logs, data                string
	index, admit              bool
	profile                   string
}

func run(ctx context.Context) error {
	var p plan
	flag.IntVar(&p.records, "records", 100_000, "agents of all portals")
	flag.IntVar(&p.portals, "portals", 100, "portals they are of")
	flag.IntVar(&p.workers, "workers", 2, "portals whose logs are taken in at once")
	flag.StringVar(&p.logs, "logs", "", "keep the signed logs in this folder, or use those there")
	flag.StringVar(&p.data, "data", "", "folder for the replica (default a temporary one)")
	flag.BoolVar(&p.index, "index", true, "put the agents into the search index too")
	flag.BoolVar(&p.admit, "admit", false, "take in the logs of -logs; set by the program itself")
	flag.StringVar(&p.profile, "profile", "", "write a CPU profile to this file")
	flag.Parse()
	if p.admit {
		return admit(ctx, p)
	}
	if p.logs == "" {
		dir, err := os.MkdirTemp("", "agentsite-logs-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.logs = dir
	}
	if _, err := os.Stat(filepath.Join(p.logs, doneName)); err != nil {
		if err := makeLogs(ctx, p); err != nil {
			return err
		}
	}
	// A process of its own, whose memory is that of the sync alone.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-admit", "-logs", p.logs, "-data", p.data, "-index="+strconv.FormatBool(p.index),
		"-workers", strconv.Itoa(p.workers), "-profile", p.profile)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

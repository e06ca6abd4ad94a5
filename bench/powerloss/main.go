// Powerloss mounts a folder that can simulate a power cut: on request it writes to another folder the
// data that a power cut at that moment would have left. That is the data flushed by fsync and nothing
// else or, if asked, that data and a random part of the rest. It is a tool for tests of programs that
// promise to lose nothing, such as bench/chaos, and does not depend on any of them.
//
//	powerloss -mount M [-from DIR]
//
// It prints "mounted" and then reads commands from its standard input, one a line, until the input
// ends; then it unmounts. The command "cut IMAGE [KEEP SEED]" writes the folder IMAGE and answers "cut
// files=… lost=… forgotten=… syncs=…". After "fail" every fsync fails with EIO, after "heal" none; both
// answer "done".
//
// The folder is kept in memory. README.md describes which failures of a disk are modelled.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "powerloss:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	fs := flag.NewFlagSet("powerloss", flag.ContinueOnError)
	at := fs.String("mount", "", "empty `FOLDER` to mount on")
	from := fs.String("from", "", "`FOLDER` whose files are there, safe, at the start")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *at == "" {
		return fmt.Errorf("name the folder to mount on with -mount")
	}
	d := newDisk()
	if *from != "" {
		if err := d.load(*from); err != nil {
			return fmt.Errorf("load %s: %w", *from, err)
		}
	}
	server, err := mount(*at, d)
	if err != nil {
		return fmt.Errorf("mount %s (needs /dev/fuse, and root or the package fuse3): %w", *at, err)
	}
	defer unmount(server, *at)
	fmt.Fprintln(stdout, "mounted")

	// A signal unmounts the folder, like the end of the input.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- serve(d, stdin, stdout) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return nil
	}
}

// serve executes the commands in stdin, one a line, and answers each with one line, until the input
// ends.
func serve(d *disk, stdin io.Reader, stdout io.Writer) error {
	in := bufio.NewScanner(stdin)
	for in.Scan() {
		line, err := command(d, in.Text())
		if err != nil {
			line = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			return err
		}
	}
	return in.Err()
}

func command(d *disk, line string) (string, error) {
	w := strings.Fields(line)
	if len(w) == 1 && (w[0] == "fail" || w[0] == "heal") {
		d.setFails(w[0] == "fail")
		return "done", nil
	}
	if len(w) != 2 && len(w) != 4 || w[0] != "cut" {
		return "", fmt.Errorf("the commands are: cut IMAGE [KEEP SEED], fail, heal")
	}
	keep, seed := 0.0, uint64(0)
	if len(w) == 4 {
		var err error
		if keep, err = strconv.ParseFloat(w[2], 64); err != nil || keep < 0 || keep > 1 {
			return "", fmt.Errorf("KEEP is a probability")
		}
		if seed, err = strconv.ParseUint(w[3], 10, 64); err != nil {
			return "", fmt.Errorf("SEED is a number")
		}
	}
	r := d.cut(keep, rand.New(rand.NewPCG(seed, 0)))
	if err := r.save(w[1]); err != nil {
		return "", err
	}
	return fmt.Sprintf("cut files=%d lost=%d forgotten=%d syncs=%d", len(r.files), r.lost, r.forgotten, r.syncs), nil
}

// unmount waits a moment for programs to close their files, then detaches the folder although it is in
// use.
func unmount(server *fuse.Server, at string) {
	for range 20 {
		if server.Unmount() == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	syscall.Unmount(at, syscall.MNT_DETACH)
}

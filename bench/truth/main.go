// Command truth tests whether the liveness that a hub reports is right: it starts 50 agents on
// loopback, half of them broken in ways that occur, registers them in a hub of its own, and compares
// each reported liveness with the one that a person would find. Every agent counts the requests that
// made it do work, because a probe must make none.
//
//	go run ./bench/truth
//
// It ends with status 1 when a liveness is wrong or an agent did work.
package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

func main() {
	if err := report(); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
}

func report() (err error) {
	sh := &shell{}
	defer sh.end()
	defer func() {
		if e, ok := recover().(failure); ok {
			err = e
		}
	}()
	began := time.Now()
	rows := judge(sh)
	took := time.Since(began)
	right, worked := 0, 0
	for _, r := range rows {
		mark := "ok   "
		if r.right() {
			right++
		} else {
			mark = "WRONG"
		}
		worked += r.labour
		fmt.Printf("%s %-28s %-7s %-15s %6.1f ms  %3d asked  %d worked  %s\n      %s\n", mark, r.name, r.kind, r.got.State, float64(r.got.Latency.Microseconds())/1000, r.asks, r.labour, r.what, r.got.Reason)
	}
	fmt.Printf("\n%d of %d verdicts right, %d agents made to work, %.1f s\n", right, len(rows), worked, took.Seconds())
	if right < len(rows) || worked > 0 || sh.failed {
		return fmt.Errorf("not all is as it should be")
	}
	return nil
}

// shell is a testing.TB for a program that is no test, because the test helpers need one.
type shell struct {
	testing.TB
	cleanups []func()
	failed   bool
}

// failure is the value with which Fatal panics, so that main can report the text.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

func (s *shell) Helper()                  {}
func (s *shell) Name() string             { return "truth" }
func (s *shell) Context() context.Context { return context.Background() }
func (s *shell) Cleanup(f func())         { s.cleanups = append(s.cleanups, f) }
func (s *shell) Log(args ...any)          {}
func (s *shell) Logf(string, ...any)      {}
func (s *shell) Fatal(args ...any)        { panic(failure{fmt.Sprintln(args...)}) }
func (s *shell) Fatalf(format string, args ...any) {
	panic(failure{fmt.Sprintf(format, args...)})
}

func (s *shell) Error(args ...any) {
	s.failed = true
	fmt.Fprintln(os.Stderr, args...)
}

func (s *shell) Errorf(format string, args ...any) { s.Error(fmt.Sprintf(format, args...)) }

// TempDir returns a new folder, which end removes.
func (s *shell) TempDir() string {
	dir, err := os.MkdirTemp("", "truth-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *shell) end() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

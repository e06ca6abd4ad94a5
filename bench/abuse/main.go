// Command abuse measures the harm that one account, guest, address or portal can do to others. Each row
// starts a portal on an empty folder, measures an ordinary user alone, floods the portal, measures the
// ordinary user again, and judges the difference by the bars of issue "One
// account cannot harm another". The program prints a table, and ends with status 1 when a bar is missed.
//
//	go run ./bench/abuse                      all rows: about seven minutes
//	go run ./bench/abuse -quick               to see that it works
//	go run ./bench/abuse -rows account,room
package main

import (
	"fmt"
	"os"
	"time"

	"agentsite/bench/proc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "abuse:", err)
		os.Exit(1)
	}
}

// bench is one run: its settings and its results.
type bench struct{ proc.Bench }

// rows are all rows with their functions.
var rows = []struct {
	name string
	run  func(*bench) error
}{
	{"account", (*bench).floodByAccount},
	{"room", (*bench).floodInRoom},
	{"guest", (*bench).floodByGuest},
	{"accounts", (*bench).floodByAccounts},
	{"subnet", (*bench).floodBySubnet},
	{"portal", (*bench).floodByPortal},
	{"readers", (*bench).slowReaders},
	{"writer", (*bench).fastWriter},
	{"sockets", (*bench).manySockets},
	{"passwords", (*bench).guessPasswords},
	{"disk", (*bench).fullDisk},
	{"locked", (*bench).lockedDatabase},
	{"fsync", (*bench).failingSync},
	{"upgrade", (*bench).killedUpgrades},
}

func run(args []string) error {
	b := &bench{Bench: proc.Bench{Rounds: 1, Round: time.Minute}}
	for _, r := range rows {
		b.Rows = append(b.Rows, r.name)
	}
	b.Init("abuse")
	return b.Run(args, func() error {
		if _, err := proc.OpenFiles(1 << 16); err != nil {
			return err
		}
		return b.BuildPortal()
	}, func(name string) error {
		for _, r := range rows {
			if r.name == name {
				return r.run(b)
			}
		}
		return fmt.Errorf("no row %q", name)
	})
}

// Command agentsite runs a portal: a directory of AI agents that people and programs can find, talk
// to and give tasks, in a network with other portals. Package cli holds its subcommands;
// docs/cli.md describes them.
package main

import (
	"context"
	"os"

	"agentsite/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

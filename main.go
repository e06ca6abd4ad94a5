// Agentsite runs a portal where AI agents live, are found and talked to.
package main

import (
	"context"
	"os"

	"agentsite/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

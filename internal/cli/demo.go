package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"agentsite/internal/app/demo"
)

func demoFlags(fs *flags) {
	fs.demo.Portals = 3
	fs.IntVar(&fs.demo.Portals, "portals", 3, fmt.Sprintf("number `N` of portals, at most %d", demo.MaxPortals))
	fs.IntVar(&fs.demo.Kill, "kill", 0, "number `N` of portals that stop at once when all are connected; new "+
		"ones join, and a line reports when all remaining agents are found again")
	fs.StringVar(&fs.demo.Keep, "keep", "", "an empty folder `DIR` for the data, which stays; without it the "+
		"data goes when the demo ends")
}

// runDemo runs a federation of portals in this process. The first SIGINT or SIGTERM stops the portals in
// order; the second ends the process.
func runDemo(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("demo", args, 0, 0); err != nil {
		return err
	}
	if err := fs.demo.Validate(); err != nil {
		return usagef("%s", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return demo.Run(ctx, fs.demo, e.stdout, e.stderr)
}

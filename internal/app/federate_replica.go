package app

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
	"agentsite/store"
)

// replicaSweep is how often what has expired is forgotten.
const replicaSweep = time.Hour

// openReplica opens the replica of a portal in a network. Close closes it.
func (p *Portal) openReplica(ctx context.Context, own record.PortalID, network string) (err error) {
	p.replica, err = store.OpenReplica(ctx, p.set.Data, own, network, p.log)
	return err
}

// sweepReplica forgets what has expired of what portals signed, until ctx ends.
// The portal goes on without its replica when its disk fails it: nothing is
// taken in then until the next start.
func (p *Portal) sweepReplica(ctx context.Context) error {
	tick := time.NewTicker(replicaSweep)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-p.replica.Fatal():
			p.log.Error("the replica of other portals' agents failed: start the portal again, which mends it or begins a new one", "error", p.replica.Err())
			<-ctx.Done()
			return nil
		case <-ctx.Done():
			return nil
		}
		if err := p.replica.Sweep(ctx, clock.Now()); err != nil && ctx.Err() == nil {
			p.log.Warn("forget expired records", "error", err)
		}
	}
}

// closeReplica closes the replica if there is one.
func (p *Portal) closeReplica() {
	if p.replica == nil {
		return
	}
	if err := p.replica.Close(); err != nil {
		p.log.Error("close the replica", "error", err)
	}
}

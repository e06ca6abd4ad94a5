package gossip

import (
	"log"
	"strconv"
	"sync/atomic"
)

type stdLogger = log.Logger

// counters count events since the start of the process.
type counters struct {
	sent, failed, asked, in, out atomic.Int64 // requests, and bytes of their bodies received and sent
	dropped, refused             atomic.Int64 // packets without room, and invalid messages
	joins, lost, told, heard     atomic.Int64
	failures                     atomic.Int64 // pools that ended by an error
}

// Standing is a snapshot of this portal's membership for display: federation.GossipStanding has the same
// fields in the same order.
type Standing struct {
	Running                      bool
	Failures                     int64
	By, Zone                     string
	Members, Gone                int
	Told, Heard, Lost            int64
	Sent, Failed, Asked, In, Out int64
	Dropped, Refused             int64
	Queued                       int
}

// Standing returns a snapshot of the membership for display; it does not block on the network.
func (g *Gossip) Standing() Standing {
	c := &g.count
	s := Standing{By: "https", Failures: c.failures.Load(), Zone: g.zoneName(), Told: c.told.Load(),
		Heard: c.heard.Load(), Lost: c.lost.Load(),
		Sent: c.sent.Load(), Failed: c.failed.Load(), Asked: c.asked.Load(), In: c.in.Load(), Out: c.out.Load(),
		Dropped: c.dropped.Load(), Refused: c.refused.Load()}
	if g.cfg.Listen != "" {
		s.By = g.cfg.Listen
	}
	s.Members, s.Gone = g.Members()
	g.mu.Lock()
	p := g.pool
	g.mu.Unlock()
	if p != nil {
		st := p.serf.Stats()
		s.Running = true
		s.Queued = atoi(st["event_queue"]) + atoi(st["intent_queue"])
	}
	return s
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

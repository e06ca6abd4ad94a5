package liveness

import (
	"context"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
)

const (
	// sweepEvery is the interval of the search for agents that are due. While many visits wait it
	// is busySweep, because each search reads the waiting agents again.
	sweepEvery = 5 * time.Second
	busySweep  = 30 * time.Second
	sweepBatch = 512
)

// probeJob asks Service.Run for one probe. done gets the result and must have room for it; nil if
// no requester waits. If away is set, no probe is made: at that time Run checks whether the linked
// agent is still missing.
type probeJob struct {
	agent hub.Agent
	done  chan hub.Liveness
	away  time.Time
}

// report is a message from the goroutine of a visit to Service.Run. Each visit sends one with its
// result and one with over set at its end.
type report struct {
	visit *visit
	over  bool
	live  hub.Liveness
	reach reach
	took  time.Duration
	// host is the agent's present host if that differs from the host of the visit: the visit is
	// repeated there.
	host string
	// same are the visits that got the result of another agent's probe at the same host. They have
	// ended.
	same []*visit
}

// Run probes agents when they are due or requested, until ctx ends. It returns when all of its
// goroutines have ended.
func (m *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { m.keepDomains(ctx) })
	var (
		r       = newRounds()
		proofs  = newReproofs()
		reports = make(chan report)
		away    = make(map[string]time.Time) // when to check that a linked agent is still missing, by agent id
		tick    = time.NewTicker(sweepEvery)
		timer   = time.NewTimer(0)
		looked  time.Time
		more    = true
	)
	defer tick.Stop()
	defer timer.Stop()
	send := func(rep report) {
		select {
		case reports <- rep:
		case <-ctx.Done():
		}
	}
	for {
		now := time.Now()
		if more && r.waiting < sweepBatch/4 {
			more, looked = m.queueDue(ctx, r), now
		}
		var wait time.Duration
		for {
			var v *visit
			if v, wait = r.nextVisit(now); v == nil {
				break
			}
			wg.Go(func() { m.visitAgent(ctx, v, proofs, send) })
		}
		if timer.Stop(); wait > 0 {
			timer.Reset(wait)
		}
		select {
		case job := <-m.queue.jobs:
			if !job.away.IsZero() {
				away[job.agent.ID] = job.away
				break
			}
			v := &visit{agent: job.agent.ID, version: job.agent.Version, host: hostOf(job.agent)}
			if job.done != nil {
				v.waiters = []chan hub.Liveness{job.done}
			}
			r.addVisit(v)
		case rep := <-reports:
			m.handleReport(ctx, &wg, r, rep, send)
		case <-tick.C:
			if r.waiting < sweepBatch || time.Since(looked) >= busySweep {
				more, looked = m.queueDue(ctx, r), time.Now()
			}
			for id, at := range away {
				if now := clock.Now(); !now.Before(at) {
					if away[id] = m.notifyMissing(ctx, id, now); away[id].IsZero() {
						delete(away, id)
					}
				}
			}
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// queueDue queues visits for agents that are due. It reports whether more may be due. Agents with a
// waiting visit are still due in the database, so the batch is larger by their number.
func (m *Service) queueDue(ctx context.Context, r *rounds) bool {
	limit := min(len(r.visits)+sweepBatch, maxWaiting)
	due, err := m.queue.store.Due(ctx, clock.Now(), limit)
	if err != nil {
		if ctx.Err() == nil {
			m.queue.log.Warn("list agents to check", "error", err)
		}
		return false
	}
	before := r.waiting
	for _, c := range due {
		r.addVisit(&visit{agent: c.Agent.ID, version: c.Agent.Version, host: hostOf(c.Agent)})
	}
	return len(due) == limit && r.waiting > before
}

// handleReport updates the queues with the result or the end of a visit.
func (m *Service) handleReport(ctx context.Context, wg *sync.WaitGroup, r *rounds, rep report, send func(report)) {
	v := rep.visit
	switch {
	case len(rep.same) > 0:
		for _, o := range rep.same {
			r.forgetVisit(o)
		}
		return
	case rep.over:
		r.endVisit(v)
		if rep.host != "" { // the agent moved to another host while the visit waited
			r.addVisit(&visit{agent: v.agent, version: v.version, host: rep.host, waiters: v.waiters})
		}
		return
	}
	same, back := r.noteResult(v, rep.live, rep.reach, rep.took, time.Now())
	if len(same) > 0 {
		wg.Go(func() {
			m.sameHost(ctx, same, rep.live)
			send(report{same: same})
		})
	}
	if len(back) > 0 {
		wg.Go(func() {
			for _, id := range back {
				m.queue.dueAt(ctx, id, clock.Now())
			}
		})
	}
}

// visitAgent probes one agent in a goroutine of its own. It sends two reports: the result, and the
// end of the visit.
func (m *Service) visitAgent(ctx context.Context, v *visit, proofs *reproofs, send func(report)) {
	rep := report{visit: v}
	defer func() { send(report{visit: v, over: true, host: rep.host}) }()
	c, err := m.queue.store.Checkup(ctx, v.agent)
	if err != nil {
		send(report{visit: v, live: hub.Liveness{State: hub.Unknown, Reason: "The agent is gone."}})
		return
	}
	if host := hostOf(c.Agent); host != v.host {
		rep.host = host
		return
	}
	began := time.Now()
	rep.live, rep.reach = m.contactAgent(ctx, c)
	rep.took = time.Since(began)
	send(rep)
	rep.host = ""
	if rep.live.State != hub.Alive || ctx.Err() != nil {
		return
	}
	// Work after a success. It delays no requester, because the result has been sent.
	a, err := m.queue.store.AgentByID(ctx, v.agent)
	if err != nil {
		return
	}
	var before time.Time
	if n := len(c.History); n > 0 {
		before = c.History[n-1].At
	}
	m.rereadAgent(ctx, a, before)
	m.renewProof(ctx, a, proofs)
}

// sameHost stores the result of one agent's probe for other agents of the same host, unless they
// moved to another host meanwhile.
func (m *Service) sameHost(ctx context.Context, list []*visit, l hub.Liveness) {
	l.Latency, l.Reason = 0, l.Reason+" Another agent of the same host was asked."
	for _, v := range list {
		l.CheckedAt = clock.Now()
		if c, err := m.queue.store.Checkup(ctx, v.agent); err == nil && hostOf(c.Agent) == v.host {
			m.recordVerdict(ctx, c, l)
		}
	}
}

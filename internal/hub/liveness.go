package hub

import (
	"context"
	"net/url"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

const (
	// probeTimeout bounds one exchange.
	probeTimeout = 10 * time.Second
	// publishWait is how long a registration waits for its first verdict.
	publishWait = 1500 * time.Millisecond
	// probeEvery is how old a verdict may grow.
	probeEvery   = 5 * time.Minute
	sweepEvery   = 30 * time.Second
	probesAtOnce = 8
)

// probeJob asks Run for one exchange; done gets the verdict, or is nil.
type probeJob struct {
	agent Agent
	done  chan Liveness
}

// Run makes the exchanges that liveness rests on, until ctx ends. It returns
// when all of its goroutines have.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range probesAtOnce {
		wg.Go(func() {
			for {
				select {
				case job := <-s.probes:
					l := s.probe(ctx, job.agent)
					if job.done != nil {
						job.done <- l
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sweep(ctx)
		case <-ctx.Done():
			wg.Wait()
			return nil
		}
	}
}

// sweep queues agents whose verdict has grown old. What does not fit in the
// queue is still due at the next sweep.
func (s *Service) sweep(ctx context.Context) {
	due, err := s.store.Due(ctx, clock.Now().Add(-probeEvery), cap(s.probes))
	if err != nil {
		s.cfg.Log.Warn("list agents to check", "error", err)
		return
	}
	for _, a := range due {
		select {
		case s.probes <- probeJob{agent: a}:
		default:
			return
		}
	}
}

// probe makes one exchange and stores what it showed.
func (s *Service) probe(ctx context.Context, a Agent) Liveness {
	t := Target{Kind: a.Kind, Endpoint: a.Endpoint, Config: a.Config}
	if a.HasSecret {
		// The job may be older than the last edit: a new credential must not
		// go to the old address.
		if now, secret, err := s.Open(ctx, a.ID); err == nil && now.Version == a.Version {
			t.Secret = secret
		}
	}
	pctx, cancel := context.WithTimeout(ctx, probeTimeout)
	l := s.prober.Probe(pctx, t)
	cancel()
	if ctx.Err() != nil {
		return a.Liveness
	}
	l.CheckedAt = clock.Now()
	s.Observe(ctx, a.ID, l)
	return l
}

// Observe stores what an exchange with an agent showed.
func (s *Service) Observe(ctx context.Context, agentID string, l Liveness) {
	if len(l.Reason) > 300 {
		l.Reason = clean(l.Reason[:300])
	}
	if err := s.store.SetLiveness(ctx, agentID, l); err != nil {
		if !fault.Is(err, fault.NotFound) {
			s.cfg.Log.Warn("store liveness", "agent", agentID, "error", err)
		}
		return
	}
	// Read back: the agent may have been edited or removed meanwhile.
	if a, err := s.store.AgentByID(ctx, agentID); err == nil {
		s.index.Put(a)
	}
}

// checked waits a moment for the first verdict on a new version.
func (s *Service) checked(ctx context.Context, a Agent) Agent {
	if a.Kind == Builtin {
		return a
	}
	done := make(chan Liveness, 1)
	select {
	case s.probes <- probeJob{a, done}:
	default:
		return a
	}
	wait := time.NewTimer(publishWait)
	defer wait.Stop()
	select {
	case a.Liveness = <-done:
	case <-wait.C:
	case <-ctx.Done():
	}
	return a
}

// Check makes an exchange now, for the agent's owner or the operator, and
// returns the agent with the verdict.
func (s *Service) Check(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.owned(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return Agent{}, fault.Limited(wait, "You checked often in a short time. Wait a moment.")
	}
	a.Liveness = s.probe(ctx, a)
	return a, nil
}

// origin is scheme, host and port of an address.
func origin(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Scheme + "://" + u.Host
}

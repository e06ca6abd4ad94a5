package hub

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
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
	// maxReason bounds the sentence of a verdict, in bytes.
	maxReason = 300
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
	a = s.learn(ctx, a)
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
	// What an earlier version's address answered says nothing of this one.
	if now, err := s.store.AgentByID(ctx, a.ID); err == nil && now.Version != a.Version {
		return now.Liveness
	}
	l.CheckedAt = clock.Now()
	s.Observe(ctx, a.ID, l)
	return l
}

// learn reads the card of an A2A agent that did not answer when it was
// registered: until then nobody knows how it is spoken to. What the card says
// becomes a new version; nothing changes when there is no card yet.
func (s *Service) learn(ctx context.Context, a Agent) Agent {
	var conf A2AConfig
	if a.Kind != A2A || json.Unmarshal(a.Config, &conf) == nil && conf.Binding != "" {
		return a
	}
	rctx, cancel := context.WithTimeout(ctx, consultWait)
	defer cancel()
	described, err := s.reader.Read(rctx, a.Endpoint)
	// A stored credential stays with the origin it was given for.
	if err != nil || described.Kind != A2A || a.HasSecret && origin(described.Endpoint) != origin(a.Endpoint) {
		return a
	}
	next := a
	d := Draft{Endpoint: &described.Endpoint}
	if err := json.Unmarshal(described.Config, &d.Config); err != nil {
		return a
	}
	if len(a.Skills) == 0 {
		d.Skills = &described.Skills
	}
	if err := d.apply(&next, s.cfg.Kinds, s.cfg.CheckURL); err != nil {
		return a
	}
	next.Version, next.UpdatedAt = a.Version+1, clock.Now()
	if err := s.store.UpdateAgent(ctx, next, a.Version, nil, ident.Actor{Kind: ident.System}); err != nil {
		return a
	}
	return next
}

// Observe stores what an exchange with an agent showed.
func (s *Service) Observe(ctx context.Context, agentID string, l Liveness) {
	if l.Reason = oneLine(l.Reason); len(l.Reason) > maxReason {
		l.Reason = strings.TrimRight(strings.ToValidUTF8(l.Reason[:maxReason], ""), " ")
	}
	if err := s.store.SetLiveness(ctx, agentID, l); err != nil {
		if !fault.Is(err, fault.NotFound) {
			s.cfg.Log.Warn("store liveness", "agent", agentID, "error", err)
		}
		return
	}
	s.reindex(ctx, agentID)
}

// reindex puts the agent into the index as it is now. It looks again after
// each Put, so that an edit or removal that came in between, whose own Put or
// Remove went before, has the last word.
func (s *Service) reindex(ctx context.Context, agentID string) {
	for last := 0; ; {
		a, err := s.store.AgentByID(ctx, agentID)
		switch {
		case fault.Is(err, fault.NotFound):
			s.unlist(agentID)
			return
		case err != nil || a.Version == last:
			return
		}
		s.list(a)
		last = a.Version
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
		// The exchange may have taught a new version.
		if now, err := s.store.AgentByID(ctx, a.ID); err == nil {
			return now
		}
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
	verdict := s.probe(ctx, a)
	if a, err = s.store.AgentByID(ctx, a.ID); err == nil {
		a.Liveness = verdict // also when it could not be stored
	}
	return a, err
}

// origin is scheme, host and port of an address.
func origin(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Scheme + "://" + u.Host
}

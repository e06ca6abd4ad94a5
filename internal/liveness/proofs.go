package liveness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

// The times of proof checks and the end of a proof. Only an answering agent can lose its proof: a
// site that is down proves nothing, and has no new owner.
const (
	proofEvery = 24 * time.Hour
	// proofAgain is the time between two looks that found nothing.
	proofAgain = 12 * time.Hour
	// A proof ends after proofLooks of them in a row and when it has not been
	// seen for proofLife. The count is not stored: after a restart, a proof
	// that has not been seen for proofLong ends at the second.
	proofLooks = 5
	proofLife  = 3 * 24 * time.Hour
	proofLong  = 7 * 24 * time.Hour
	maxProofs  = 10_000
	// domainsEvery is how often it is looked which domains are to be proved
	// again.
	domainsEvery = 5 * time.Minute
)

// reproofs counts the proofs that were missing at their last check.
type reproofs struct {
	mu   sync.Mutex // guards list
	list map[string]lookedFor
}

type lookedFor struct {
	origin string
	times  int
	last   time.Time
}

func newReproofs() *reproofs { return &reproofs{list: make(map[string]lookedFor)} }

// isDue reports whether an agent's proof is to be checked now.
func (p *reproofs) isDue(a hub.Agent, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(a.Proof.At) >= proofEvery && now.Sub(p.list[a.ID].last) >= proofAgain
}

// noteMissed notes that a proof was not found and reports whether it ends.
func (p *reproofs) noteMissed(a hub.Agent, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.list[a.ID]
	if l.origin != a.Proof.Origin {
		l = lookedFor{origin: a.Proof.Origin}
	}
	l.times, l.last = l.times+1, now
	age := now.Sub(a.Proof.At)
	if l.times >= proofLooks && age >= proofLife || l.times >= 2 && age >= proofLong {
		delete(p.list, a.ID)
		return true
	}
	if len(p.list) >= maxProofs {
		clear(p.list)
	}
	p.list[a.ID] = l
	return false
}

func (p *reproofs) noteFound(a hub.Agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.list, a.ID)
}

// renewProof checks the proof of an agent that just answered.
func (m *Service) renewProof(ctx context.Context, a hub.Agent, proofs *reproofs) {
	if m.proofs == nil || a.Proof.State != hub.Proved || !proofs.isDue(a, clock.Now()) {
		return
	}
	err := m.proofs.ProveAgain(ctx, a)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		proofs.noteFound(a)
		m.agents.Reindex(ctx, a.ID)
		return
	}
	now, lerr := m.queue.store.AgentByID(ctx, a.ID)
	if lerr != nil || now.Proof != a.Proof || !proofs.noteMissed(a, clock.Now()) {
		return
	}
	if err := m.queue.store.SetProof(ctx, a.ID, a.OwnerID, hub.Proof{}); err != nil {
		m.queue.log.Warn("end a proof", "agent", a.ID, "error", err)
		return
	}
	m.agents.Reindex(ctx, a.ID)
	m.ports.Notices.NotifyOwners(ctx, a, hub.Notice{Kind: hub.NoticeProof,
		Text: fmt.Sprintf("%s no longer shows that you may list %s, so it is shown as unproven. %s", a.Proof.Origin,
			a.Name, fault.As(err).Safe)})
}

// keepDomains checks proved domains regularly until ctx ends.
func (m *Service) keepDomains(ctx context.Context) {
	if m.proofs == nil {
		return
	}
	tick := time.NewTicker(domainsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.proofs.RecheckDomains(ctx)
		case <-ctx.Done():
			return
		}
	}
}

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

// The intervals of proof checks and the conditions under which a proof ends. Only an agent that
// answers can lose its proof, because a site that is down does not show that it changed hands.
const (
	proofEvery = 24 * time.Hour
	// proofAgain is the time between two checks while the proof is missing.
	proofAgain = 12 * time.Hour
	// A proof ends after proofLooks failed checks in a row if it was last found more than proofLife
	// ago. The number of checks is not stored. So that restarts do not keep a proof for ever, two
	// failed checks suffice once it was last found more than proofLong ago.
	proofLooks = 5
	proofLife  = 3 * 24 * time.Hour
	proofLong  = 7 * 24 * time.Hour
	maxProofs  = 10_000
	// domainsEvery is the interval of the search for domains with a proof that must be checked
	// again.
	domainsEvery = 5 * time.Minute
)

// reproofs counts failed proof checks in a row, by agent. The counts are lost at a restart.
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

// isDue reports whether an agent's proof must be checked now.
func (p *reproofs) isDue(a hub.Agent, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(a.Proof.At) >= proofEvery && now.Sub(p.list[a.ID].last) >= proofAgain
}

// noteMissed counts a failed check and reports whether the proof ends with it.
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

// renewProof checks the proof of an agent that just answered, if a check is due, and ends the proof
// after too many failures. It may ask the site of the proof.
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

// keepDomains checks each domainsEvery whether proved domains must be checked again, until ctx
// ends.
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

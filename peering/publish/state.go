package publish

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

// Published returns the publication state of an agent of this portal for its owner: its newest record, or
// the reason why it is not published.
func (p *Publisher) Published(a hub.Agent) federation.Published {
	if why := p.hidden(a); why != "" {
		return federation.Published{Why: why}
	}
	s := p.entryState(translate.LocalID(a.ID))
	if s.Why == "" {
		_, s.Cut = translate.Record(a, p.cfg.Signer.Origin(), clock.Now())
	}
	return s
}

func (p *Publisher) entryState(local string) federation.Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := p.refused[local]; why != "" {
		return federation.Published{Why: why}
	}
	e := p.entries[local]
	if e == nil || e.deleted {
		return federation.Published{Why: "It is about to be published."}
	}
	return federation.Published{Version: e.version, At: clock.FromMilli(e.issued), Hash: e.hash,
		Listed: p.head != nil && p.head.Epoch == e.version.Epoch && p.head.Seq > e.version.Seq}
}

// Prove returns the proof that the newest head covers the agent record with a key, or that it covers none.
// It returns nil for another portal's id, and as long as a stored record is newer than the head.
func (p *Publisher) Prove(_ context.Context, portal record.PortalID, key record.Hash) *record.Proof {
	if portal != p.cfg.Signer.ID() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head == nil || !p.head.Body.(*record.Head).Describes(&p.tree) {
		return nil
	}
	return p.tree.Prove(key)
}

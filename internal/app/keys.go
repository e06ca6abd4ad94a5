package app

import (
	"crypto/ed25519"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/task"
)

// Mark implements agentruntime.Identity.
func (p *Portal) Mark(purpose, subject string) string { return p.keys.Mark(purpose, subject) }

// Hop implements agentruntime.Identity and chat.HopNames: it names an agent in chains.
func (p *Portal) Hop(agentID string) task.Hop {
	return task.Hop(p.url.Host + "/" + p.keys.Mark("agentsite/hop/1", agentID))
}

// SigningKey implements agentruntime.Identity.
func (p *Portal) SigningKey() (ed25519.PrivateKey, error) {
	k, ok := p.operational.Signing(clock.Now(), nil)
	if !ok {
		return nil, errors.New("no operational key is good now; is the clock wrong?")
	}
	return k.Key, nil
}

package app

import (
	"crypto/ed25519"
	"errors"

	"agentsite/internal/clock"
	"agentsite/internal/task"
)

// Mark implements agentruntime.Identity. The result is the same for equal arguments and cannot be
// computed without the portal's key.
func (p *Portal) Mark(purpose, subject string) string { return p.keys.Mark(purpose, subject) }

// Hop implements agentruntime.Identity and chat.HopNames. It returns the name of an agent in chains of
// agents: the portal's host and a mark that does not reveal the agent's id.
func (p *Portal) Hop(agentID string) task.Hop {
	return task.Hop(p.url.Host + "/" + p.keys.Mark("agentsite/hop/1", agentID))
}

// SigningKey implements agentruntime.Identity. It fails if no operational key is valid now, usually
// because the clock is wrong.
func (p *Portal) SigningKey() (ed25519.PrivateKey, error) {
	k, ok := p.operational.Signing(clock.Now(), nil)
	if !ok {
		return nil, errors.New("no operational key is good now; is the clock wrong?")
	}
	return k.Key, nil
}

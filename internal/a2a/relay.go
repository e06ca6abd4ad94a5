package a2a

import (
	"agentsite/internal/hub"
)

// Relayed is an agent of another portal as the card says it that this portal
// gives of it: in the agent's own words, and with those that say whose it is
// and who stands in between. by is this portal's host. Others it leaves alone.
func Relayed(a hub.Agent, by string) hub.Agent {
	if a.Elsewhere() {
		a.Description += "\n\nThis is an agent of " + a.Portal + ". The address here is a relay of " + by +
			", which passes on what is said."
	}
	return a
}

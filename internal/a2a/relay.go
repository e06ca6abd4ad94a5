package a2a

import (
	"agentsite/internal/hub"
)

// DescribeRelay returns the form of an agent for the card that this portal serves. For an agent of
// another portal it adds a sentence to the description that names that portal and this relay; by is this
// portal's host. An agent of this portal is returned unchanged.
func DescribeRelay(a hub.Agent, by string) hub.Agent {
	if a.Elsewhere() {
		a.Description += "\n\nThis is an agent of " + a.Portal + ". The address here is a relay of " + by +
			", which forwards all messages."
	}
	return a
}

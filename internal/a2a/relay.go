package a2a

import (
	"agentsite/internal/hub"
)

// DescribeRelay returns an agent for the card that this portal serves of it. The description of an
// agent of another portal gets a sentence that names its portal and this relay; by is this portal's
// host. An agent of this portal stays unchanged.
func DescribeRelay(a hub.Agent, by string) hub.Agent {
	if a.Elsewhere() {
		a.Description += "\n\nThis is an agent of " + a.Portal + ". The address here is a relay of " + by +
			", which forwards all messages."
	}
	return a
}

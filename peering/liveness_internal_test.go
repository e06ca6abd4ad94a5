package peering

import (
	"testing"

	"agentsite/internal/hub"
)

func TestSeen_LeavesPrivateAgentsOut(t *testing.T) {
	t.Parallel()
	a := hub.Agent{ID: "01X", Visibility: hub.Private, Liveness: hub.Liveness{State: hub.Alive}}
	if _, ok := new(Node).seenLiveness(a); ok {
		t.Error("the liveness of a private agent is published")
	}
}

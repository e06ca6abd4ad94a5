package replica_test

import (
	"testing"

	"agentsite/internal/federation"
	"agentsite/internal/testing/federationtest"
	"agentsite/internal/testing/recordtest"
	"agentsite/internal/testing/storetest"
)

func TestReplica_DoesWhatAReplicaMust(t *testing.T) {
	t.Parallel()
	federationtest.Check(t, func(t *testing.T) federation.Replica {
		return storetest.Replica(t, t.TempDir(), recordtest.NewPortal("own").ID, recordtest.Network)
	})
}

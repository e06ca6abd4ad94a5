package profiles

import (
	"testing"

	"agentsite/internal/testing/plantest"
)

func TestPlans_UseProfilesIndexes(t *testing.T) {
	t.Parallel()
	plantest.Check(t, map[string]string{
		profileQuery + `a.id = ?`:   "PRIMARY KEY",
		profileQuery + `a.name = ?`: "accounts_",
		agentsQuery:                 "agents_owner",
		packagesQuery:               "packages_account",
	})
}

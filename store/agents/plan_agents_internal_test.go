package agents

import (
	"testing"

	"agentsite/internal/testing/plantest"
)

// The queries of every sweep, call and message are answered by an index.
func TestPlans_UseAgentsIndexes(t *testing.T) {
	t.Parallel()
	plantest.Check(t, map[string]string{
		dueQuery:                      "agents_check",
		callsQuery:                    "tasks_agent",
		`SELECT t.caller_id` + usedBy: "COVERING INDEX tasks_people",
		pruneIcons:                    "agent_versions_icon",
		reportQuery + `WHERE r.closed_at = 0 ORDER BY r.id LIMIT ?`: "reports_open",
	})
}

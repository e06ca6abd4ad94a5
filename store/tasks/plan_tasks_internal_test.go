package tasks

import (
	"testing"

	"agentsite/internal/testing/plantest"
)

// The queries of every sweep, call and message are answered by an index.
func TestPlans_UseTasksIndexes(t *testing.T) {
	t.Parallel()
	plantest.Check(t, map[string]string{
		waitingQuery: "tasks_waiting",
		`SELECT ` + taskColumns + ` FROM tasks WHERE conversation_id = ?` + ActiveStates + ` ORDER BY id LIMIT 1000`:     "tasks_active",
		`SELECT COUNT(*) FROM tasks WHERE conversation_id = ?` + ActiveStates + ` AND +agent_id = ? AND message_seq = ?`: "tasks_active",
	})
}

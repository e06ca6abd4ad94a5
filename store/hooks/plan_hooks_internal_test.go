package hooks

import (
	"testing"

	"agentsite/internal/testing/plantest"
)

// The queries of every sweep, call and message are answered by an index.
func TestPlans_UseHooksIndexes(t *testing.T) {
	t.Parallel()
	plantest.Check(t, map[string]string{
		dueHooksQuery:    "hooks_due",
		listenersQuery:   "hooks_owner",
		RoomEventsDelete: "hooks_task (task_id=?)",
		RoomPushesDelete: "hooks_task (task_id=?)",
		`SELECT COUNT(*) FROM notices WHERE account_id = ? AND read_at = 0`: "notices_unread",
	})
}

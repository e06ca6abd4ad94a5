package chats

import (
	"testing"

	"agentsite/internal/testing/plantest"
)

// The queries of every sweep, call and message are answered by an index.
func TestPlans_UseChatsIndexes(t *testing.T) {
	t.Parallel()
	plantest.Check(t, map[string]string{
		rootQuery:           "tasks_root",
		editsQuery:          "messages_edits",
		looseQuery:          "files_loose",
		fileQuery + mayRead: "SEARCH o USING PRIMARY KEY (owner_kind=? AND owner_id=? AND hash=?)",
		pendingQuery:        "SEARCH i USING INDEX room_invitations_of (person_id=?)",
		deleteTraces:        "PRIMARY KEY (agent_id=? AND task_id=?)",
	})
}

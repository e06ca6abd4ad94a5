package store

import (
	"strings"
	"testing"
)

// keptColumns are the columns with ids that stay when an account is erased, each with its reason. A new
// column with an id must be listed here or in erasedRows.
var keptColumns = map[string]string{
	"accounts.id":                 "the row keeps id and name, so that nobody else gets them",
	"agents.owner_id":             "the agents are deleted and their rows are emptied",
	"agent_versions.author_id":    "the versions of its own agents are emptied, others belong to their owners",
	"members.member_id":           "shows in the transcript of others that the person was a member",
	"messages.sender_id":          "the messages belong to the conversation of others",
	"messages.charged":            "the bytes of messages that stay",
	"tasks.caller_id":             "belong to the messages that stay",
	"reactions.member_id":         "belong to the messages that stay",
	"conversations.speaker_id":    "an agent",
	"conversations.spoke_id":      "an agent",
	"audit.actor_id":              "decisions of operators are never changed",
	"audit.subject":               "decisions about accounts are never changed",
	"names.ref":                   "the name stays taken",
	"reports.closed_by":           "a decision of an operator",
	"storage.id":                  "counts the bytes of messages that stay",
	"model_days.who":              "deleted with its prefix",
	"agents.id":                   "an agent",
	"conversations.id":            "a conversation",
	"accounts.name":               "the name stays taken",
	"elsewhere.network_id":        "an agent of another portal",
	"elsewhere.portal_id":         "another portal",
	"messages.task_id":            "a task",
	"hooks.task_id":               "a task",
	"release_remotes.release_id":  "a release of a deleted agent, which the registry shows as deleted",
	"agent_traces.task_id":        "a task",
	"file_uses.conversation_id":   "a conversation",
	"goose_db_version.version_id": "a migration",
	"hook_events.event_id":        "an event of a hook, which is deleted",
	"hook_attempts.event_id":      "an event of a hook, which is deleted",
	"push_browsers.session_id":    "a session of the same account, with which the row is deleted",
	"push_notices.notice_id":      "deleted with its browser",
	"push_notices.session_id":     "deleted with its browser",
	"kill_notices.portal_id":      "the id of a portal",
	"library_versions.task_id":    "a task",
	"memories.room_id":            "a conversation; the memory is deleted with its person",
	"goals.parent_id":             "a goal of the same account, which is deleted",
	"goal_events.goal_id":         "deleted with its goal",
}

// isOther reports whether a column that ends in _id refers to something that is no account by its name.
func isOther(column string) bool {
	switch column {
	case "agent_id", "conversation_id", "client_id", "hook_id":
		return true
	}
	return false
}

// Each column that can hold the id of an account is erased with it, or is listed with the reason why not.
func TestErase_EachColumnIsDecided(t *testing.T) {
	t.Parallel()
	db := openTest(t, t.TempDir())
	erased := make(map[string]bool)
	for _, r := range erasedRows() {
		erased[r.table+"."+r.column] = true
	}
	var columns []struct {
		Name string `db:"name"`
		Of   string `db:"of"`
	}
	if err := db.List(t.Context(), &columns, `SELECT m.name AS of, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'said_words%' AND m.name NOT LIKE 'sqlite%'`); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, c := range columns {
		name := c.Of + "." + c.Name
		seen[name] = true
		if !strings.HasSuffix(c.Name, "_id") && c.Name != "who" && !strings.HasSuffix(c.Name, "_by") || isOther(c.Name) {
			continue
		}
		if !erased[name] && keptColumns[name] == "" {
			t.Errorf("%s is neither erased with an account nor kept with a reason", name)
		}
	}
	for name := range keptColumns {
		erased[name] = false
	}
	for name := range erased {
		if !seen[name] {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
}

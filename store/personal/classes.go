// Package personal knows which data of the database is personal, reads all of one account for its person, and erases
// the traces of a person in the transcripts of others.
package personal

import "strings"

// Class is the kind of data that a column or file holds.
type Class string

// The classes. A new column or file must have one: a test compares the table with the schema.
const (
	Personal Class = "personal" // about a person or written by one; exported and erased
	Secret   Class = "secret"   // proves a person's identity or right; erased and never exported
	Portal   Class = "portal"   // about the portal, its agents as such and other portals
	Public   Class = "public"   // anybody may read it
	Link     Class = "link"     // an id without meaning of its own
)

// columns are the text and binary columns of each table by their class, as "class: column column; class: column".
var columns = map[string]string{
	"accepted_inviters": "link: person_id inviter_id",
	"account_domains":   "link: account_id; personal: domain",
	"accounts":          "link: id; personal: name email; secret: password_hash",
	"agent_days":        "link: agent_id",
	"agent_health":      "link: agent_id; portal: history",
	"agent_offers":      "link: agent_id account_id",
	"agent_owners":      "link: agent_id account_id",
	"agent_traces":      "link: agent_id task_id; personal: head body",
	"agent_versions":    "link: agent_id author_id; personal: title spec note icon; portal: visibility kind status",
	"agents": "link: id owner_id; personal: name title spec status_message live_reason proof_origin; " +
		"secret: secret; portal: kind visibility status live_state proof_method",
	"audit":            "link: actor_id; portal: actor_kind act subject why hash",
	"blocks":           "link: person_id blocked_id; personal: handle",
	"ceilings":         "link: owner_id agent_id",
	"chat_prefs":       "link: account_id; personal: notify zone",
	"client_ids":       "link: conversation_id sender_id; personal: client_id",
	"conversations":    "link: id speaker_id spoke_id branched_from; personal: title; portal: head_hash speaks past",
	"counters":         "portal: name",
	"credentials":      "link: id account_id parent; personal: label; secret: hash; portal: kind scopes",
	"daily_figures":    "portal: name",
	"database_move":    "portal: state move other",
	"disclosures":      "link: member_id agent_id; personal: host share; portal: member_kind",
	"elsewhere":        "link: agent_id network_id portal_id; public: name host title",
	"file_uses":        "link: hash conversation_id",
	"files":            "link: hash; personal: media_type",
	"first_asks":       "link: caller_id agent_id conversation_id; personal: client_id",
	"goose_db_version": "portal: tstamp",
	"grants": "link: id person_id agent_id conversation_id owner; personal: agent tool target; " +
		"portal: person_kind origin needs",
	"goal_events":   "link: goal_id; personal: event",
	"goals":         "link: id owner_id parent_id; personal: owner key goal reason; portal: state",
	"halts":         "link: subject; personal: name reason; portal: kind",
	"hook_attempts": "link: hook_id event_id; portal: type; personal: error",
	"hook_events":   "link: hook_id event_id; portal: type; personal: facts",
	"hooks": "link: id owner_id task_id; personal: name version label url host; secret: " +
		"secret; portal: kind owner_kind events scheme state reason",
	"hosting":         "portal: rules",
	"icons":           "link: hash; personal: data",
	"invitation_days": "link: inviter_id",
	"kill_notices":    "portal: portal_id hash host package reason",
	"kills":           "portal: hash reason",
	"library_files":   "link: person_id hash; personal: path media_type",
	"library_shares":  "link: id person_id; personal: path; secret: secret",
	"library_texts":   "link: person_id; personal: path text",
	"library_versions": "link: person_id hash agent_id conversation_id task_id; " +
		"personal: path media_type agent",
	"members":  "link: conversation_id member_id; personal: handle notify; portal: kind role",
	"memories": "link: id person_id agent_id room_id conversation_id; personal: text; portal: binding",
	"messages": "link: conversation_id id sender_id task_id charged; personal: sender_handle body reason; " +
		"secret: salt; portal: sender_kind kind task_state hash body_hash",
	"model_days":    "link: who; portal: day",
	"models":        "link: id owner_id; personal: name url model fallback; secret: secret; portal: provider",
	"module_bytes":  "link: hash; personal: data",
	"modules":       "link: account_id hash; personal: name; public: package portal",
	"moved_tables":  "portal: name sum",
	"names":         "link: ref; personal: name; portal: kind",
	"notices":       "link: id account_id; personal: subject text href; portal: kind",
	"outbox":        "link: ref; portal: topic",
	"own_cards":     "public: wire; portal: network",
	"push_browsers": "link: session_id account_id; personal: host; secret: secret",
	"push_notices":  "link: notice_id session_id",
	"packages": "link: id account_id module; personal: author name manifest readme note; " +
		"portal: version state",
	"peer_changes":    "portal: peer state reason",
	"peer_nonces":     "portal: nonce",
	"peer_policy":     "portal: policy",
	"peers":           "portal: key facts",
	"portal":          "public: public_key url",
	"profiles":        "link: account_id; personal: display_name picture picture_hash; portal: theme muted",
	"reactions":       "link: conversation_id member_id; personal: emoji handle; portal: member_kind",
	"release_remotes": "public: url",
	"releases":        "public: name version title description endpoint document; portal: status status_message",
	"reports": "link: id agent_id reporter_id closed_by; personal: reporter_handle text; " +
		"portal: reporter_kind reason outcome",
	"room_invitations": "link: conversation_id person_id inviter_id; personal: handle inviter_handle",
	"room_links": "link: id conversation_id creator_id; personal: creator_handle; secret: hash; " +
		"portal: kind role creator_kind",
	"said":      "link: conversation_id",
	"searches":  "link: id account_id; personal: title query",
	"servers":   "link: agent_id; public: name site",
	"settings":  "portal: name value previous",
	"storage":   "link: id; portal: kind place",
	"summaries": "link: conversation_id agent_id caller_id; personal: text; portal: scope",
	"tasks": "link: id conversation_id agent_id caller_id; personal: agent_handle caller_handle reason " +
		"artifacts checkpoint " +
		"long_checkpoint; portal: caller_kind state face share via budget caller_group",
	"uploads":    "link: owner_id hash; portal: owner_kind",
	"usage_days": "link: agent_id owner_id person_id; personal: model; portal: person_kind purpose",
}

// files are the files and folders of a data folder by their class.
var files = map[string]Class{
	"agentsite.db": Personal, "agentsite.db-wal": Personal, "agentsite.db-shm": Personal,
	"files": Personal, "backups": Personal, "logs": Portal, "programs": Portal, "pdf": Portal,
	"embeddings.cache": Personal, "embeddings.cache.new": Personal,
	"reserve":    Portal,
	"replica.db": Public, "replica.db-wal": Public, "replica.db-shm": Public,
}

// ClassOf returns the class of a column; "" if it has none.
func ClassOf(table, column string) Class {
	for part := range strings.SplitSeq(columns[table], ";") {
		class, names, _ := strings.Cut(part, ":")
		for name := range strings.FieldsSeq(names) {
			if name == column {
				return Class(strings.TrimSpace(class))
			}
		}
	}
	return ""
}

// FileClass returns the class of a file or folder in the data folder; "" if it has none. Keys, locks and sockets
// belong to the portal, and copies of the database made before an upgrade are personal.
func FileClass(name string) Class {
	if c, ok := files[name]; ok {
		return c
	}
	switch {
	case strings.HasPrefix(name, "agentsite.db."):
		return Personal
	case strings.HasPrefix(name, "replica.db."):
		return Public
	case strings.HasSuffix(name, ".key"), strings.HasSuffix(name, ".keys"), strings.HasSuffix(name, ".lock"),
		strings.HasSuffix(name, ".sock"),
		strings.HasSuffix(name, ".json"), strings.HasSuffix(name, ".cert"), name == "lock":
		return Portal
	}
	return ""
}

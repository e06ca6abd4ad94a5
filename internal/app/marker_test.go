package app_test

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // looked for, not used
	"crypto/sha1" //nolint:gosec // looked for, not used
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/ident"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/storetest"
	"agentsite/store/personal"
)

// unmarked are the personal columns that hold no text of a person's choice, each with the reason.
var unmarked = map[string]string{
	"agent_versions.icon":         "a hash of icons",
	"chat_prefs.notify":           "one of a list",
	"chat_prefs.zone":             "a time zone of the list",
	"disclosures.share":           "one of a list",
	"files.media_type":            "one of a list",
	"goals.reason":                "the machine's words",
	"grants.tool":                 "the portal's tools; those of MCP servers end with the agent",
	"hooks.name":                  "the name of an agent, for push notifications of A2A",
	"hooks.version":               "of A2A",
	"icons.data":                  "made anew from the pixels of a picture; public, by hash",
	"library_files.media_type":    "one of a list",
	"library_versions.media_type": "one of a list",
	"members.notify":              "one of a list",
	"notices.href":                "a page of the portal, deleted with the notice",
	"push_browsers.host":          "of the push service that the browser has",
	"profiles.picture":            "made anew from the pixels of a picture",
	"profiles.picture_hash":       "of such a picture",
	"reactions.emoji":             "an emoji",
	"tasks.reason":                "of agents of others, and the portal's words",
	"messages.reason":             "of agents of others, and the portal's words",
	"tasks.artifacts":             "of agents of others",
}

// hashesOf returns the hashes of a text without a salt, in the forms in which programs keep hashes.
func hashesOf(text string) (out [][]byte) {
	b := []byte(text)
	s1, s2, s5, m5 := sha1.Sum(b), sha256.Sum256(b), sha512.Sum512(b), md5.Sum(b)
	for _, sum := range [][]byte{s1[:], s2[:], s5[:], m5[:]} {
		out = append(out, sum, []byte(hex.EncodeToString(sum)), []byte(base64.StdEncoding.EncodeToString(sum)),
			[]byte(base64.RawURLEncoding.EncodeToString(sum)))
	}
	return out
}

// filesHolding returns the files below dir that contain one of the texts, each with the text's name. A file that
// another process deletes in between, such as a database server, holds nothing.
func filesHolding(t *testing.T, dir string, texts map[string][]byte) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		lower := bytes.ToLower(b)
		rel, _ := filepath.Rel(dir, path)
		for name, text := range texts {
			if bytes.Contains(b, text) || name == aMarker && bytes.Contains(lower, bytes.ToLower(text)) || strings.Contains(strings.ToLower(rel), strings.ToLower(string(text))) {
				found = append(found, rel+" "+name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// After an account was erased nothing that the person wrote is in the database, its log, the index or a file, and no
// hash from which a guess could be proved. If the messages are kept, they alone stay, without the name.
func TestErase_LeavesNoMarker(t *testing.T) {
	t.Parallel()
	for _, messages := range []string{"delete", "keep"} {
		t.Run(messages, func(t *testing.T) { t.Parallel(); checkErased(t, messages) })
	}
}

// kept are the columns that stay in the conversations of others: the texts of messages, with the words of the
// search, their files, which are in the database on PostgreSQL, and the titles that the person gave.
var kept = []string{"messages.body", "said_words_content.c0", "said_words_data.block", "said_words.words",
	"blob_parts.bytes", "conversations.title"}

func checkErased(t *testing.T, messages string) {
	p := apptest.Start(t)
	far := agenttest.NewOpenAIServer(t)
	name := newMarker()
	ada, bob := p.User(t, name), p.User(t, "bob")
	bob.Meets(ada)
	talk := bob.Conversation("calc", name)
	markers := append(fillAccount(t, ada, talk, far), name)
	markers = append(markers, fillOthers(t, p, ada, bob, talk, far)...)

	markers = append(markers, fillRows(t, p.Dir, name)...)
	held := storetest.TablesHolding(t, p.Dir, markerPrefix)
	for _, column := range personalColumns(t, p.Dir) {
		switch why, known := unmarked[column]; {
		case slices.Contains(held, column) && known:
			t.Errorf("%s has a marker: it does not need the reason %q", column, why)
		case !slices.Contains(held, column) && !known:
			t.Errorf("no marker was written into the personal column %s", column)
		}
	}
	values := storedValues(t, p.Dir, held, messages)
	ada.Must(http.MethodDelete, "/api/v1/me", map[string]any{"confirm": name, "messages": messages}, http.StatusNoContent)

	searched, allowed := markerPrefix, []string(nil)
	if messages == "keep" {
		allowed = kept
		if got := storetest.TablesHolding(t, p.Dir, name); len(got) > 0 {
			t.Errorf("the name is left in the columns %v", got)
		}
	}
	got := storetest.TablesHolding(t, p.Dir, searched)
	if got = slices.DeleteFunc(got, func(c string) bool { return slices.Contains(allowed, c) }); len(got) > 0 {
		t.Errorf("markers are left in the columns %v", got)
	}
	if messages == "keep" {
		searched = name
	}
	texts := map[string][]byte{aMarker: []byte(searched)}
	for _, v := range values {
		for _, h := range hashesOf(v) {
			texts[fmt.Sprintf("a hash of %.60q, %x", v, h)] = h
		}
	}
	for _, m := range markers {
		for _, h := range hashesOf(m) {
			texts["a hash of "+m+", "+hex.EncodeToString(h)] = h
		}
	}
	if got := filesHolding(t, p.Dir, texts); len(got) > 0 {
		t.Errorf("left in files: %v", got)
	}
	if storetest.OnPostgres() {
		if got := filesHolding(t, rewriteTables(t, p.Dir), texts); len(got) > 0 {
			t.Errorf("left in files of the server: %v", got)
		}
	}
	if r, err := p.Control().Verify(t.Context()); err != nil || len(r.Faults) > 0 {
		t.Error(r.Faults, err)
	}
}

// aMarker is the name of the text that all markers begin with.
const aMarker = "a marker"

// storedValues returns the whole values with a marker of columns, and the whole files, as they are stored: a hash of one
// would prove a guess too. If messages are kept, so are those that stand in the kept columns, and the files.
func storedValues(t *testing.T, dir string, columns []string, messages string) (out []string) {
	t.Helper()
	db := storetest.Connect(t, dir)
	for _, name := range columns {
		table, column, _ := strings.Cut(name, ".")
		if strings.HasPrefix(table, "said_words") || messages == "keep" && slices.Contains(kept, name) ||
			messages == "keep" && (table == "blob_parts" || table == "files") {
			continue
		}
		text := "CAST(" + column + " AS TEXT)"
		if storetest.OnPostgres() && (table == "blob_parts" || table == "module_bytes") {
			text = "encode(" + column + ", 'escape')"
		}
		rows, err := db.QueryContext(t.Context(), "SELECT "+text+" FROM "+table+" WHERE "+text+" LIKE '%"+markerPrefix+"%'")
		if err != nil {
			t.Fatal(name, err)
		}
		for rows.Next() {
			var v string
			if err := rows.Scan(&v); err != nil {
				t.Fatal(name, err)
			}
			out = append(out, v)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if messages == "delete" {
		err := filepath.WalkDir(filepath.Join(dir, "files"), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(markerPrefix)) {
				out = append(out, string(b))
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) < 40 {
		t.Errorf("only %d stored values have a marker", len(out))
	}
	return out
}

// Each file of a portal's data folder has a class.
func TestFiles_HaveAClass(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.User(t, "ada")
	list, err := os.ReadDir(p.Dir)
	if err != nil || len(list) < 4 {
		t.Fatal(list, err)
	}
	for _, f := range list {
		if personal.FileClass(f.Name()) == "" {
			t.Errorf("the file %s has no class", f.Name())
		}
	}
}

// rewriteTables has the PostgreSQL server write the tables anew without deleted rows, and returns the folder with the
// files of the database. Its log is left to the server; the manual describes it.
func rewriteTables(t *testing.T, dir string) string {
	t.Helper()
	db := storetest.Connect(t, dir)
	for _, q := range []string{"VACUUM FULL", "CHECKPOINT"} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	var folder string
	if err := db.QueryRowContext(t.Context(), `SELECT current_setting('data_directory') || '/base/' || oid
		FROM pg_database WHERE datname = current_database()`).Scan(&folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// personalColumns returns the columns of the database that hold text of people, as "table.column".
func personalColumns(t *testing.T, dir string) (out []string) {
	t.Helper()
	query := `SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
		WHERE m.type = 'table' ORDER BY 1, 2`
	if storetest.OnPostgres() {
		query = `SELECT table_name, column_name FROM information_schema.columns
			WHERE table_schema = current_schema() ORDER BY 1, 2`
	}
	rows, err := storetest.Connect(t, dir).QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		if personal.ClassOf(table, column) == personal.Personal {
			out = append(out, table+"."+column)
		}
	}
	return out
}

// fillOthers has a person write markers into what others see: invitations, mentions, reactions, agents that they talk
// to, reports, offers and goals.
func fillOthers(t *testing.T, p *apptest.Portal, ada, bob *apptest.Client, talk string, far *agenttest.OpenAIServer) []string {
	t.Helper()
	var markers []string
	m := func() string {
		markers = append(markers, newMarker())
		return markers[len(markers)-1]
	}
	carl, dave, root := p.User(t, "carl"), p.User(t, "dave"), p.Operator(t, "keeper")
	api := func(c *apptest.Client, method, path string, body any) {
		t.Helper()
		if a := c.Do(method, "/api/v1"+path, body); a.Status < 200 || a.Status > 299 {
			t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
		}
	}
	// People.
	said := bob.Say(talk, "hello")
	api(ada, http.MethodPut, fmt.Sprintf("/conversations/%s/messages/%d/reactions/👍", talk, said.Seq), nil)
	ada.Say(talk, "hello @bob "+m())
	api(ada, http.MethodPut, "/blocks/dave", nil)
	api(dave, http.MethodPut, "/blocks/"+ada.Name, nil)
	room := ada.Conversation("carl")
	api(ada, http.MethodPatch, "/conversations/"+room, map[string]any{"title": m()})
	carl.Conversation(ada.Name)
	api(ada, http.MethodPost, "/conversations/"+room+"/links", map[string]any{"kind": "join", "life": "24h"})
	edited := ada.Say(talk, "first "+m())
	api(ada, http.MethodPatch, fmt.Sprintf("/conversations/%s/messages/%d", talk, edited.Seq), map[string]any{"text": "then " + m()})
	// Agents.
	agent := m()
	api(ada, http.MethodPost, "/agents", map[string]any{"name": agent, "description": "Does " + m(), "kind": "openai",
		"endpoint": far.Base(agenttest.Echo), "visibility": "public", "config": map[string]string{"model": m()}})
	api(ada, http.MethodPatch, "/agents/"+agent, map[string]any{"description": "Does " + m(), "note": m()})
	own := ada.Conversation(agent)
	stream := ada.Events(own)
	stream.Answered(ada.Say(own, "hello "+m()).Tasks[0].ID)
	stream.Close()
	api(ada, http.MethodPost, "/agents/"+agent+"/offer", map[string]any{"to": "bob"})
	api(ada, http.MethodPost, "/agents/"+agent+"/pause", map[string]any{"reason": m()})
	api(bob, http.MethodPost, "/agents/"+agent+"/report", map[string]any{"reason": "other", "text": "by bob"})
	api(root, http.MethodPost, "/owners/"+ada.Name+"/stop", map[string]any{"reason": "seen"})
	api(root, http.MethodPost, "/owners/"+ada.Name+"/resume", nil)
	api(ada, http.MethodPut, "/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "ask", "scope": "public", "decision": "deny"})
	api(ada, http.MethodPost, "/webhooks", map[string]any{"url": "https://" + m() + ".example/", "events": []string{"task.ended"}})
	model := m()
	api(ada, http.MethodPost, "/models", map[string]any{"name": model, "url": "https://llm.example/", "model": m()})
	api(ada, http.MethodPost, "/models", map[string]any{"name": m(), "url": "https://llm.example/", "model": m(), "fallback": model})
	api(ada, http.MethodPost, "/goals", map[string]any{"goal": "Add 1 and 2 for " + m(), "idempotency_key": m()})
	return markers
}

// fillRows writes markers into the rows of a person that are written when a mail server, a model or an agent elsewhere
// answers.
func fillRows(t *testing.T, dir, name string) (markers []string) {
	t.Helper()
	db := storetest.Connect(t, dir)
	const person, agent = `(SELECT id FROM accounts WHERE name = ?2)`, `(SELECT min(id) FROM agents WHERE owner_id = (SELECT id FROM accounts WHERE name = ?2))`
	for _, q := range []string{
		`UPDATE accounts SET email = ?1 WHERE name = ?2`,
		`INSERT INTO module_bytes (hash, data) SELECT id || id || substr(id, 1, 12), CAST(?1 AS BLOB) FROM accounts WHERE name = ?2`,
		`INSERT INTO packages (id, account_id, author, name, version, manifest, readme, module, size, state, note, downloads,
			created_at, updated_at) SELECT id, id, ?1, ?1, '1.0.0', '{"name":"' || ?1 || '"}', ?1,
			id || id || substr(id, 1, 12), 1, 'published', ?1, 0, 1, 1 FROM accounts WHERE name = ?2`,
		`INSERT INTO modules (account_id, hash, name, size, created_at) SELECT id, id || id || substr(id, 1, 12), ?1, 1, 1 FROM accounts WHERE name = ?2`,
		`INSERT INTO memories (id, person_id, agent_id, room_id, conversation_id, seq, text, distilled, binding, created_at, used_at)
			SELECT 'm', ` + person + `, ` + agent + `, '', 'x', 1, ?1, 0, '', 1, 1`,
		`INSERT INTO library_files (person_id, path, version, size, media_type, updated_at) SELECT ` + person + `, ?1, 1, 1, 'text/plain', 1`,
		`INSERT INTO library_versions (person_id, path, version, size, media_type, restores, agent_id, agent, conversation_id,
			task_id, created_at) SELECT ` + person + `, ?1, 1, 1, 'text/plain', 0, ` + agent + `, ?1, '', '', 1`,
		`INSERT INTO library_versions (person_id, path, version, size, media_type, restores, agent_id, agent, conversation_id,
			task_id, created_at) SELECT id, 'x', 1, 1, 'text/plain', 0, ` + agent + `, ?1, '', '', 1 FROM accounts WHERE name = 'bob' AND ?2 <> ''`,
		`INSERT INTO library_texts (person_id, path, text) SELECT ` + person + `, ?1, ?1`,
		`INSERT INTO library_shares (id, person_id, path, version, secret, created_at, expires_at) SELECT 'l', ` + person + `, ?1, 1, 'x', 1, 1`,
		`INSERT INTO account_domains (account_id, domain, proved_at, checked_at) SELECT id, ?1, 1, 1 FROM accounts WHERE name = ?2`,
		`INSERT INTO profiles (account_id, display_name, updated_at) SELECT id, ?1, 1 FROM accounts WHERE name = ?2`,
		`UPDATE agents SET proof_origin = ?1 WHERE owner_id = ` + person,
		`UPDATE agents SET status_message = ?1 WHERE owner_id = ` + person,
		`INSERT INTO agent_traces (agent_id, task_id, n, at, sent, head, body, size) SELECT ` + agent + `, 'x', 1, 1, 1, ?1, ?1, 1`,
		`INSERT INTO agent_traces (agent_id, task_id, n, at, sent, head, body, size)
			SELECT agent_id, id, 1000, 1, 1, ?1, ?1, 1 FROM tasks WHERE caller_id = ` + person,
		`INSERT INTO disclosures (member_kind, member_id, agent_id, host, share, told_at) SELECT 'person', ` + person + `, ` + agent + `, ?1, 'all', 1`,
		`INSERT INTO first_asks (caller_id, agent_id, client_id, conversation_id) SELECT ` + person + `, ` + agent + `, ?1, 'x'`,
		`INSERT INTO hook_attempts (hook_id, event_id, type, at, status, took, error)
			SELECT id, 'e', 'task.ended', 1, 0, 0, ?1 FROM hooks WHERE owner_id = ` + person,
		`INSERT INTO hook_events (hook_id, event_id, type, facts, created_at)
			SELECT id, 'e', 'task.ended', '{"agent":"' || ?1 || '"}', 9999999999999 FROM hooks WHERE owner_id = ` + person,
		`INSERT INTO summaries (conversation_id, agent_id, caller_id, scope, up_to, text, created_at) SELECT 'x', ` + agent + `, ` + person + `, '', 1, ?1, 1`,
		`UPDATE tasks SET checkpoint = ?1, long_checkpoint = ?1 WHERE caller_id = ` + person,
		`INSERT INTO usage_days (day, agent_id, owner_id, person_kind, person_id, model, portal, purpose, calls, estimated, input, output, cost)
			SELECT 1, '', '', 'person', ` + person + `, ?1, 1, 'work', 1, 0, 1, 1, 1`,
	} {
		m := newMarker()
		if storetest.OnPostgres() {
			q = strings.NewReplacer("CAST(?1 AS BLOB)", "convert_to($1, 'UTF8')", "?1", "$1::text", "?2", "$2").Replace(q)
		}
		res, err := db.ExecContext(t.Context(), q, m, name)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			t.Fatalf("%s: changed %d rows: %v", q, n, err)
		}
		markers = append(markers, m)
	}
	return markers
}

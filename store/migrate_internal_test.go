package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"

	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/transcript"
	"agentsite/migrations"
	"agentsite/store/agents"
	"agentsite/store/sqlite"
	"agentsite/store/transcripts"
)

// olderDatabase makes in dir a portal's database as the binary of schema 1
// left it: of ada's agents "edited" has three versions, "withdrawn" is
// withdrawn and "gone" was deleted; in a conversation with "edited" a person
// and a guest were answered, one waits.
func olderDatabase(t *testing.T, dir string) {
	t.Helper()
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	first, err := fs.ReadFile(migrations.SQLite(), "0001_create_schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, sqlite.FileName)
	pool, err := sqlite.Connect(path, sqlite.WriteDSN(path), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	p, err := goose.NewProvider(goose.DialectSQLite3, pool.DB, fstest.MapFS{"0001_create_schema.sql": {Data: first}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := pool.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec(fmt.Sprintf("PRAGMA application_id = %d", sqlite.ApplicationID))
	exec(`INSERT INTO names VALUES ('ada', 'account', 'p1', 1)`)
	exec(`INSERT INTO accounts (id, name, password_hash, created_at) VALUES ('p1', 'ada', 'x', 1)`)
	for _, a := range []struct {
		id, name, kind, status     string
		version, liveAt, deletedAt int
	}{{"g1", "edited", "a2a", "active", 3, 2000, 0}, {"g2", "withdrawn", "openai", "withdrawn", 1, 500, 0}, {"g3", "gone", "a2a", "active", 1, 0, 7}, {"g4", "quick", "openai", "active", 1, 1000, 0}} {
		spec := `{"description":"An agent.","endpoint":"https://agent.example/` + a.name + `"}`
		exec(`INSERT INTO names VALUES (?, 'agent', ?, 1)`, a.name, a.id)
		exec(`INSERT INTO agents (id, name, kind, owner_id, version, title, visibility, spec, status, live_state, live_at, created_at, updated_at, deleted_at)
			VALUES (?, ?, ?, 'p1', ?, 'Title', 'public', ?, ?, 'alive', ?, 1, 1, ?)`, a.id, a.name, a.kind, a.version, spec, a.status, a.liveAt, a.deletedAt)
		for v := range a.version {
			exec(`INSERT INTO agent_versions (agent_id, version, title, visibility, spec, author_id, created_at) VALUES (?, ?, 'Title', 'public', ?, 'p1', 1)`, a.id, v+1, spec)
		}
	}
	exec(`INSERT INTO conversations (id, title, created_at, updated_at) VALUES ('c1', 'Old', 1, 1)`)
	exec(`INSERT INTO members (conversation_id, kind, member_id, handle, joined_at) VALUES ('c1', 'person', 'p1', 'ada', 1)`)
	var hash []byte
	seq := int64(0)
	say := func(taskID, state string) {
		seq++
		r := transcripts.Row{Seq: seq, ID: fmt.Sprint("m", seq), SenderKind: "person", SenderID: "p1", SenderHandle: "ada", Kind: "text", Body: `[{"text":"said before"}]`, TaskID: taskID, TaskState: state, CreatedAt: 5}
		hash = transcript.Chain(hash, r.Entry())
		exec(`INSERT INTO messages (conversation_id, seq, id, sender_kind, sender_id, sender_handle, kind, body, task_id, task_state, reason, created_at, hash) VALUES ('c1', ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?)`, r.Seq, r.ID, r.SenderKind, r.SenderID, r.SenderHandle, r.Kind, r.Body, taskID, state, r.CreatedAt, hash)
	}
	const day = agents.DayMilli
	for i, k := range []struct {
		caller, state    string
		created, updated int
	}{{"person", "completed", day, day + 70}, {"guest", "completed", day + 1, day + 31}, {"person", "rejected", day + 2, day + 1}, {"person", "canceled", 2 * day, 2*day + 5}, {"guest", "submitted", 2 * day, 2 * day}} {
		id := fmt.Sprint("t", i)
		say("", "")
		asked, answer := seq, int64(0)
		if task.State(k.state).Terminal() {
			say(id, k.state)
			answer = seq
		} else {
			exec(`INSERT INTO outbox (topic, ref, created_at) VALUES ('task', ?, 1)`, id)
		}
		exec(`INSERT INTO tasks (id, conversation_id, agent_id, agent_handle, caller_kind, caller_id, caller_handle, message_seq, answer_seq, state, created_at, updated_at)
			VALUES (?, 'c1', 'g1', 'edited', ?, 'p1', 'ada', ?, ?, ?, ?, ?)`, id, k.caller, asked, answer, k.state, k.created, k.updated)
	}
	exec(`UPDATE conversations SET last_seq = ?, head_hash = ? WHERE id = 'c1'`, seq, hash)
}

// What the release before has written, too: its transcripts verify and go on,
// with rooms as they were.
func TestMigrate_FromTheLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	olderDatabase(t, dir)
	path := filepath.Join(dir, sqlite.FileName)
	pool, err := sqlite.Connect(path, sqlite.WriteDSN(path), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	old := fstest.MapFS{}
	for _, name := range []string{"0001_create_schema.sql", "0002_extend_agents.sql"} {
		b, err := fs.ReadFile(migrations.SQLite(), name)
		if err != nil {
			t.Fatal(err)
		}
		old[name] = &fstest.MapFile{Data: b}
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, pool.DB, old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Many messages, as a portal has.
	const n = 20_000
	if _, err := pool.ExecContext(t.Context(), `INSERT INTO conversations (id, title, created_at, updated_at) VALUES ('c9', 'Large', 1, 1)`); err != nil {
		t.Fatal(err)
	}
	tx := pool.MustBegin()
	var hash []byte
	for i := range n {
		r := transcripts.Row{Seq: int64(i + 1), ID: fmt.Sprint("n", i), SenderKind: "person", SenderID: "p1", SenderHandle: "ada", Kind: "text", Body: `[{"text":"one of many"}]`, CreatedAt: 5}
		hash = transcript.Chain(hash, r.Entry())
		if _, err := tx.Exec(`INSERT INTO messages (conversation_id, seq, id, sender_kind, sender_id, sender_handle, kind, body, task_id, task_state, reason, created_at, hash) VALUES ('c9', ?, ?, ?, ?, ?, ?, ?, '', '', '', ?, ?)`, r.Seq, r.ID, r.SenderKind, r.SenderID, r.SenderHandle, r.Kind, r.Body, r.CreatedAt, hash); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.Exec(`UPDATE conversations SET last_seq = ?, head_hash = ? WHERE id = 'c9'`, n, hash); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.Commit(), pool.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(t.Context(), dir); err != nil || !r.OK() || r.Messages != 9+n {
		t.Fatalf("before: %+v %v", r, err)
	}
	d := openTest(t, dir)
	ctx := t.Context()
	c, err := d.Room(ctx, "c1", "person", "p1")
	if err != nil || c.Settings != chat.DefaultSettings || c.Mine != (chat.Mine{Role: chat.RoleMember}) || c.LastSeq != 9 {
		t.Errorf("%+v %v", c, err)
	}
	k, err := d.TaskByID(ctx, "t4")
	if err != nil || k.RootSeq != 0 || k.Hop != 0 || k.Replaces != 0 {
		t.Errorf("%+v %v", k, err)
	}
	sender := chat.Sender{Kind: "person", ID: "p1", Handle: "ada"}
	if _, err := d.Amend(ctx, chat.Message{ConversationID: "c1", ID: "m98", Sender: sender, Kind: chat.Edit, Target: 1, Parts: []task.Part{task.TextPart("said otherwise")}}, true); err != nil {
		t.Fatal(err)
	}
	if found, _, err := d.SearchMessages(ctx, "person", "p1", "otherwise", chat.Point{}, 10); err != nil || len(found) != 1 || found[0].Message.Seq != 1 {
		t.Errorf("%+v %v", found, err)
	}
	// An agent that answers an old question may call another, within bounds.
	call := task.Task{ID: "t9", ConversationID: "c1", AgentID: "g4", CallerKind: "person", CallerID: "p1"}
	k.State = task.Completed
	done, err := d.Finish(ctx, chat.Ended{Task: k, Ask: []task.Task{call}, Turns: 8, Budget: 1000, Message: chat.Message{ConversationID: "c1", ID: "m99", Sender: chat.Sender{Kind: "agent", ID: "g1"}, Kind: chat.Text,
		Parts: []task.Part{task.TextPart("@quick?")}, TaskID: "t4", TaskState: task.Completed}})
	if err != nil || len(done.Tasks) != 1 || done.Tasks[0].RootSeq != 9 || done.Tasks[0].Hop != 1 {
		t.Errorf("%+v %v", done, err)
	}
	if r, err := d.Verify(ctx); err != nil || !r.OK() || r.Messages != 11+n {
		t.Errorf("%+v %v", r, err)
	}
}

// What a release has written, the next one brings along.
func TestMigrate_FromOlder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	olderDatabase(t, dir)
	// Before its upgrade it can be verified, as an old backup is.
	r, err := Verify(t.Context(), dir)
	if err != nil || !r.OK() || r.Agents != 3 || r.Tasks != 5 || r.Messages != 9 {
		t.Fatalf("%+v %v", r, err)
	}
	d := openTest(t, dir)
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() || r.Agents != 3 || r.Tasks != 5 || r.Messages != 9 {
		t.Fatalf("%+v %v", r, err)
	}
	if have, err := sqlite.PortalSchema(t.Context(), sqlite.SchemaCopy(filepath.Join(dir, sqlite.FileName), 1)); err != nil || have != 1 {
		t.Errorf("the copy made before has schema %d, %v", have, err)
	}
	migrated(t, d)
	// And goes on from there.
	a, err := d.AgentByName(t.Context(), "edited")
	if err != nil {
		t.Fatal(err)
	}
	a.Version, a.Title = 4, "New"
	if err := d.UpdateAgent(t.Context(), a, 3, nil, ident.Actor{ID: "p1"}); err != nil {
		t.Fatal(err)
	}
	end := chat.Message{ConversationID: "c1", ID: "m99", Sender: chat.Sender{Kind: "agent", ID: "g1"}, Kind: chat.Text, TaskID: "t4", TaskState: task.Failed}
	if _, err := d.Finish(t.Context(), chat.Ended{Task: task.Task{ID: "t4", State: task.Failed, UpdatedAt: time.UnixMilli(2*24*60*60*1000 + 9)}, Message: end}); err != nil {
		t.Fatal(err)
	}
	if days, err := d.Days(t.Context(), "g1", time.UnixMilli(2*24*60*60*1000)); err != nil || len(days) != 1 || days[0].Failed != 1 || days[0].Took != 14*time.Millisecond {
		t.Errorf("%+v %v", days, err)
	}
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
}

func migrated(t *testing.T, d *testDB) {
	t.Helper()
	ctx := t.Context()
	list, err := d.Versions(ctx, "g1", 0, 100)
	if err != nil || len(list) != 3 || list[0].Kind != hub.A2A || list[2].Kind != hub.A2A || list[0].Author != "ada" || list[0].Status.State != hub.Active {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := d.Versions(ctx, "g2", 0, 100); err != nil || len(list) != 1 || list[0].Status.State != hub.Withdrawn || list[0].Kind != hub.OpenAI {
		t.Errorf("%+v %v", list, err)
	}
	days, err := d.Days(ctx, "g1", time.Time{})
	if want := []hub.Day{
		{Day: time.UnixMilli(agents.DayMilli).UTC(), Calls: 3, Completed: 2, Failed: 1, Guests: 1, Took: 100 * time.Millisecond},
		{Day: time.UnixMilli(2 * agents.DayMilli).UTC(), Calls: 2, Canceled: 1, Guests: 1, Took: 5 * time.Millisecond},
	}; err != nil || !slices.Equal(days, want) {
		t.Errorf("%+v\nwant\n%+v %v", days, want, err)
	}
	due, err := d.Due(ctx, time.UnixMilli(5000), 10)
	if err != nil || len(due) != 2 || due[0].Agent.Name != "quick" || due[1].Agent.Name != "edited" || due[1].Agent.Proof.State != hub.Unproven {
		t.Errorf("%+v %v", due, err)
	}
}

// A backup made before an upgrade is restored after it.
func TestRestore_OlderBackup(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "restored")
	olderDatabase(t, dir)
	var m Manifest
	m.Format, m.Schema, m.App = 1, 1, "older"
	r, err := Verify(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Rows = r.rowCounts()
	delete(m.Rows, "files")
	for _, f := range memberNames(func(name string) bool { return name == ident.PortalKeyFile }) {
		st, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		sum, err := copyFile(t.Context(), &b, filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		m.Members = append(m.Members, Member{Name: f.Name, Size: st.Size(), SHA256: sum})
	}
	var b bytes.Buffer
	if err := pack(t.Context(), &b, m, dir, blobsIn(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), &b, to, ""); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), to, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	migrated(t, joinStores(d))
}

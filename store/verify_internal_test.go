package store

import (
	"agentsite/internal/testing/filetest"
	"agentsite/internal/testing/recordtest"
	"agentsite/store/agents"
	"agentsite/store/engine"
	"agentsite/store/replica"
	"agentsite/store/rows"
	"agentsite/store/sqlite"
	"agentsite/store/tasks"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/registry"
	"agentsite/internal/task"
	"agentsite/internal/testing/racetest"
)

// seed stores, with ids that a test can name, a conversation "c1" in which a
// task "t1" has ended, "t2" works and "t3" waits, and an empty one "c2".
func seed(t *testing.T, d *testDB) {
	t.Helper()
	ctx, now := context.Background(), clock.Now()
	agent := hub.Agent{ID: "g1", Name: "helper", Kind: hub.Builtin, Title: "Helper", Visibility: hub.Public, Version: 1, Status: hub.Status{State: hub.Active}, CreatedAt: now, UpdatedAt: now}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(d.CreateAgent(ctx, agent, nil))
	must(d.CreateConversation(ctx, chat.Conversation{ID: "c1", Title: "The first", CreatedAt: now}, nil, nil))
	must(d.CreateConversation(ctx, chat.Conversation{ID: "c2", CreatedAt: now}, nil, nil))
	for i := range 3 {
		id := fmt.Sprint("t", i+1)
		m := chat.Message{ConversationID: "c1", ID: fmt.Sprint("m", i), ClientID: fmt.Sprint(i), Sender: chat.Sender{Kind: "person", ID: "p1", Handle: "ada"}, Kind: chat.Text, Parts: []task.Part{task.TextPart("question " + id)}, CreatedAt: now}
		_, err := d.Append(ctx, chat.Post{Message: m, Ask: []task.Task{{ID: id, ConversationID: "c1", AgentID: "g1", CallerID: "p" + id, State: task.Submitted, CreatedAt: now, UpdatedAt: now}}})
		must(err)
	}
	fence, err := d.NextFence(ctx)
	must(err)
	for _, id := range []string{"t1", "t2"} {
		_, err := d.Begin(ctx, id, fence)
		must(err)
	}
	end := func(id string, s task.State) {
		_, err := d.Finish(ctx, chat.Ended{Task: task.Task{ID: id, State: s, UpdatedAt: now}, Message: chat.Message{ConversationID: "c1", ID: "a" + id, ClientID: id, Sender: chat.Sender{Kind: "agent", ID: "g1"}, Kind: chat.Text, Parts: []task.Part{task.TextPart("answer")}, TaskID: id, TaskState: s, CreatedAt: now}})
		must(err)
	}
	end("t1", task.Completed)
	end("t3", task.InputRequired)
	agent.Version, agent.Icon = 2, agents.IconHash([]byte("picture"))
	must(d.UpdateAgent(ctx, agent, 1, nil, ident.Actor{}))
	for _, id := range []string{"p1", "p2"} {
		must(d.CreateAccount(ctx, account.Account{ID: id, Name: "name-of-" + id, CreatedAt: now}, ""))
	}
	must(d.SetLiveness(ctx, "g1", hub.Liveness{State: hub.Alive, CheckedAt: now}, now, 0))
	must(d.AddCoOwner(ctx, "g1", "p1"))
	must(d.SetOffer(ctx, "g1", "p2"))
	must(d.SetDomain(ctx, "p1", "p.example", true))
	must(d.PutIcon(ctx, agent.Icon, []byte("picture")))
	must(d.AddTraces(ctx, "g1", "t1", []hub.Trace{{At: now, Head: "POST /"}}))
	must(d.AddReport(ctx, hub.Report{ID: "r1", AgentID: "g1", Reason: "spam", CreatedAt: now}))
	must(d.AddNotice(ctx, hub.Notice{ID: "n1", AccountID: "p1", CreatedAt: now}))
	must(d.SaveSearch(ctx, hub.Saved{ID: "s1", AccountID: "p1", CreatedAt: now, SeenAt: now}))
	must(d.Add(ctx, "2026-01-01", "p1", 7))
	for range 3 {
		must(d.DecidePeers(ctx, federation.Decided{By: ident.Actor{Kind: ident.System}, Act: "peer.deny", Subject: "p1x", Why: "spam"}))
	}
	must(d.SaveRelease(ctx, registry.Change{Server: registry.Server{Name: "example.p/tool", Site: "domain:p.example"}, At: now, Latest: "1.0.0",
		Add: &registry.Release{Version: "1.0.0", Status: registry.ReleaseActive, PublishedAt: now, Document: []byte("{}"), Remotes: []string{"https://p.example/mcp"}}}))
}

// Each of these is something that must never be; a verification tells of it
// in a sentence.
func TestVerify_Finds(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	d := openTest(t, whole)
	seed(t, d)
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() || r.Messages != 5 || r.Tasks != 3 || r.Conversations != 2 {
		t.Fatalf("before: %+v %v", r, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ sql, says string }{
		{`UPDATE messages SET body = '[{"text":"I never said that"}]' WHERE seq = 2`, `Conversation c1 ("The first"): message 2 is not what was said there`},
		{`UPDATE messages SET sender_id = 'p2' WHERE seq = 2`, `message 2 is not what was said`},
		{`UPDATE messages SET created_at = created_at + 1 WHERE seq = 2`, `message 2 is not what was said`},
		{`UPDATE messages SET task_id = 't2' WHERE seq = 4`, `message 4 is not what was said`},
		{`UPDATE messages SET hash = zeroblob(32) WHERE seq = 5`, `message 5 is not what was said`},
		{`DELETE FROM messages WHERE seq = 2`, `message 3 follows message 1`},
		{`DELETE FROM messages WHERE seq = 1`, `message 2 follows message 0`},
		{`DELETE FROM messages WHERE seq = 5`, `it should end with message 5 but ends with 4`},
		{`DELETE FROM messages`, `it should end with message 5 but ends with 0`},
		{`UPDATE conversations SET head_hash = zeroblob(32) WHERE id = 'c1'`, `the hash at its head differs`},
		{`UPDATE conversations SET last_seq = 6 WHERE id = 'c1'`, `it should end with message 6 but ends with 5`},
		{`UPDATE conversations SET last_seq = 1 WHERE id = 'c2'`, `Conversation c2: it should end with message 1`},
		{`UPDATE messages SET conversation_id = 'c0' WHERE seq = 1`, `a conversation c0 that does not exist`},
		{`UPDATE messages SET conversation_id = 'c3' WHERE seq = 5`, `a conversation c3 that does not exist`},
		{`UPDATE messages SET conversation_id = 'c3' WHERE seq = 5`, `A row of table messages refers to a row of conversations that is gone`},
		{`DELETE FROM tasks WHERE id = 't1'`, `message 4 ends a task t1 that does not exist`},
		{`UPDATE tasks SET conversation_id = 'c2' WHERE id = 't1'`, `message 4 ends task t1 of another conversation`},
		{`UPDATE tasks SET state = 'failed' WHERE id = 't1'`, `message 4 says that task t1 ended as completed, but the task says failed`},
		{`UPDATE tasks SET answer_seq = 3 WHERE id = 't1'`, `task t1 names message 3 as its answer`},
		{`UPDATE tasks SET answer_seq = 0 WHERE id = 't1'`, `task t1 ended as completed without a message`},
		{`UPDATE tasks SET answer_seq = 9 WHERE id = 't1'`, `task t1 names message 9 as its answer`},
		{`UPDATE tasks SET state = 'canceled' WHERE id = 't3'`, `task t3 ended as canceled, but its answer, message 5, says input_required`},
		{`UPDATE tasks SET state = 'dreaming' WHERE id = 't2'`, `task t2 has a state "dreaming"`},
		{`UPDATE tasks SET message_seq = 6 WHERE id = 't2'`, `asked for by message 6, which does not exist`},
		{`INSERT INTO outbox (topic, ref, created_at) VALUES ('task', 't1', 0)`, `task t1 ended as completed but still waits in the queue`},
		{`DELETE FROM outbox WHERE ref = 't2'`, `task t2 is working but not in the queue`},
		{`INSERT INTO outbox (topic, ref, created_at) VALUES ('task', 't9', 0)`, `The queue holds task t9, which does not exist`},
		{`UPDATE client_ids SET seq = 4 WHERE client_id = '1'`, `id "1" is noted for message 4, which is not by that sender`},
		{`UPDATE names SET ref = 'g2'`, `The name "helper" and the agent it belongs to do not fit`},
		{`INSERT INTO names VALUES ('ghost', 'account', 'a9', 0)`, `The name "ghost" and the account`},
		{`DELETE FROM names`, `A row of table agents refers to a row of names that is gone`},
		{`UPDATE agents SET version = 3`, `Agent helper (g1) is not the version it says`},
		{`UPDATE agents SET spec = '{'`, `Agent helper (g1) is not the version it says`},
		{`UPDATE agents SET kind = 'a2a'`, `Agent helper (g1) has another kind or status than its latest version`},
		{`UPDATE agents SET status = 'withdrawn'`, `Agent helper (g1) has another kind or status than its latest version`},
		{`DELETE FROM agent_versions WHERE version = 1`, `Agent helper (g1) has 1 versions from 2 to 2, but should have all from 1 to 2`},
		{`DELETE FROM agent_versions WHERE version = 2`, `Agent helper (g1) has 1 versions from 1 to 1, but should have all from 1 to 2`},
		{`DELETE FROM agent_versions`, `Agent helper (g1) has 0 versions from 0 to 0`},
		{`UPDATE agent_versions SET spec = '{' WHERE version = 1`, `Agent helper (g1) has 1 versions that cannot be read`},
		{`UPDATE agent_versions SET icon = 'x' WHERE version = 1`, `Agent helper (g1) has 1 versions that cannot be read`},
		{`UPDATE agent_health SET history = x'00'`, `Agent helper (g1) has a history of contacts that cannot be read`},
		{`UPDATE agent_health SET history = zeroblob(1608)`, `Agent helper (g1) has a history of contacts that cannot be read`},
		{`UPDATE agent_days SET completed = 4`, `The calls of agent g1 on day`},
		{`UPDATE agent_days SET guests = -1`, `The calls of agent g1 on day`},
		{`UPDATE icons SET data = x'00'`, `is not the one that was stored`},
		{`UPDATE agent_owners SET account_id = 'p9'`, `A row of table agent_owners refers to a row of accounts that is gone`},
		{`UPDATE agent_offers SET agent_id = 'g9'`, `A row of table agent_offers refers to a row of agents that is gone`},
		{`UPDATE account_domains SET account_id = 'p9'`, `A row of table account_domains refers to a row of accounts that is gone`},
		{`UPDATE agent_health SET agent_id = 'g9'`, `A row of table agent_health refers to a row of agents that is gone`},
		{`UPDATE agent_days SET agent_id = 'g9'`, `A row of table agent_days refers to a row of agents that is gone`},
		{`UPDATE agent_traces SET agent_id = 'g9'`, `A row of table agent_traces refers to a row of agents that is gone`},
		{`UPDATE releases SET latest = 0`, `Server example.p/tool of the MCP registry has 0 latest versions`},
		{`UPDATE releases SET document = '{ '`, `Server example.p/tool of the MCP registry has 1 latest versions, and 1 that are not what was published`},
		{`UPDATE servers SET agent_id = 'g9'`, `A row of table servers refers to a row of agents that is gone`},
		{`UPDATE releases SET name = 'example.p/none'`, `A row of table releases refers to a row of servers that is gone`},
		{`UPDATE release_remotes SET release_id = 9`, `A row of table release_remotes refers to a row of releases that is gone`},
		{`UPDATE reports SET agent_id = 'g9'`, `A row of table reports refers to a row of agents that is gone`},
		{`UPDATE notices SET account_id = 'p9'`, `A row of table notices refers to a row of accounts that is gone`},
		{`UPDATE searches SET account_id = 'p9'`, `A row of table searches refers to a row of accounts that is gone`},
		{`DROP TRIGGER audit_stays; UPDATE audit SET why = 'ham' WHERE id = 2`, `log of decisions was changed at entry 2`},
		{`DROP TRIGGER audit_remains; DELETE FROM audit WHERE id = 2`, `log of decisions was changed at entry 3`},
		{`INSERT INTO portal (id, public_key, created_at) VALUES (1, zeroblob(32), 0)`, `is not the key of the portal this database belongs to`},
	} {
		t.Run(tt.sql, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			d := openTest(t, dir)
			execRaw(t, d, `PRAGMA foreign_keys = 0`, tt.sql)
			check := func(r Report, err error) {
				t.Helper()
				if err != nil || !strings.Contains(strings.Join(r.Faults, "\n"), tt.says) {
					t.Errorf("%s: %q %v", tt.sql, r.Faults, err)
				}
			}
			check(d.Verify(t.Context()))
			var b bytes.Buffer
			if _, err := d.Backup(t.Context(), &b, BackupOptions{}); err == nil || b.Len() > 0 {
				t.Errorf("%s: backed up", tt.sql)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			check(Verify(t.Context(), dir))
		})
	}
}

// More conversations and tasks than one page holds, and faults at its edges.
func TestVerify_Pages(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	seed(t, d)
	const n = 2*verifyPage + 10
	at := func(i int) string { return fmt.Sprintf("r%06d", i) }
	for i := range n {
		if err := d.CreateConversation(t.Context(), chat.Conversation{ID: at(i), CreatedAt: clock.Now()}, nil, []chat.Message{{ID: at(i), Kind: chat.Event, CreatedAt: clock.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := d.Verify(t.Context())
	if err != nil || !r.OK() || r.Conversations != n+2 || r.Messages != n+5 {
		t.Fatalf("%+v %v", r, err)
	}
	// c1, c2 and the r… make up the pages.
	damaged := []int{0, verifyPage - 3, verifyPage - 2, verifyPage - 1, 2*verifyPage - 3, 2*verifyPage - 2, n - 1}
	for _, i := range damaged {
		execRaw(t, d, `UPDATE messages SET body = '[]' WHERE conversation_id = '`+at(i)+`'`)
	}
	r, err = d.Verify(t.Context())
	if err != nil || len(r.Faults) != len(damaged) {
		t.Errorf("%+v %v", r, err)
	}
	for i, k := range damaged {
		if i < len(r.Faults) && !strings.Contains(r.Faults[i], at(k)) {
			t.Errorf("%s is not named: %s", at(k), r.Faults[i])
		}
	}
	execRaw(t, d, `UPDATE messages SET body = '{}'`)
	if r, err := d.Verify(t.Context()); err != nil || len(r.Faults) != maxFaults || r.More == 0 {
		t.Errorf("%d faults and %d more, %v", len(r.Faults), r.More, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Verify(ctx); err == nil {
		t.Error("cancelled and went on")
	}
}

// An agent or a task that cannot be read hides no other.
func TestDamagedRows_HideNoOther(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	seed(t, d)
	now := clock.Now()
	const n = 1000 + 20 // more than AllAgents reads at once
	for i := range n {
		id := fmt.Sprintf("h%06d", i)
		if err := d.CreateAgent(t.Context(), hub.Agent{ID: id, Name: id, Kind: hub.Builtin, Visibility: hub.Public, Version: 1, CreatedAt: now, UpdatedAt: now}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Write(t.Context(), func(t engine.Tx) error {
		if _, err := t.Exec(`UPDATE agents SET spec = '{' WHERE id = 'g1'`); err != nil {
			return err
		}
		_, err := t.Exec(`UPDATE tasks SET artifacts = '{', state = 'submitted' WHERE id = 't2'`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if err := d.AllAgents(t.Context(), func(hub.Agent) bool { seen++; return true }); err != nil || seen != n {
		t.Errorf("%d agents of %d, %v", seen, n, err)
	}
	if _, err := d.Append(t.Context(), chat.Post{Message: chat.Message{ConversationID: "c1", ID: ident.NewID(), CreatedAt: now}, Ask: []task.Task{{ID: "t4", ConversationID: "c1", AgentID: "g1", CreatedAt: now}}}); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Queued(t.Context(), 0, 10); err != nil || len(list) != 2 || list[1].ID != "t4" {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := d.Begin(t.Context(), "t2", 2); err == nil {
		t.Error("a damaged task began")
	}
	if _, err := d.Begin(t.Context(), "t4", 2); err != nil {
		t.Error(err)
	}
}

// A queue that by some fault holds tasks that have ended or are gone neither
// runs them again nor keeps them.
func TestQueue_LeavesTheEndedAlone(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	seed(t, d)
	if err := d.Write(t.Context(), func(t engine.Tx) error {
		for _, id := range []string{"t1", "t9"} {
			if _, err := t.Exec(`INSERT INTO outbox (topic, ref, created_at) VALUES ('task', ?, 0)`, id); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"t1", "t9"} {
		if k, err := d.Begin(t.Context(), id, 1); !fault.Is(err, fault.Conflict) {
			t.Errorf("%+v %v", k, err)
		}
	}
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
}

// The cheapest work factor: what is tested is that every byte is looked at.
func TestBackup_EncryptedFindsEveryBit(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	d := openTest(t, t.TempDir())
	seed(t, d)
	var b bytes.Buffer
	if _, err := d.writeBackup(t.Context(), &b, BackupOptions{Passphrase: "secret"}, 1); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	if _, err := VerifyBackup(t.Context(), bytes.NewReader(whole), "secret"); err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyBackup(t.Context(), bytes.NewReader(whole), "Secret"); err == nil || !strings.Contains(err.Error(), "passphrase is wrong") {
		t.Error(err)
	}
	if _, err := VerifyBackup(t.Context(), bytes.NewReader(whole), ""); err == nil || !strings.Contains(err.Error(), "is encrypted") {
		t.Error(err)
	}
	for at := 0; at < len(whole); at += 1 + at/7 {
		bad := bytes.Clone(whole)
		bad[at] ^= 1
		if _, err := VerifyBackup(t.Context(), bytes.NewReader(bad), "secret"); err == nil {
			t.Errorf("a bit of byte %d of %d flipped: not found", at, len(whole))
		}
		if _, err := VerifyBackup(t.Context(), bytes.NewReader(whole[:at]), "secret"); err == nil {
			t.Errorf("cut to %d of %d bytes: not found", at, len(whole))
		}
	}
	if _, err := VerifyBackup(t.Context(), bytes.NewReader(append(whole, 0)), "secret"); err == nil {
		t.Error("a byte more: not found")
	}
}

// seedPeers puts something into each table about other portals.
func seedPeers(t *testing.T, d *testDB) {
	t.Helper()
	now := clock.Now()
	policy := federation.Policy{}.Filled()
	for _, err := range []error{
		d.KeepCard(t.Context(), "agentsite-main", record.Version{Epoch: 1, Seq: 1}, []byte("a card")),
		d.KeepNonces(t.Context(), map[[16]byte]time.Time{{1}: now.Add(time.Hour)}),
		d.SavePeers(t.Context(), []federation.Facts{{ID: "p1b", URL: "https://b.example", Known: now}}, nil, []federation.Change{{Key: "p1b", State: federation.Active, At: now}}),
		d.DecidePeers(t.Context(), federation.Decided{By: ident.Actor{Kind: ident.System}, Act: "peers.policy", Policy: &policy}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// seedAll puts something into each table but those of unseeded.
func seedAll(t *testing.T, d *testDB) {
	t.Helper()
	seed(t, d)
	seedRooms(t, d)
	if err := d.Write(t.Context(), func(t engine.Tx) error {
		_, err := tasks.ClaimFirstAsk(t, chat.FirstAsk{CallerID: "p1", AgentID: "g1", ClientID: "m", ConversationID: "c1"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(t.Context(), func(t engine.Tx) error {
		for _, q := range []string{`INSERT INTO room_invitations (conversation_id, person_id, inviter_id, handle, inviter_handle, created_at) VALUES ('c1', 'p2', 'p1', 'bob', 'ada', 1)`,
			`INSERT INTO invitation_days VALUES ('p1', 1, 1)`, `INSERT INTO accepted_inviters VALUES ('p2', 'p1', 1)`,
			`INSERT INTO blocks VALUES ('p2', 'p3', 'eve', 1)`,
			`INSERT INTO grants VALUES ('01HZX5N2Q7W8E9R0T1Y2U3I4O5', 'person', 'p2', 'a1', 'helper', 'ask', 'calc', '', 1, 0, 3, 0, 'ben', '', 'ask', 1)`,
			`INSERT INTO summaries VALUES ('c1', 'a1', 'p1', 'all/0', 1, 'They talked.', 1)`,
			`INSERT INTO goals VALUES ('01HZX5N2Q7W8E9R0T1Y2U3I4O7', 'p1', 'ada', 'k', 'Add 1 and 1.', 'forming', '', 0, '', 0, 1, 1, 1)`,
			`INSERT INTO goal_events VALUES ('01HZX5N2Q7W8E9R0T1Y2U3I4O7', 1, '{"seq":1,"at":"2026-11-28T00:00:00Z","kind":"opened"}')`,
			`INSERT INTO ceilings VALUES ('p1', '', 1000, 0)`,
			`INSERT INTO module_bytes VALUES ('` + strings.Repeat("a", 64) + `', x'0061736d')`,
			`INSERT INTO modules VALUES ('p1', '` + strings.Repeat("a", 64) + `', 'one.wasm', 4, 1, 'one/1.0.0', 'p1x')`,
			`INSERT INTO packages VALUES ('01HZX5N2Q7W8E9R0T1Y2U3I4O8', 'p1', 'ada', 'one', '1.0.0', '{}', '', '` +
				strings.Repeat("a", 64) + `', 4, 'published', '', 0, 1, 1)`,
			`INSERT INTO credentials (id, hash, kind, account_id, created_at, expires_at) VALUES ('se1', 'h', 'session', 'p1', 1, 2)`,
			`INSERT INTO push_browsers (session_id, account_id, host, secret, created_at) VALUES ('se1', 'p1', 'push.example', x'01', 1)`,
			`INSERT INTO push_notices SELECT (SELECT MIN(id) FROM notices), session_id FROM push_browsers`,
			`INSERT INTO kills VALUES ('` + strings.Repeat("b", 64) + `', 'It sends spam.', 1)`,
			`INSERT INTO kill_notices VALUES ('p1x', '` + strings.Repeat("b", 64) + `', 'x.example', 'one/1.0.0', 'It lies.', 1)`,
			`INSERT INTO library_files (person_id, path, version, size, media_type, updated_at) SELECT MIN(id), 'a.txt', 1, 0, '', 1 FROM accounts`,
			`INSERT INTO library_versions (person_id, path, version, size, media_type, restores, agent_id, agent, conversation_id, task_id, created_at)
				SELECT MIN(id), 'a.txt', 1, 0, '', 0, '', '', '', '', 1 FROM accounts`,
			`INSERT INTO library_texts SELECT MIN(id), 'a.txt', 'a' FROM accounts`,
			`INSERT INTO library_shares SELECT 's1', MIN(id), 'a.txt', 0, 'hash', 1, 2 FROM accounts`,
			`INSERT INTO profiles (account_id, display_name, updated_at) SELECT MIN(id), 'Ann', 1 FROM accounts`,
			`INSERT INTO settings VALUES ('name', 'A portal', NULL, 1)`,
			`INSERT INTO daily_figures VALUES (20000, 'people', 1)`,
			`INSERT INTO memories SELECT '01HZX5N2Q7W8E9R0T1Y2U3I4O9', 'p1', MIN(id), '', 'r1', 1, 'likes tea', 0, '', 1, 1 FROM agents`,
			`INSERT INTO hosting VALUES (1, '{}')`,
			`INSERT INTO halts VALUES ('provider', 'llm.example', 1, 'llm.example', '', 1)`,
			`INSERT INTO models VALUES ('01HZX5N2Q7W8E9R0T1Y2U3I4O6', 'p1', 'fast', 'openai', 'https://llm.example/v1', 'm-1', '', 0, 0, NULL, 1, 1)`,
			`INSERT INTO usage_days VALUES (20000, 'a1', 'p1', 'person', 'p2', 'm', 0, 'work', 1, 0, 10, 5, 7)`} {
			if _, err := t.Exec(q); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.KeepElsewhere(t.Context(), hub.Agent{ID: "e1", Kind: hub.Peer, Name: "far", Portal: "b.example", PortalID: "p1b", NetworkID: "p1b/far"}); err != nil {
		t.Fatal(err)
	}
	seedPeers(t, d)
}

// unseeded are the tables that seedAll leaves empty.
var unseeded = []string{"credentials", "portal", "database_move", "moved_tables"}

// A backup has every table, whatever is added later.
func TestBackup_HasEveryTable(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	seedAll(t, d)
	var b bytes.Buffer
	if _, err := d.Backup(t.Context(), &b, BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if _, err := Restore(t.Context(), &b, to, ""); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), to, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	var tables []string
	if err := d.List(t.Context(), &tables, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`); err != nil {
		t.Fatal(err)
	}
	for _, name := range tables {
		var before, after int
		if err := errors.Join(d.Get(t.Context(), &before, `SELECT COUNT(*) FROM `+name), again.Get(t.Context(), &after, `SELECT COUNT(*) FROM `+name)); err != nil {
			t.Fatal(err)
		}
		if before != after || before == 0 && !slices.Contains(unseeded, name) {
			t.Errorf("table %s has %d rows, restored %d", name, before, after)
		}
	}
}

// A verification sees what only the WAL holds, changes nothing, and works in a
// folder whose name an SQLite URI would read as its own syntax.
func TestVerify_SeesTheWAL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTest(t, dir)
	if err := d.Write(t.Context(), func(t engine.Tx) error { return rows.TakeName(t, nil, "ada", "agent", "x", 1) }); err != nil {
		t.Fatal(err)
	}
	copied := crashCopy(t, dir)
	before := filetest.Hash(t, filepath.Join(copied, sqlite.FileName))
	r, err := Verify(t.Context(), copied)
	if err != nil || len(r.Faults) != 1 || !strings.Contains(r.Faults[0], `"ada"`) {
		t.Error(r, err)
	}
	if filetest.Hash(t, filepath.Join(copied, sqlite.FileName)) != before {
		t.Error("verifying changed the database")
	}
	odd := filepath.Join(t.TempDir(), "a b?mode=memory&[x]*#%41")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := openTest(t, odd).Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(t.Context(), odd); err != nil || !r.OK() {
		t.Error(r, err)
	}
}

// A file that is no database of this program is refused, not reported as damaged.
func TestVerify_RefusesOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := openTest(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, sqlite.FileName)
	for _, content := range []string{"", "hello, this is a text file of some length\n", "SQLite format 3\x00 and then nonsense that is none"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Verify(t.Context(), dir); err == nil {
			t.Errorf("%q: %+v", content, r)
		}
	}
}

func TestBackup_DoesWithoutAReplicaThatIsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	d, err := Open(t.Context(), dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.WriteFile(filepath.Join(dir, replica.FileName), []byte("no database, but a text of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if m, err := d.Backups.Backup(t.Context(), &b, BackupOptions{}); err != nil || len(m.Members) != 3 {
		t.Fatal(m.Members, err)
	}
	if !strings.Contains(log.String(), "holds nothing of the replica") {
		t.Error(log.String())
	}
	if _, err := VerifyBackup(t.Context(), &b, ""); err != nil {
		t.Error(err)
	}
}

func TestBackup_HoldsTheReplica(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "restored")
	d := openTest(t, dir)
	r, err := replica.Open(t.Context(), replica.Config{Dir: dir, Own: recordtest.NewPortal("own").ID,
		Network: recordtest.Network, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	if m, err := d.Backup(t.Context(), &b, BackupOptions{}); err != nil || len(m.Members) != 4 {
		t.Fatal(m.Members, err)
	}
	if _, err := Restore(t.Context(), &b, to, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, replica.FileName)); err != nil {
		t.Error(err)
	}
}

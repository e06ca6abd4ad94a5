package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/store/sqlite"
)

// seedRooms adds to what seed stored a conversation "c8" of p1 with everything
// there is: 1 edited by 4, 2 removed by 5 with its edit 3, 6 with a reaction
// of 7 and a file, 8 asked of t8, answered by 9 and again by 10 for t9, whose
// answer asked t10.
func seedRooms(t *testing.T, d *testDB) (file string) {
	t.Helper()
	ctx, now := context.Background(), clock.Now()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(d.CreateConversation(ctx, chat.Conversation{ID: "c8", CreatedAt: now, Members: []chat.Member{{Kind: "person", ID: "p1", Handle: "ada", Role: chat.RoleOwner}}}, nil, nil))
	message := func(id string, kind chat.Kind, target int64, text string) chat.Message {
		return chat.Message{ConversationID: "c8", ID: id, Sender: chat.Sender{Kind: "person", ID: "p1", Handle: "ada"}, Kind: kind, Target: target,
			Parts: []task.Part{task.TextPart(text)}, CreatedAt: now}
	}
	say := func(id string, files ...string) {
		_, err := d.Append(ctx, chat.Post{MustBeMember: true, Message: message(id, chat.Text, 0, "text of "+id), Files: files})
		must(err)
	}
	amend := func(id string, kind chat.Kind, target int64, text string) {
		m, err := d.Amend(ctx, message(id, kind, target, text), true)
		must(err)
		if m.Seq == 0 {
			t.Fatalf("%s changed nothing", id)
		}
	}
	hash, size, _, err := d.PutBlob(ctx, strings.NewReader("what the file holds"), 100)
	must(err)
	must(d.PutFile(ctx, chat.File{Hash: hash, Size: size, MediaType: "text/plain", CreatedAt: now}, "person", "p1", 1000))
	hook := notify.Hook{ID: "h1", Kind: notify.Webhook, OwnerKind: "person", OwnerID: "p1", URL: "https://example.org", Host: "example.org", Events: notify.Types, State: notify.Active, Sealed: []byte("x"), CreatedAt: now, UpdatedAt: now}
	must(d.AddWebhook(ctx, hook, 1))
	must(d.AddAttempt(ctx, hook.ID, notify.Attempt{EventID: "evt_1", Type: notify.Tested, At: now, Status: 200}))
	say("one")
	say("two")
	amend("three", chat.Edit, 2, "secret")
	amend("four", chat.Edit, 1, "edited")
	amend("five", chat.Unsaid, 2, "")
	say("six", hash)
	amend("seven", chat.React, 6, "👍")
	k := task.Task{ID: "t8", ConversationID: "c8", AgentID: "g1", CallerKind: "person", CallerID: "p1", CreatedAt: now, UpdatedAt: now}
	done, err := d.Append(ctx, chat.Post{Message: message("eight", chat.Text, 0, "why?"), Ask: []task.Task{k}})
	must(err)
	answer := func(k task.Task, id string, ask ...task.Task) {
		k.State, k.UpdatedAt = task.Completed, now
		_, err := d.Finish(ctx, chat.Ended{Task: k, Turns: 5, Budget: 1000, Ask: ask, Message: chat.Message{ConversationID: "c8", ID: id, ClientID: k.ID, Kind: chat.Text,
			Sender: chat.Sender{Kind: "agent", ID: "g1"}, Parts: []task.Part{task.TextPart("because")}, TaskID: k.ID, TaskState: k.State, CreatedAt: now}})
		must(err)
	}
	answer(done.Tasks[0], "nine")
	k.ID, k.MessageSeq, k.Replaces = "t9", 8, 9
	again, err := d.Ask(ctx, k)
	must(err)
	k.ID, k.Replaces = "t10", 0
	answer(again, "ten", k)
	must(d.PutLink(ctx, chat.Link{ID: "l1", ConversationID: "c8", Kind: chat.JoinLink, Role: chat.RoleMember, Creator: chat.Sender{Kind: "person", ID: "p1"}, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}, "hash"))
	must(d.Disclose(ctx, "person", "p1", chat.Disclosure{AgentID: "g1", Host: "agent.example", Share: chat.ShareOwn, ToldAt: now}))
	must(d.SetPrefs(ctx, "p1", chat.Prefs{Notify: chat.NotifyMentions, QuietFrom: 60, QuietTo: 120, Zone: "Europe/Berlin"}))
	for more := true; more; {
		more, err = d.IndexWords(ctx)
		must(err)
	}
	return hash
}

// What must never be of rooms, too, a verification tells of in a sentence.
func TestVerify_FindsInRooms(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	d := openTest(t, whole)
	seed(t, d)
	seedRooms(t, d)
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() || r.Messages != 15 || r.Files != 1 || r.FileBytes != 19 {
		t.Fatalf("before: %+v %v", r, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ sql, says string }{
		{`UPDATE messages SET target = 2 WHERE seq = 4`, `message 4 is not what was said`},
		{`UPDATE messages SET body = '[{"text":"never"}]', body_hash = NULL WHERE seq = 1`, `message 1 is not what was said`},
		{`UPDATE messages SET body = '[{"text":"never"}]' WHERE seq = 2`, `message 2 was removed but not its text`},
		{`UPDATE messages SET body = '', body_hash = zeroblob(32) WHERE seq = 6`, `message 6 is not what was said`},
		{`UPDATE messages SET body_hash = zeroblob(32) WHERE seq = 2`, `message 2 is not what was said`},
		{`UPDATE messages SET gone_seq = 0, body = '[{"text":"secret"}]', body_hash = NULL WHERE seq = 3`, `message 3 is not what was said`},
		{`UPDATE messages SET gone_seq = 6 WHERE seq = 3`, `message 3, an edit, was not removed with message 2`},
		{`UPDATE messages SET salt = zeroblob(16) WHERE seq = 1`, `message 1 is not what was said`},
		{`UPDATE messages SET salt = NULL WHERE seq = 1`, `message 1 is not what was said`},
		{`UPDATE messages SET salt = zeroblob(16) WHERE seq = 2`, `message 2 was removed but not its salt`},
		{`UPDATE messages SET edit_seq = 0 WHERE seq = 1`, `message 1 is not shown as`},
		{`UPDATE messages SET edit_seq = 4 WHERE seq = 6`, `message 6 is not shown as`},
		{`UPDATE messages SET newer_seq = 0 WHERE seq = 9`, `message 9 is not shown as`},
		{`UPDATE messages SET newer_seq = 10 WHERE seq = 8`, `message 8 is not shown as`},
		{`UPDATE messages SET reacted = 0 WHERE seq = 6`, `reactions to message 6, which has none`},
		{`UPDATE reactions SET seq = 99`, `reactions to message 99, which has none`},
		{`UPDATE file_uses SET seq = 99`, `message 99 is said to hold the file`},
		{`DELETE FROM files`, `A row of table file_uses refers to a row of files that is gone`},
		{`UPDATE said SET seq = 99 WHERE seq = 1`, `the words of message 99 are kept`},
		{`UPDATE tasks SET root_seq = 99 WHERE id = 't10'`, `task t10 goes back to a message that cannot`},
		{`UPDATE tasks SET hop = 1, root_seq = 0 WHERE id = 't9'`, `task t9 goes back to a message that cannot`},
		{`UPDATE files SET hash = 'x' || substr(hash, 2)`, `is no hash`},
		{`UPDATE room_links SET conversation_id = 'c99'`, `A row of table room_links refers to a row of conversations that is gone`},
		{`UPDATE disclosures SET agent_id = 'g99'`, `A row of table disclosures refers to a row of agents that is gone`},
	} {
		t.Run(tt.sql, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			d := openTest(t, dir)
			where := tt.sql
			if strings.HasPrefix(where, "UPDATE messages") {
				where += ` AND conversation_id = 'c8'`
			}
			execRaw(t, d, `PRAGMA foreign_keys = 0`, `PRAGMA ignore_check_constraints = 1`, where)
			r, err := d.Verify(t.Context())
			if err != nil || !strings.Contains(strings.Join(r.Faults, "\n"), tt.says) {
				t.Errorf("%s: %q %v", tt.sql, r.Faults, err)
			}
			var b bytes.Buffer
			if _, err := d.Backup(t.Context(), &b, BackupOptions{}); err == nil || b.Len() > 0 {
				t.Errorf("%s: backed up", tt.sql)
			}
		})
	}
}

// What was removed is nowhere in the database any more, and nothing is left of
// a room that was deleted.
func TestDeleteRoom_LeavesNothing(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	seed(t, d)
	hash := seedRooms(t, d)
	var n int
	if err := d.Get(t.Context(), &n, `SELECT COUNT(*) FROM messages WHERE body LIKE '%secret%' OR body LIKE '%text of two%'`); err != nil || n != 0 {
		t.Errorf("%d removed texts are there, %v", n, err)
	}
	if err := d.DeleteRoom(t.Context(), "c8"); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{`messages WHERE conversation_id = 'c8'`, `members WHERE conversation_id = 'c8'`, `reactions`, `file_uses`, `room_links`, `said WHERE conversation_id = 'c8'`,
		`said_words WHERE said_words MATCH 'c8 *'`, `tasks WHERE conversation_id = 'c8'`, `client_ids WHERE conversation_id = 'c8'`} {
		if err := d.Get(t.Context(), &n, `SELECT COUNT(*) FROM `+q); err != nil || n != 0 {
			t.Errorf("%d rows left in %s, %v", n, q, err)
		}
	}
	// Its file is kept for who sent it, for a while.
	if _, err := d.FileFor(t.Context(), hash, "person", "p1"); err != nil {
		t.Error(err)
	}
	if n, err := d.DropFiles(t.Context(), clock.Now().Add(-time.Minute), 10); err != nil || n != 0 {
		t.Errorf("dropped %d, %v", n, err)
	}
	if n, err := d.DropFiles(t.Context(), clock.Now().Add(time.Minute), 10); err != nil || n != 1 {
		t.Errorf("dropped %d, %v", n, err)
	}
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() || r.Files != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// A text that was taken away is not in the file any more either.
func TestAmend_UnsayLeavesNoBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openTest(t, dir)
	ctx, now := t.Context(), clock.Now()
	if err := d.CreateConversation(ctx, chat.Conversation{ID: "c1", CreatedAt: now, Members: []chat.Member{{Kind: "person", ID: "p1", Handle: "ada", Role: chat.RoleOwner}}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	inFile := func() bool {
		t.Helper()
		execRaw(t, d, `PRAGMA wal_checkpoint(TRUNCATE)`)
		b, err := os.ReadFile(filepath.Join(dir, sqlite.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte("what nobody"))
	}
	m := chat.Message{ConversationID: "c1", Sender: chat.Sender{Kind: "person", ID: "p1", Handle: "ada"}, CreatedAt: now}
	for i, n := range []int{1, 3000} { // in its page, and in pages of its own
		m.ID, m.Kind, m.Target, m.Parts = fmt.Sprint("m", i), chat.Text, 0, []task.Part{task.TextPart(strings.Repeat("what nobody should ever read ", n))}
		done, err := d.Append(ctx, chat.Post{Message: m})
		if err != nil {
			t.Fatal(err)
		}
		m.Kind, m.Target = chat.Edit, done.Message.Seq
		if _, err := d.Amend(ctx, m, true); err != nil {
			t.Fatal(err)
		}
		if !inFile() {
			t.Fatal("the text is not found where it is")
		}
		m.Kind, m.Parts = chat.Unsaid, nil
		if _, err := d.Amend(ctx, m, true); err != nil {
			t.Fatal(err)
		}
		if inFile() {
			t.Errorf("a text of %d sentences is left in the file", n)
		}
	}
}

// An index of words that is damaged stops nothing: it is filled anew.
func TestWords_DamagedAreReadAnew(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	seed(t, d)
	seedRooms(t, d)
	find := func() int {
		t.Helper()
		found, _, err := d.SearchMessages(t.Context(), "person", "p1", "edited", chat.Point{}, 10)
		if err != nil {
			return -1
		}
		return len(found)
	}
	if n := find(); n != 1 {
		t.Fatalf("found %d", n)
	}
	execRaw(t, d, `UPDATE said_words_data SET block = x'00' WHERE id > 10`)
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() {
		t.Errorf("what is read anew is no fault: %+v %v", r, err)
	}
	m := chat.Message{ConversationID: "c8", ID: "eleven", Sender: chat.Sender{Kind: "person", ID: "p1"}, Kind: chat.Edit, Target: 6, Parts: []task.Part{task.TextPart("edited twice")}, CreatedAt: clock.Now()}
	for range 3 { // until damage is met, each has to work
		if _, err := d.Amend(t.Context(), m, true); err != nil {
			t.Fatal(err)
		}
		m.ID += "x"
		find()
	}
	for more := true; more; {
		var err error
		if more, err = d.IndexWords(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := find(); n != 2 || d.Err() != nil {
		t.Errorf("found %d, %v", n, d.Err())
	}
}

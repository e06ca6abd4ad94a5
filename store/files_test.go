package store_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
	"agentsite/store/engine"
)

// send stores a file of the account and returns its hash.
func send(t testing.TB, db *storetest.DB, who account.Account, content string) string {
	t.Helper()
	hash, err := trySend(db, who, content)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func trySend(db *storetest.DB, who account.Account, content string) (string, error) {
	ctx := context.Background()
	hash, size, _, err := db.PutBlob(ctx, strings.NewReader(content), 1<<20)
	if err != nil {
		return "", err
	}
	return hash, db.PutFile(ctx, chat.File{Hash: hash, Size: size, MediaType: "text/plain", CreatedAt: clock.Now()}, "person", who.ID, 1<<20)
}

// holding is a message with files.
func holding(c chat.Conversation, who account.Account, hashes ...string) chat.Post {
	p := storetest.Post(c, who, ident.NewID(), "look")
	for _, h := range hashes {
		p.Message.Parts = append(p.Message.Parts, task.Part{URL: chat.FileURL(h), Filename: "a.txt"})
	}
	p.Files = hashes
	return p
}

func openBackup(t testing.TB, db *storetest.DB, hash string) string {
	t.Helper()
	f, err := db.OpenBlob(context.Background(), hash)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// blobs returns the names of the stored contents of files, with those of uploads that were broken off.
func blobs(t testing.TB, db *storetest.DB) []string {
	t.Helper()
	var out []string
	if db.Engine.Name() == store.FileName {
		return blobFiles(t, storetest.Dir(db))
	}
	if err := db.List(t.Context(), &out, `SELECT DISTINCT COALESCE(b.hash, p.blob_id) FROM blob_parts p
		LEFT JOIN blobs b ON b.blob_id = p.blob_id`); err != nil {
		t.Fatal(err)
	}
	return out
}

func blobFiles(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	if err := filepath.WalkDir(filepath.Join(dir, "files"), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, e.Name())
		}
		return err
	}); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out
}

func TestPutBlob(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	hash, size, head, err := db.PutBlob(ctx, strings.NewReader("hello"), 5)
	if err != nil || size != 5 || string(head) != "hello" || hash != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Fatal(hash, size, head, err)
	}
	long := strings.Repeat("x", 2000)
	again, _, head, err := db.PutBlob(ctx, iotest.OneByteReader(strings.NewReader(long)), 2000)
	if err != nil || string(head) != long[:512] || openBackup(t, db, again) != long {
		t.Error(len(head), err)
	}
	if same, _, _, err := db.PutBlob(ctx, strings.NewReader("hello"), 5); err != nil || same != hash {
		t.Error(same, err)
	}
	if _, _, _, err := db.PutBlob(ctx, strings.NewReader("hello!"), 5); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	broken := errors.New("the line broke")
	if _, _, _, err := db.PutBlob(ctx, io.MultiReader(strings.NewReader("begin"), iotest.ErrReader(broken)), 500); !errors.Is(err, broken) {
		t.Error(err)
	}
	if list := blobs(t, db); len(list) != 2 {
		t.Errorf("there are %v", list)
	}
	if !storetest.OnPostgres() {
		st, err := os.Stat(filepath.Join(storetest.Dir(db), "files", hash[:2], hash))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Error(st, err)
		}
	}
	for _, bad := range []string{"", "..", "../agentsite.db", strings.Repeat("0", 64), strings.ToUpper(hash), hash + "/"} {
		if _, err := db.OpenBlob(ctx, bad); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", bad, err)
		}
		if err := db.PutFile(ctx, chat.File{Hash: bad, Size: 5}, "person", "p", 1000); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What a crash leaves is taken away by the next start, a blob that nobody
// came to name after a while, and nothing else.
func TestBlobs_LeftByACrash(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	dir := storetest.Dir(db)
	kept := send(t, db, ada, "kept")
	nameless, _, _, err := db.PutBlob(t.Context(), strings.NewReader("nameless"), 100)
	if err != nil {
		t.Fatal(err)
	}
	if storetest.OnPostgres() {
		if err := db.Write(t.Context(), func(w engine.Tx) error {
			_, err := w.Exec(`INSERT INTO blob_parts (blob_id, part, bytes) VALUES ('0-x', 0, ?)`, []byte("half"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := db.SweepBlobs(t.Context(), time.Now().Add(-time.Minute)); err != nil || n != 0 {
			t.Errorf("swept %d young ones, %v", n, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if !storetest.OnPostgres() {
		if err := os.WriteFile(filepath.Join(dir, "files", ".agentsite-tmp-1"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db = storetest.Open(t, dir)
	if list := blobs(t, db); len(list) != 2 {
		t.Errorf("after a start: %v", list)
	}
	if n, err := db.SweepBlobs(t.Context(), time.Now().Add(-time.Minute)); err != nil || n != 0 {
		t.Errorf("swept %d young ones, %v", n, err)
	}
	if n, err := db.SweepBlobs(t.Context(), time.Now().Add(time.Minute)); err != nil || n != 1 {
		t.Errorf("swept %d, %v", n, err)
	}
	if list := blobs(t, db); len(list) != 1 || list[0] != kept {
		t.Errorf("after a sweep: %v", list)
	}
	if err := db.PutFile(t.Context(), chat.File{Hash: nameless, Size: 8}, "person", ada.ID, 1000); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file whose blob is gone: %v", err)
	}
	storetest.Sound(t, db)
}

// A file is for who sent it and for who sees a message that holds it.
func TestFiles_Rights(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
	c, other := storetest.Conversation(t, db, ada), storetest.Conversation(t, db, eve)
	hash := send(t, db, ada, "of ada")
	reads := func(who account.Account) bool {
		t.Helper()
		_, err := db.FileFor(ctx, hash, "person", who.ID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	join(t, db, c, bob, chat.RoleReader, 0)
	if !reads(ada) || reads(bob) || reads(eve) {
		t.Error("before it was shown to anybody")
	}
	// Who knows the hash alone cannot send it on.
	before := len(storetest.Messages(t, db, other.ID))
	if _, err := db.Append(ctx, holding(other, eve, hash)); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	edit := by(other, eve, chat.Edit, storetest.Say(t, db, other, eve, "mine").Message.Seq, "")
	edit.Parts = []task.Part{{URL: chat.FileURL(hash)}}
	if _, err := db.Amend(ctx, edit, true); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if n := len(storetest.Messages(t, db, other.ID)); n != before+1 {
		t.Errorf("%d messages", n)
	}
	done, err := db.Append(ctx, holding(c, ada, hash, hash))
	if err != nil {
		t.Fatal(err)
	}
	if !reads(ada) || !reads(bob) || reads(eve) {
		t.Error("shown to bob")
	}
	late := join(t, db, c, eve, chat.RoleMember, -1)
	if reads(eve) {
		t.Error("who came later sees nothing of before")
	}
	if _, err := db.SharedFile(ctx, hash, c.ID, 0, done.Message.Seq); err != nil {
		t.Error(err)
	}
	for _, r := range [][2]int64{{0, done.Message.Seq - 1}, {done.Message.Seq, late}} {
		if _, err := db.SharedFile(ctx, hash, c.ID, r[0], r[1]); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %v", r, err)
		}
	}
	if _, err := db.FileFor(ctx, hash, "guest", bob.ID); !fault.Is(err, fault.NotFound) {
		t.Error("a guest with the id of a person")
	}
	if _, err := db.Leave(ctx, c.ID, "person", bob.ID, clock.Now(), event(bob)); err != nil {
		t.Fatal(err)
	}
	if reads(bob) {
		t.Error("who left")
	}
	join(t, db, c, bob, chat.RoleMember, 0)
	amend(t, db, by(c, ada, chat.Unsaid, done.Message.Seq, ""))
	if !reads(ada) || reads(bob) {
		t.Error("after its message was removed")
	}
	// An edit that adds a file shows it, and one that leaves it away does not
	// hide it: the earlier form can be read.
	m := storetest.Say(t, db, c, ada, "another").Message
	for _, parts := range [][]task.Part{{{URL: chat.FileURL(hash)}}, {task.TextPart("without")}} {
		edit := by(c, ada, chat.Edit, m.Seq, "")
		edit.Parts = parts
		amend(t, db, edit)
		if !reads(bob) {
			t.Error("after an edit")
		}
	}
	storetest.Sound(t, db)
}

func TestFiles_OfAgentsAndBranches(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	helper := storetest.Agent(t, db, "helper", ada)
	c := storetest.Conversation(t, db, ada, helper)
	join(t, db, c, bob, chat.RoleMember, 0)
	hash, size, _, err := db.PutBlob(ctx, strings.NewReader("made by an agent"), 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PutFile(ctx, chat.File{Hash: hash, Size: size, CreatedAt: clock.Now()}, "agent", helper.ID, 1000); err != nil {
		t.Fatal(err)
	}
	k, m := storetest.Answer(storetest.Say(t, db, c, ada, "make it", helper).Tasks[0], task.Completed, "done")
	if _, err := db.Finish(ctx, chat.Ended{Task: k, Message: m, Files: []string{hash, strings.Repeat("0", 64)}}); err != nil {
		t.Fatal(err)
	}
	quote := storetest.Post(c, ada, "", "about that")
	quote.Message.Target = 3
	if _, err := db.Append(ctx, quote); err != nil {
		t.Fatal(err)
	}
	amend(t, db, by(c, ada, chat.Edit, 2, "make it, please"))
	gone := storetest.Say(t, db, c, ada, "gone").Message.Seq
	amend(t, db, by(c, ada, chat.Unsaid, gone, ""))
	if _, err := db.FileFor(ctx, hash, "person", bob.ID); err != nil {
		t.Error(err)
	}
	branch := chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), BranchedFrom: c.ID, BranchedSeq: 7, Settings: chat.Settings{Speaks: chat.SpeaksNobody, Past: chat.PastNothing, Hops: 1, Turns: 2, Budget: 3},
		Members: []chat.Member{{Kind: "person", ID: bob.ID, Handle: "bob", Role: chat.RoleOwner}}}
	said := storetest.Messages(t, db, c.ID)
	for i := range said {
		said[i].ID = ident.NewID()
	}
	if err := db.CreateConversation(ctx, branch, said, []chat.Message{event(bob)}); err != nil {
		t.Fatal(err)
	}
	var texts []string
	list := storetest.Messages(t, db, branch.ID)
	for _, m := range list {
		texts = append(texts, task.PlainText(m.Parts))
	}
	if got := strings.Join(texts, "; "); got != "something happened; make it, please; done; about that; something happened" || list[3].Target != 3 || list[2].TaskID != "" {
		t.Errorf("%s\n%+v", got, list)
	}
	// It lasts longer than the room it comes from.
	if err := db.DeleteRoom(ctx, c.ID); err != nil {
		t.Fatal(err)
	}
	if n, err := db.DropFiles(ctx, clock.Now().Add(time.Hour), 10); err != nil || n != 0 {
		t.Error(n, err)
	}
	if _, err := db.FileFor(ctx, hash, "person", bob.ID); err != nil {
		t.Error(err)
	}
	got, err := db.Room(ctx, branch.ID, "person", bob.ID)
	if err != nil || got.Settings != branch.Settings || got.BranchedFrom != c.ID || got.BranchedSeq != 7 || got.UpdatedAt.Before(branch.CreatedAt) {
		t.Errorf("%+v %v", got, err)
	}
	storetest.Sound(t, db)
}

func TestFiles_Quota(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Conversation(t, db, ada)
	put := func(who account.Account, content string) error {
		hash, size, _, err := db.PutBlob(ctx, strings.NewReader(content), 100)
		if err != nil {
			t.Fatal(err)
		}
		return db.PutFile(ctx, chat.File{Hash: hash, Size: size, CreatedAt: clock.Now()}, "person", who.ID, 10)
	}
	for i, tt := range []struct {
		who     account.Account
		content string
		fits    bool
	}{{ada, "123456", true}, {ada, "123456", true}, {ada, "12345", false}, {ada, "1234", true}, {bob, "123456", true}, {bob, "12345", false}} {
		if err := put(tt.who, tt.content); (err == nil) != tt.fits || err != nil && !fault.Is(err, fault.RateLimited) {
			t.Errorf("%d: %v", i, err)
		}
	}
	// What nobody holds for long takes no room any more; what is held stays.
	hash := "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92" // of 123456
	if _, err := db.Append(ctx, holding(c, ada, hash)); err != nil {
		t.Fatal(err)
	}
	if n, err := db.DropFiles(ctx, clock.Now().Add(-time.Second), 10); err != nil || n != 0 {
		t.Error(n, err)
	}
	if n, err := db.DropFiles(ctx, clock.Now().Add(time.Second), 10); err != nil || n != 1 {
		t.Error(n, err)
	}
	if list := blobs(t, db); len(list) != 2 { // 12345 was never named
		t.Errorf("%v", list)
	}
	if err := put(ada, "1234"); err != nil {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

// An erased account's files go with it, but not those that a message holds or another account sent as well.
func TestFiles_OfAnErasedAccount(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Conversation(t, db, bob)
	gone, kept := send(t, db, ada, "of ada alone"), send(t, db, ada, "of both")
	if send(t, db, bob, "of both") != kept || len(blobs(t, db)) != 2 {
		t.Fatal("the same content is stored twice")
	}
	if _, err := db.Append(ctx, holding(c, bob, kept)); err != nil {
		t.Fatal(err)
	}
	if err := db.EraseAccount(ctx, ada.ID, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	if n, err := db.DropFiles(ctx, clock.Now().Add(time.Second), 10); err != nil || n != 1 {
		t.Error(n, err)
	}
	if list := blobs(t, db); len(list) != 1 || list[0] != kept {
		t.Errorf("without %s there are %v", gone, list)
	}
	if openBackup(t, db, kept) != "of both" {
		t.Error("another content")
	}
	storetest.Sound(t, db)
}

package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
	"agentsite/store/sqlite"
)

// filled returns a database with something of everything in it.
func filled(t testing.TB) *storetest.DB {
	t.Helper()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	helper := storetest.Agent(t, db, "helper", ada)
	echo := storetest.Agent(t, db, "echo", nobody)
	for i := range 3 {
		c := storetest.Conversation(t, db, ada, helper, echo)
		for j := range 10 {
			p := storetest.Say(t, db, c, ada, fmt.Sprintf("question %d of %d", j, i), helper)
			storetest.Finish(t, db, p.Tasks[0], task.Completed, "an answer of some length, so that there is something to damage")
		}
		storetest.Say(t, db, c, ada, "and this?", echo)
	}
	return db
}

func backup(t testing.TB, db *storetest.DB, passphrase string) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := db.Backup(context.Background(), &b, store.BackupOptions{Passphrase: passphrase, App: "test"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBackup_RestoresEverything(t *testing.T) {
	t.Parallel()
	db := filled(t)
	want := storetest.Sound(t, db)
	b := backup(t, db, "")
	seen, err := store.VerifyBackup(t.Context(), bytes.NewReader(b), "")
	if err != nil {
		t.Fatal(err)
	}
	if seen.Backup.App != "test" || seen.Backup.Schema != sqlite.SchemaVersion() || seen.Messages != want.Messages || want.Messages != 63 {
		t.Errorf("backup says %+v, %+v; the database %+v", seen, seen.Backup, want)
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	if _, err := store.Restore(t.Context(), bytes.NewReader(b), dir, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ident.PortalKeyFile, ident.SealKeyFile, sqlite.FileName} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, st, err)
		}
	}
	if n := names(t, filepath.Dir(dir)); len(n) != 1 {
		t.Errorf("beside the restored folder lies %v", n)
	}
	if n := names(t, storetest.Dir(db)); len(n) > 5 { // database, -wal, -shm, two keys
		t.Errorf("in the data folder lies %v", n)
	}
	again := storetest.Sound(t, storetest.OpenOn(t, dir, ""))
	if again.Messages != want.Messages || again.Tasks != want.Tasks || again.Agents != 2 || again.Accounts != 1 || again.Conversations != 3 {
		t.Errorf("restored %+v, want %+v", again, want)
	}
}

func TestBackup_Encrypted(t *testing.T) {
	t.Parallel()
	b := backup(t, filled(t), "correct horse")
	if bytes.Contains(b, []byte("PORTAL KEY")) || bytes.Contains(b, []byte("an answer")) {
		t.Error("the encrypted backup shows what it holds")
	}
	dir := filepath.Join(t.TempDir(), "data")
	r, err := store.Restore(t.Context(), bytes.NewReader(b), dir, "correct horse")
	if err != nil || r.Messages != 63 {
		t.Errorf("%+v %v", r, err)
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A backup taken under load holds a beginning of every transcript, and all
// that was acknowledged before it began.
func TestBackup_WhileWritten(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	var acked atomic.Int64
	stop, done := make(chan struct{}), make(chan error)
	const writers = 8
	for w := range writers {
		go func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if _, err := db.Append(context.Background(), storetest.Post(c, ada, fmt.Sprint(w, "/", i), "text")); err != nil {
					done <- err
					return
				}
				acked.Add(1)
			}
		}()
	}
	for range 4 {
		before := acked.Load()
		for acked.Load() < before+200 { // the writers are at it
			runtime.Gosched()
		}
		before = acked.Load()
		b := backup(t, db, "")
		dir := filepath.Join(t.TempDir(), "restored")
		if _, err := store.Restore(t.Context(), bytes.NewReader(b), dir, ""); err != nil {
			t.Fatal(err)
		}
		got := storetest.Messages(t, storetest.OpenOn(t, dir, ""), c.ID)
		if int64(len(got)) < before {
			t.Errorf("%d messages restored, %d were acknowledged before", len(got), before)
		}
		whole := storetest.Messages(t, db, c.ID)
		if n := len(got); n > len(whole) || !bytes.Equal(got[n-1].Hash, whole[n-1].Hash) || got[n-1].Seq != int64(n) {
			t.Error("what was restored is not a beginning of the transcript")
		}
	}
	close(stop)
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	storetest.Sound(t, db)
}

// SQLite's own check misses about a quarter of such flips; a backup none.
func TestVerifyBackup_FindsEveryBit(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	b := backup(t, filled(t), "")
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	flips := 90
	if os.Getenv("AGENTSITE_TEST_FULL") != "" {
		flips = 300
	}
	for i := range flips {
		bad := bytes.Clone(b)
		bit := rnd.IntN(len(b) * 8)
		if i < flips/3 { // headers, padding and end are few bytes of many
			bit = rnd.IntN(4096 * 8)
		} else if i < flips/2 {
			bit = (len(b)-3072)*8 + rnd.IntN(3072*8)
		}
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := store.VerifyBackup(t.Context(), bytes.NewReader(bad), ""); err == nil {
			t.Errorf("bit %d of byte %d of %d flipped (seed %d): not found", bit%8, bit/8, len(b), seed)
		}
	}
	for range flips / 6 {
		n := rnd.IntN(len(b))
		if _, err := store.VerifyBackup(t.Context(), bytes.NewReader(b[:n]), ""); err == nil {
			t.Errorf("cut to %d of %d bytes (seed %d): not found", n, len(b), seed)
		}
	}
	if _, err := store.VerifyBackup(t.Context(), bytes.NewReader(append(b, 0)), ""); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestRestore_Refuses(t *testing.T) {
	t.Parallel()
	db := filled(t)
	plain := backup(t, db, "")
	bad := bytes.Clone(plain)
	bad[len(bad)/2] ^= 4
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dir, passphrase string
		in                    []byte
		says                  string
	}{
		{"a folder in use", used, "", plain, "is not empty"},
		{"a running portal", storetest.Dir(db), "", plain, "is not empty"},
		{"damage", "", "", bad, "damaged"},
		{"a cut file", "", "", plain[:len(plain)-1], "damaged"},
		{"an empty file", "", "", nil, "damaged"},
		{"no backup", "", "", []byte(strings.Repeat("what is this?", 1000)), "damaged"},
		{"a passphrase for a plain backup", "", "secret", plain, "not an encrypted backup"},
		{"no passphrase", "", "", []byte("age-encryption.org/v1\n-> scrypt"), "is encrypted"},
	} {
		dir := tt.dir
		if dir == "" {
			dir = filepath.Join(t.TempDir(), "data")
		}
		_, err := store.Restore(t.Context(), bytes.NewReader(tt.in), dir, tt.passphrase)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := os.Stat(dir); tt.dir == "" && !os.IsNotExist(err) {
			t.Errorf("%s: the folder is there", tt.name)
		}
		if tt.dir == "" && len(names(t, filepath.Dir(dir))) != 0 {
			t.Errorf("%s: something was left", tt.name)
		}
	}
}

func TestRestore_IntoEmptyFolders(t *testing.T) {
	t.Parallel()
	b := backup(t, filled(t), "")
	empty, mounted := t.TempDir(), t.TempDir()
	// A new file system's folder cannot be replaced, only filled.
	if err := os.Mkdir(filepath.Join(mounted, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, mounted} {
		if _, err := store.Restore(t.Context(), bytes.NewReader(b), dir, ""); err != nil {
			t.Fatal(err)
		}
		report, err := store.Verify(t.Context(), dir)
		if err != nil || !report.OK() {
			t.Errorf("%v %v", report, err)
		}
		if _, err := store.Restore(t.Context(), bytes.NewReader(b), dir, ""); !fault.Is(err, fault.Conflict) {
			t.Errorf("a second time: %v", err)
		}
	}
}

// A link to an empty folder, such as one on a larger disk, stays a link.
func TestRestore_FollowsALink(t *testing.T) {
	t.Parallel()
	b := backup(t, filled(t), "")
	folder, link := filepath.Join(t.TempDir(), "folder"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(folder, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(t.Context(), bytes.NewReader(b), link, ""); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != folder {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if report, err := store.Verify(t.Context(), folder); err != nil || !report.OK() {
		t.Errorf("%v %v", report, err)
	}
}

func TestBackup_TellsOfAFailingWriter(t *testing.T) {
	t.Parallel()
	db := filled(t)
	full := errors.New("no space")
	r, w := io.Pipe()
	r.CloseWithError(full)
	if _, err := db.Backup(t.Context(), w, store.BackupOptions{}); !errors.Is(err, full) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Backup(ctx, io.Discard, store.BackupOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := names(t, storetest.Dir(db)); len(n) > 5 {
		t.Errorf("in the data folder lies %v", n)
	}
}

var nobody account.Account // owns the built-in agents

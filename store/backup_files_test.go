package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
	"agentsite/store/engine"
)

// A backup holds every file that the messages in it hold, whatever is sent and
// deleted meanwhile, and a restore brings all of them back.
func TestBackup_FilesWhileWritten(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	lasting := send(t, db, ada, "lasting")
	if _, err := db.Append(t.Context(), holding(c, ada, lasting)); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	rounds := make(chan struct{}, 1000)
	for w := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				hash, err := trySend(db, ada, strings.Repeat(fmt.Sprint("file ", w, "/", i%20, " "), 50))
				if err != nil {
					t.Error(err)
					return
				}
				done, err := db.Append(context.Background(), holding(c, ada, hash))
				if fault.Is(err, fault.NotFound) { // it was dropped in between
					continue
				}
				if err == nil {
					_, err = db.Amend(context.Background(), by(c, ada, chat.Unsaid, done.Message.Seq, ""), true)
				}
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case rounds <- struct{}{}:
				default:
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Much earlier than a portal would.
			if _, err := db.DropFiles(context.Background(), clock.Now().Add(-time.Millisecond), 5); err != nil {
				t.Error(err)
				return
			}
			if _, err := db.SweepBlobs(context.Background(), time.Now().Add(-5*time.Second)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	held := 0
	for range 5 {
		for range 20 {
			<-rounds
		}
		b := backup(t, db, "")
		dir := filepath.Join(t.TempDir(), "restored")
		r, err := store.Restore(t.Context(), bytes.NewReader(b), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		held = max(held, r.Files)
		again := storetest.OpenOn(t, dir, "")
		storetest.Sound(t, again)
		if openBackup(t, again, lasting) != "lasting" {
			t.Error("the lasting file is another one")
		}
		if n := len(blobFiles(t, dir)); n != r.Files {
			t.Errorf("%d blobs for %d files", n, r.Files)
		}
	}
	close(stop)
	wg.Wait()
	if held < 2 {
		t.Error("no backup met a file that comes and goes")
	}
	storetest.Sound(t, db)
}

// Of a file in a backup, too, every bit counts.
func TestVerifyBackup_FindsDamagedFiles(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	content := strings.Repeat("content of a file ", 100)
	hash := send(t, db, ada, content)
	if _, err := db.Append(t.Context(), holding(c, ada, hash, send(t, db, ada, "another"))); err != nil {
		t.Fatal(err)
	}
	b := backup(t, db, "")
	at := bytes.Index(b, []byte(content))
	if at < 0 {
		t.Fatal("the file is not in the backup")
	}
	for _, i := range []int{at, at + len(content) - 1, at - 512, at - 500, at + len(content)} {
		bad := bytes.Clone(b)
		bad[i] ^= 1
		if _, err := store.VerifyBackup(t.Context(), bytes.NewReader(bad), ""); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("byte %d: %v", i-at, err)
		}
	}
	mounted := t.TempDir()
	if err := os.Mkdir(filepath.Join(mounted, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(t.Context(), bytes.NewReader(b), mounted, ""); err != nil {
		t.Fatal(err)
	}
	if list := blobFiles(t, mounted); len(list) != 2 {
		t.Errorf("restored %v", list)
	}
	// Damage of the portal's own files is found before it is backed up.
	path := filepath.Join(storetest.Dir(db), "files", hash[:2], hash)
	damages := []func() error{
		func() error { return os.WriteFile(path, []byte(strings.ToUpper(content)), 0o600) },
		func() error { return os.Truncate(path, 5) },
		func() error { return os.Remove(path) },
	}
	if storetest.OnPostgres() {
		exec := func(query string) func() error {
			return func() error {
				return db.Write(t.Context(), func(w engine.Tx) error {
					_, err := w.Exec(query, hash)
					return err
				})
			}
		}
		const ofBlob = ` WHERE blob_id = (SELECT blob_id FROM blobs WHERE hash = ?)`
		damages = []func() error{
			exec(`UPDATE blob_parts SET bytes = CAST(upper(encode(bytes, 'escape')) AS bytea)` + ofBlob),
			exec(`UPDATE blob_parts SET bytes = substr(bytes, 1, 5)` + ofBlob),
			exec(`DELETE FROM blob_parts` + ofBlob),
		}
	}
	for _, damage := range damages {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		r, err := db.Verify(t.Context())
		if err != nil || len(r.Faults) != 1 || !strings.Contains(r.Faults[0], hash) {
			t.Errorf("%+v %v", r, err)
		}
		var out bytes.Buffer
		if _, err := db.Backup(t.Context(), &out, store.BackupOptions{}); err == nil || out.Len() > 0 {
			t.Error("backed up")
		}
	}
	// Sent again, it is whole again.
	if send(t, db, ada, content) != hash {
		t.Error("another hash")
	}
	storetest.Sound(t, db)
}

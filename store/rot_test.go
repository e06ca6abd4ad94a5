package store_test

import (
	"bytes"
	"database/sql"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
	"agentsite/store/sqlite"
)

// transcripts is what the hash chains answer for: everything but the handle a
// sender had, and the reason. It is read without any check.
func transcripts(path string) (string, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&immutable=1")
	if err != nil {
		return "", err
	}
	defer db.Close()
	var all sql.NullString
	err = db.QueryRow(`SELECT group_concat(concat_ws(' ', conversation_id, seq, id, sender_kind, sender_id, kind, body, task_id, task_state, created_at), x'0a' ORDER BY conversation_id, seq) FROM messages`).Scan(&all)
	return all.String, err
}

// 300 bits flipped in a closed database, one at a time: each is found, or it
// was in nothing that anybody reads in a transcript. (SQLite's integrity_check
// alone misses about a quarter of them.)
func TestVerify_BitRot(t *testing.T) {
	storetest.SkipOnPostgres(t)
	racetest.Skip(t)
	t.Parallel()
	db := filled(t)
	dir := storetest.Dir(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, sqlite.FileName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := transcripts(path)
	if err != nil || strings.Count(want, "question") != 30 {
		t.Fatal(want, err)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	// Where texts stand, some of them in rows and some in what was left when
	// SQLite moved a row to another page.
	text := []byte("an answer of some length")
	var said []int
	for at := 0; ; at++ {
		i := bytes.Index(whole[at:], text)
		if i < 0 {
			break
		}
		at += i
		said = append(said, at)
	}
	if len(said) < 30 {
		t.Fatalf("%d texts in the file", len(said))
	}
	flips := 75
	if os.Getenv("AGENTSITE_TEST_FULL") != "" {
		flips = 300
	}
	found, harmless := 0, 0
	for i := range flips {
		bit := rnd.IntN(len(whole) * 8)
		if i%3 == 0 {
			bit = (said[rnd.IntN(len(said))]+rnd.IntN(len(text)))*8 + rnd.IntN(8)
		}
		bad := bytes.Clone(whole)
		bad[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := store.Verify(t.Context(), dir)
		if err != nil || !r.OK() {
			found++
			continue
		}
		harmless++
		if got, err := transcripts(path); err != nil || got != want {
			t.Errorf("bit %d of byte %d (seed %d): not found, and a transcript changed (%v)", bit%8, bit/8, seed, err)
		}
	}
	if found < flips/6 {
		t.Errorf("only %d of %d found (seed %d)", found, flips, seed)
	}
	t.Logf("%d found, %d changed no transcript", found, harmless)
}

package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/storetest"
	"agentsite/internal/transcript"
	"agentsite/store"
	"agentsite/store/engine"
	"agentsite/store/erasure"
	anchor "agentsite/store/transcripts"
)

var system = ident.Actor{Kind: ident.System}

// An erasure gives the person's entries new salts and leaves no name: not in the entries, not in events about the
// person; the chains verify. The name stays taken.
func TestErase_LeavesNoName(t *testing.T) {
	t.Parallel()
	for _, texts := range []bool{false, true} {
		db := storetest.New(t)
		ctx := t.Context()
		ann, bob := storetest.Account(t, db, "annabel"), storetest.Account(t, db, "bob")
		c := storetest.Conversation(t, db, bob)
		first := storetest.Say(t, db, c, bob, "hello")
		join(t, db, c, ann, chat.RoleMember, 0)
		said := storetest.Say(t, db, c, ann, "words of her")
		added := event(bob)
		added.Parts[0].Text = "bob added annabel, and annabel-2"
		if _, err := db.Leave(ctx, c.ID, "person", ann.ID, clock.Now(), added); err != nil {
			t.Fatal(err)
		}
		before := readChain(t, db, c.ID)
		if err := errors.Join(db.SetDisabled(ctx, ann.ID, clock.Now(), system),
			db.EraseAuthor(ctx, ann.ID, ann.Name, texts, system), db.EraseAccount(ctx, ann.ID, system)); err != nil {
			t.Fatal(err)
		}
		after := readChain(t, db, c.ID)
		for i, r := range before {
			if mine := r.SenderID == ann.ID; mine && (bytes.Equal(r.Salt, after[i].Salt) || after[i].SenderHandle != erasure.Handle) {
				t.Errorf("message %d: %+v", r.Seq, after[i])
			} else if r.Seq <= first.Message.Seq && !bytes.Equal(r.Salt, after[i].Salt) {
				t.Errorf("message %d got another salt", r.Seq)
			}
		}
		if got := strings.ReplaceAll(after[len(before)-1].Body, "annabel-2", ""); strings.Contains(got, "annabel") || got == "" {
			t.Errorf("the event is %q", got)
		}
		if gone := after[said.Message.Seq-1].Body == ""; gone != texts {
			t.Errorf("texts %v: the message is gone: %v", texts, gone)
		}
		if n := countReanchored(t, db, c.ID); n != 1 {
			t.Errorf("hashed anew %d times", n)
		}
		for _, column := range storetest.TablesHolding(t, storetest.Dir(db), "annabel") {
			if !strings.HasSuffix(column, "messages.body") { // annabel-2
				t.Errorf("the name is left in %s", column)
			}
		}
		if taken, err := db.NameTaken(ctx, "annabel"); err != nil || !taken {
			t.Error("the name is free", err)
		}
		again := account.Account{ID: ident.NewID(), Name: "annabel", PasswordHash: "x", CreatedAt: clock.Now()}
		if err := db.CreateAccount(ctx, again, ""); !fault.Is(err, fault.Conflict) {
			t.Error("the name was given to another account:", err)
		}
		if err := db.CreateAgents(ctx, []hub.Agent{{ID: ident.NewID(), Name: "annabel", Kind: hub.Builtin, Visibility: hub.Public, Version: 1}}); !fault.Is(err, fault.Conflict) {
			t.Error("the name was given to an agent:", err)
		}
		storetest.CheckStorage(t, db.DB)
		storetest.Sound(t, db)
	}
}

// readChain returns the rows of a conversation.
func readChain(t testing.TB, db *storetest.DB, conversationID string) []anchor.Row {
	t.Helper()
	var list []anchor.Row
	if err := db.List(context.Background(), &list, `SELECT seq, id, sender_kind, sender_id, sender_handle, kind, body, task_id, task_state, reason, target,
		created_at, gone_seq, body_hash, salt FROM messages WHERE conversation_id = ? ORDER BY seq`, conversationID); err != nil {
		t.Fatal(err)
	}
	return list
}

// makeOlder gives a conversation the chain that the releases before salts wrote.
func makeOlder(t testing.TB, db *storetest.DB, conversationID string) {
	t.Helper()
	list := readChain(t, db, conversationID)
	err := db.Write(context.Background(), func(tx engine.Tx) error {
		var head []byte
		for _, r := range list {
			if r.Salt = nil; r.GoneSeq > 0 {
				sum := sha256.Sum256([]byte(r.ID)) // of a deleted text
				r.BodyHash = sum[:]
			}
			head = transcript.Chain(head, r.Entry())
			if _, err := tx.Exec(`UPDATE messages SET salt = ?, body_hash = ?, hash = ? WHERE conversation_id = ? AND seq = ?`,
				r.Salt, r.BodyHash, head, conversationID, r.Seq); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`UPDATE conversations SET head_hash = ? WHERE id = ?`, head, conversationID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// countReanchored returns the number of entries in the operators' log about a conversation that was hashed anew.
func countReanchored(t testing.TB, db *storetest.DB, conversationID string) (n int) {
	t.Helper()
	if err := db.Get(context.Background(), &n, `SELECT COUNT(*) FROM audit WHERE act = 'transcript.reanchor' AND subject = ?`, conversationID); err != nil {
		t.Fatal(err)
	}
	return n
}

// A deletion destroys the salt, so that no hash of the deleted text is left. It leaves the other hashes as they are.
func TestChain_DeletionDestroysTheSalt(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	first := storetest.Say(t, db, c, ada, "guessable")
	edited := amend(t, db, by(c, ada, chat.Edit, first.Message.Seq, "pin 1234"))
	storetest.Say(t, db, c, ada, "stays")
	before := readChain(t, db, c.ID)
	gone := amend(t, db, by(c, ada, chat.Unsaid, first.Message.Seq, ""))
	for _, r := range readChain(t, db, c.ID) {
		erased := r.Seq == first.Message.Seq || r.Seq == edited.Seq
		if got := transcript.Salt(r.Salt); got.Older() || got.IsDestroyed() != erased {
			t.Errorf("message %d has the salt %x", r.Seq, r.Salt)
		}
		if erased && !bytes.Equal(r.BodyHash, commit(before[r.Seq-1])) {
			t.Errorf("message %d lost its commitment", r.Seq)
		}
	}
	if n := countReanchored(t, db, c.ID); n != 0 {
		t.Errorf("hashed anew %d times", n)
	}
	var head []byte
	if err := db.Get(t.Context(), &head, `SELECT head_hash FROM conversations WHERE id = ?`, c.ID); err != nil || !bytes.Equal(head, gone.Hash) {
		t.Errorf("%x %x %v", head, gone.Hash, err)
	}
	storetest.Sound(t, db)
}

func commit(r anchor.Row) []byte {
	e := r.Entry()
	return e.Commit()
}

// A deletion in a conversation without salts hashes it anew, once, and says so in the operators' log. No unsalted hash
// of a deleted text is left, of this deletion and of earlier ones.
func TestChain_DeletionInAnOlderChain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	for i := range 300 { // more than a page
		storetest.Say(t, db, c, ada, fmt.Sprint("text ", i))
	}
	amend(t, db, by(c, ada, chat.Unsaid, 1, ""))
	makeOlder(t, db, c.ID)
	storetest.Sound(t, db)
	before := readChain(t, db, c.ID)
	last := amend(t, db, by(c, ada, chat.Unsaid, 2, ""))
	after := readChain(t, db, c.ID)
	for i, r := range after {
		if salt := transcript.Salt(r.Salt); salt.Older() || salt.IsDestroyed() != (r.GoneSeq > 0) {
			t.Errorf("message %d has the salt %x", r.Seq, r.Salt)
		}
		if i < 2 && (bytes.Equal(r.BodyHash, before[i].BodyHash) || bytes.Equal(r.BodyHash, commit(before[i]))) {
			t.Errorf("the hash of the deleted text of message %d is left", r.Seq)
		}
	}
	amend(t, db, by(c, ada, chat.Unsaid, 3, ""))
	if n := countReanchored(t, db, c.ID); n != 1 {
		t.Errorf("hashed anew %d times", n)
	}
	var hash []byte
	if err := db.Get(t.Context(), &hash, `SELECT hash FROM messages WHERE conversation_id = ? AND seq = ?`, c.ID, last.Seq); err != nil || !bytes.Equal(hash, last.Hash) {
		t.Errorf("%x %x %v", hash, last.Hash, err)
	}
	storetest.Sound(t, db)
}

// However messages are said, edited and deleted, with and without salts, the chain verifies, and no change of a stored
// message goes unseen.
func TestChain_VerifiesAfterAnything(t *testing.T) {
	t.Parallel()
	racetest.Skip(t)
	rapid.Check(t, func(rt *rapid.T) {
		db := storetest.New(t)
		defer db.Close()
		ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
		c := storetest.Conversation(t, db, ada)
		join(t, db, c, bob, chat.RoleMember, 0)
		said := []int64{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			author := ada
			if rapid.Bool().Draw(rt, "bob") {
				author = bob
			}
			switch step := rapid.SampledFrom([]string{"say", "say", "edit", "delete", "age", "erase"}).Draw(rt, "step"); {
			case step == "age":
				makeOlder(t, db, c.ID)
			case step == "erase": // The author may go on: the store does not know that the account is gone.
				if err := db.EraseAuthor(t.Context(), author.ID, author.Name, rapid.Bool().Draw(rt, "texts"), system); err != nil {
					t.Fatal(err)
				}
				said = nil
				for _, r := range readChain(t, db, c.ID) {
					if r.SenderID == author.ID && r.SenderHandle != erasure.Handle {
						rt.Fatalf("message %d names the author: %q", r.Seq, r.SenderHandle)
					}
					if r.Kind == "text" && r.GoneSeq == 0 {
						said = append(said, r.Seq)
					}
				}
			case step == "say" || len(said) == 0:
				said = append(said, storetest.Say(t, db, c, author, "something").Message.Seq)
			case step == "edit":
				amend(t, db, by(c, author, chat.Edit, rapid.SampledFrom(said).Draw(rt, "of"), "something else"))
			case step == "delete":
				i := rapid.IntRange(0, len(said)-1).Draw(rt, "of")
				amend(t, db, by(c, author, chat.Unsaid, said[i], ""))
				said = append(said[:i], said[i+1:]...)
			}
		}
		if r, err := db.Verify(t.Context()); err != nil || !r.OK() {
			rt.Fatal(r.Faults, err)
		}
		list := readChain(t, db, c.ID)
		r := rapid.SampledFrom(list).Draw(rt, "changed")
		change := rapid.SampledFrom([]string{`body = '[{"text":"forged"}]'`, `sender_handle = 'eve'`, `sender_id = 'eve'`,
			`salt = ` + emptySalt(), `body_hash = ` + emptyHash()}).Draw(rt, "change")
		deleted := r.GoneSeq > 0
		if !deleted && strings.HasPrefix(change, "body_hash") || deleted && strings.HasPrefix(change, "sender_handle") {
			return // The one means nothing for a message that stands, the other nothing once the salt is gone.
		}
		if err := db.Write(t.Context(), func(tx engine.Tx) error {
			_, err := tx.Exec(`UPDATE messages SET `+change+` WHERE conversation_id = ? AND seq = ?`, c.ID, r.Seq)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if r, err := db.Verify(t.Context()); err != nil || r.OK() {
			rt.Fatalf("%s is not found: %v", change, err)
		}
	})
}

// emptySalt and emptyHash are literals of 16 and 32 zero bytes in the SQL of the engine.
func emptySalt() string { return zeros(16) }
func emptyHash() string { return zeros(32) }

func zeros(n int) string {
	if storetest.OnPostgres() {
		return `'\x` + strings.Repeat("00", n) + `'`
	}
	return fmt.Sprintf("zeroblob(%d)", n)
}

// A scrub that is in the middle of a conversation while it is hashed anew begins it again.
func TestScrub_WhileHashedAnew(t *testing.T) {
	t.Parallel()
	racetest.Skip(t)
	storetest.SkipOnPostgres(t)
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	for range 200 {
		storetest.Say(t, db, c, ada, "a text")
	}
	makeOlder(t, db, c.ID)
	for wait := 1; ; wait++ { // begin the erasure at each slice of a round
		s := store.NewScrub(db.DB, nil, 0, func(fault string) { t.Error(fault) })
		done, n := false, 0
		for ; !done; n++ {
			if n == wait {
				amend(t, db, by(c, ada, chat.Unsaid, int64(1+wait%200), ""))
			}
			var err error
			if done, err = s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		makeOlder(t, db, c.ID)
		if n < wait || wait == 199 {
			return
		}
	}
}

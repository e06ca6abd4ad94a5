package store

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/store/engine"
)

// The entries of the index that a search reads are those of the member's own rooms, however many other
// rooms have messages with the same words. Entries are counted, not time.
func TestSearchMessages_CostsWhatTheMemberHas(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	fill := func(person string, rooms int) (ids []string) {
		t.Helper()
		for range rooms {
			c := chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), Members: []chat.Member{{Kind: "person", ID: person, Handle: person, Role: chat.RoleOwner}}}
			said := []chat.Message{{ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: person, Handle: person}, Kind: chat.Text, CreatedAt: clock.Now(),
				Parts: []task.Part{task.TextPart("The invoice of the harbour, 北京, हिन्दी")}}}
			if err := d.Chat.CreateConversation(t.Context(), c, said, nil); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, c.ID)
		}
		for more := true; more; {
			var err error
			if more, err = d.Words.IndexWords(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return ids
	}
	if err := d.Write(t.Context(), func(t engine.Tx) error {
		_, err := t.Exec(`CREATE VIRTUAL TABLE terms USING fts5vocab (said_words, row)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	mine := fill("p1", 3)
	// entries counts the entries of all terms that begin with a room of the member and the word, as a search
	// with the word as a prefix reads them.
	entries := func(word string) (n int) {
		t.Helper()
		for _, id := range mine {
			from := strings.ToLower(id) + word
			var one int
			if err := d.Get(t.Context(), &one, `SELECT COALESCE(SUM(cnt), 0) FROM terms WHERE term >= ? AND term < ?`, from, from+"\U0010ffff"); err != nil {
				t.Fatal(err)
			}
			n += one
		}
		return n
	}
	words := []string{"inv", "invoice", "北", "हिन"}
	var before []int
	for _, w := range words {
		if before = append(before, entries(w)); before[len(before)-1] != 3 {
			t.Errorf("%q: %d entries of three rooms", w, before[len(before)-1])
		}
	}
	fill("p2", 500)
	for i, w := range words {
		if n := entries(w); n != before[i] {
			t.Errorf("%q: %d entries, %d before others wrote the same", w, n, before[i])
		}
		found, _, err := d.Chat.SearchMessages(t.Context(), "person", "p1", w, chat.Point{}, 50)
		if err != nil || len(found) != 3 {
			t.Errorf("%q: %d found, %v", w, len(found), err)
		}
	}
	// No term is shared between rooms: each begins with the id of one.
	var shared []string
	if err := d.List(t.Context(), &shared, `SELECT term FROM terms WHERE doc > 1 OR length(term) <= 26`); err != nil || len(shared) > 0 {
		t.Errorf("terms of several rooms: %q, %v", fmt.Sprint(shared), err)
	}
}

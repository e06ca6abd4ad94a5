package chat_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

// secret is a word that stands in nothing but the message that is deleted.
const secret = "wombatzephyr"

// A deleted message leaves its text in no table of the database, no backup and
// no name of a conversation, whatever happened to it before.
func TestUnsay_LeavesNoCopyOfTheText(t *testing.T) {
	t.Parallel()
	file := func(w *world, room string) chat.Message {
		d := w.draft("x")
		d.Parts = []task.Part{{Raw: []byte("some bytes"), Filename: secret + ".txt"}}
		return w.post(w.ada, room, d).Message
	}
	for name, say := range map[string]func(w *world, room string) chat.Message{
		"the first message": func(w *world, room string) chat.Message { return w.say(w.ada, room, "my "+secret).Message },
		"a long one": func(w *world, room string) chat.Message {
			return w.say(w.ada, room, secret+strings.Repeat(" and more", 50)).Message
		},
		"the name of a file": file,
		"one that was edited": func(w *world, room string) chat.Message {
			m := w.say(w.ada, room, secret).Message
			if _, err := w.Edit(t.Context(), w.ada, room, m.Seq, text("harmless")); err != nil {
				t.Fatal(err)
			}
			return m
		},
		"one that asked an agent": func(w *world, room string) chat.Message {
			m := w.say(w.ada, room, "@calc "+secret)
			w.answer(m.Tasks[0], "an answer")
			return m.Message
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			room := w.room(w.ada, "calc", "bob")
			m := say(w, room)
			w.say(w.bob, room, "harmless")
			for more := true; more; {
				var err error
				if more, err = w.db.IndexWords(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			dir := storetest.Dir(w.db)
			if len(storetest.TablesHolding(t, dir, secret)) == 0 {
				t.Fatal("the text is nowhere before it is deleted")
			}
			if _, err := w.DeleteMessage(t.Context(), w.ada, room, m.Seq); err != nil {
				t.Fatal(err)
			}
			// The index of the search is rewritten by and by, and before a backup.
			in := storetest.TablesHolding(t, dir, secret)
			if in = slices.DeleteFunc(in, func(s string) bool { return s == "said_words_data.block" }); len(in) > 0 {
				t.Errorf("the text is still in %q", in)
			}
			var copied bytes.Buffer
			if _, err := w.db.Backup(t.Context(), &copied, store.BackupOptions{App: "test"}); err != nil {
				t.Fatal(err)
			}
			if in := storetest.TablesHolding(t, dir, secret); len(in) > 0 {
				t.Errorf("after a backup the text is still in %q", in)
			}
			restored := filepath.Join(t.TempDir(), "restored")
			if _, err := store.Restore(t.Context(), &copied, restored, ""); err != nil {
				t.Fatal(err)
			}
			if in := storetest.TablesHolding(t, restored, secret); len(in) > 0 {
				t.Errorf("the text is still in %q of a backup", in)
			}
			if got := w.title(room); got != "" {
				t.Errorf("the conversation is called %q", got)
			}
			w.say(w.ada, room, "another subject")
			if got := w.title(room); got != "another subject" {
				t.Errorf("after the next message it is called %q", got)
			}
			storetest.Sound(t, w.db)
		})
	}
}

func (w *world) title(room string) string {
	w.t.Helper()
	c, err := w.Get(w.t.Context(), w.ada, room)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Title
}

// A name that a person gave stays when a message is deleted.
func TestUnsay_KeepsTheNameThatAPersonGave(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada)
	m := w.say(w.ada, room, "hello").Message
	other := w.say(w.ada, room, "more").Message
	if _, err := w.Rename(t.Context(), w.ada, room, "Our plans"); err != nil {
		t.Fatal(err)
	}
	for _, seq := range []int64{m.Seq, other.Seq} {
		if _, err := w.DeleteMessage(t.Context(), w.ada, room, seq); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.title(room); got != "Our plans" {
		t.Errorf("the conversation is called %q", got)
	}
}

// The title of a branch is a text in it, and goes when that text is deleted.
func TestUnsay_InABranch(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada)
	m := w.say(w.ada, room, "my "+secret).Message
	w.set(room, chat.Change{Past: ptr(chat.PastNothing)})
	if _, err := w.Invite(t.Context(), w.ada, room, "bob"); err != nil {
		t.Fatal(err)
	}
	last := w.say(w.ada, room, "harmless").Message
	// A member that may not read the message gets a branch without its text as title.
	if late, err := w.Branch(t.Context(), w.bob, room, last.Seq); err != nil || late.Title != "" {
		t.Errorf("%q %v", late.Title, err)
	}
	copied, err := w.Branch(t.Context(), w.ada, room, m.Seq)
	if err != nil || copied.Title != "Branch of my "+secret {
		t.Fatalf("%q %v", copied.Title, err)
	}
	again, err := w.Branch(t.Context(), w.ada, copied.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{room, copied.ID, again.ID} {
		if _, err := w.DeleteMessage(t.Context(), w.ada, id, 1); err != nil {
			t.Fatal(err)
		}
	}
	if in := storetest.TablesHolding(t, storetest.Dir(w.db), secret); len(in) > 0 {
		t.Errorf("the text is still in %q", in)
	}
}

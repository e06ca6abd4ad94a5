package chat_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func TestEdit_OwnTextsOnlyAndWithTrace(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "bob")
	first := w.say(w.ada, room, "@calc frist").Message
	w.ends(room, "What?")
	answer := w.last(room)
	m, err := w.Edit(t.Context(), w.ada, room, first.Seq, text("@guide first"))
	if err != nil || task.PlainText(m.Parts) != "@guide first" || m.Now.EditSeq == 0 || m.Seq != first.Seq {
		t.Fatalf("%+v %v", m, err)
	}
	if n := w.active(room); len(n) != 0 {
		t.Errorf("an edit asks %q", names(n))
	}
	before := len(w.messages(room))
	if m, err = w.Edit(t.Context(), w.ada, room, first.Seq, text("@guide first")); err != nil || len(w.messages(room)) != before {
		t.Error("the same once more is a change", err)
	}
	edits, _, err := w.Edits(t.Context(), w.bob, room, first.Seq, 0)
	if err != nil || len(edits) != 2 || task.PlainText(edits[0].Parts) != "@calc frist" {
		t.Errorf("%+v %v", edits, err)
	}
	edit := func(who ident.Actor, seq int64, s string) error {
		_, err := w.Edit(t.Context(), who, room, seq, text(s))
		return err
	}
	kind(t, "somebody else's", edit(w.bob, first.Seq, "x"), fault.Forbidden)
	kind(t, "an agent's", edit(w.ada, answer.Seq, "x"), fault.Forbidden)
	kind(t, "a stranger", edit(w.eve, first.Seq, "x"), fault.NotFound)
	kind(t, "an absent one", edit(w.ada, 99, "x"), fault.NotFound)
	kind(t, "nothing", edit(w.ada, first.Seq, "  "), fault.Invalid)
	kind(t, "too much", edit(w.ada, first.Seq, strings.Repeat("x", chat.MaxTextBytes+1)), fault.Invalid)
	if _, err := w.DeleteMessage(t.Context(), w.ada, room, first.Seq); err != nil {
		t.Fatal(err)
	}
	kind(t, "one that was taken away", edit(w.ada, first.Seq, "x"), fault.Conflict)
	if edits, _, err = w.Edits(t.Context(), w.bob, room, first.Seq, 0); err != nil || len(edits) != 1 || len(edits[0].Parts) != 0 {
		t.Errorf("what was taken away is readable: %+v %v", edits, err)
	}
	storetest.Sound(t, w.db)
}

func TestUnsay_OwnOrAnyAsOwnerAndStopsWork(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "bob")
	root := w.say(w.bob, room, "@guide go")
	w.answer(root.Tasks[0], "@calc 1+1")
	chained := w.active(room)[0]
	other := w.say(w.ada, room, "@guide unrelated").Tasks[0]
	adas := w.say(w.ada, room, "mine").Message
	_, err := w.DeleteMessage(t.Context(), w.bob, room, adas.Seq)
	kind(t, "somebody else's", err, fault.Forbidden)
	stop := func() {
		if err := w.Finish(t.Context(), chained, task.Result{State: task.Canceled, Reason: "Stopped."}); err != nil {
			t.Error(err)
		}
	}
	w.hands.running[chained.ID] = stop
	m, err := w.DeleteMessage(t.Context(), w.ada, room, root.Message.Seq)
	if err != nil || m.Now.UnsaidAt.IsZero() || len(m.Parts) != 0 || m.Now.UnsaidBy != "ada" {
		t.Fatalf("%+v %v", m, err)
	}
	if w.task(chained.ID).State != task.Canceled || w.task(other.ID).State != task.Submitted {
		t.Error("the wrong work was stopped")
	}
	before := len(w.messages(room))
	if _, err := w.DeleteMessage(t.Context(), w.ada, room, root.Message.Seq); err != nil || len(w.messages(room)) != before {
		t.Error("taken away twice:", err)
	}
	_, err = w.DeleteMessage(t.Context(), w.ada, room, 99)
	kind(t, "absent", err, fault.NotFound)
	storetest.Sound(t, w.db)
}

func TestReact(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "bob")
	m := w.say(w.ada, room, "hello").Message
	react := func(who ident.Actor, emoji string, on bool) (chat.Message, error) {
		return w.React(t.Context(), who, room, m.Seq, emoji, on)
	}
	react(w.ada, "👍", true)
	got, err := react(w.bob, "👍", true)
	if err != nil || len(got.Now.Reactions) != 1 || len(got.Now.Reactions[0].By) != 2 {
		t.Fatalf("%+v %v", got.Now, err)
	}
	before := len(w.messages(room))
	if _, err := react(w.bob, "👍", true); err != nil || len(w.messages(room)) != before {
		t.Error("set twice", err)
	}
	if got, err = react(w.bob, "👍", false); err != nil || len(got.Now.Reactions[0].By) != 1 {
		t.Errorf("%+v %v", got.Now, err)
	}
	_, err = react(w.ada, "yes", true)
	kind(t, "a word", err, fault.Invalid)
	_, err = react(w.eve, "👍", true)
	kind(t, "a stranger", err, fault.NotFound)
	full := []string{"😀", "😁", "😂", "😃", "😄", "😅", "😆", "😇", "😈", "😉", "😊", "😋", "😌", "😍", "😎", "😏", "😐", "😑", "😒"}
	for _, e := range full {
		if _, err := react(w.ada, e, true); err != nil {
			t.Fatal(err)
		}
	}
	_, err = react(w.ada, "🎉", true)
	kind(t, "too many", err, fault.Conflict)
	storetest.Sound(t, w.db)
}

func TestAgain_ReplacesTheAnswer(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "guide", "bob")
	asked := w.say(w.ada, room, "@calc 1+1")
	w.answer(asked.Tasks[0], "3")
	first := w.last(room)
	k, err := w.Regenerate(t.Context(), w.bob, room, first.Seq, "api")
	if err != nil || k.MessageSeq != asked.Message.Seq || k.Replaces != first.Seq || k.CallerID != w.bob.ID || k.ID == asked.Tasks[0].ID {
		t.Fatalf("%+v %v", k, err)
	}
	if w.book.calls[w.bob.ID+" calc"] != 1 {
		t.Error("it is not counted")
	}
	w.answer(k, "2")
	second := w.last(room)
	old, err := w.Message(t.Context(), w.ada, room, first.Seq)
	if err != nil || old.Now.NewerSeq != second.Seq || second.Target != first.Seq {
		t.Errorf("%+v %+v %v", old, second, err)
	}
	// One that fails takes no place.
	if k, err = w.Regenerate(t.Context(), w.ada, room, first.Seq, "api"); err != nil || k.Replaces != second.Seq {
		t.Fatalf("%+v %v", k, err)
	}
	if err := w.Finish(t.Context(), k, task.Result{State: task.Failed, Parts: text("hm"), Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	if m, _ := w.Message(t.Context(), w.ada, room, second.Seq); m.Now.NewerSeq != 0 {
		t.Error("a failure took the place of an answer")
	}
	again := func(who ident.Actor, seq int64) error {
		_, err := w.Regenerate(t.Context(), who, room, seq, "api")
		return err
	}
	kind(t, "a person's message", again(w.ada, asked.Message.Seq), fault.Conflict)
	kind(t, "a stranger", again(w.eve, first.Seq), fault.NotFound)
	kind(t, "absent", again(w.ada, 99), fault.NotFound)
	if err := w.SetRole(t.Context(), w.ada, room, "bob", chat.RoleReader); err != nil {
		t.Fatal(err)
	}
	kind(t, "a reader", again(w.bob, first.Seq), fault.Forbidden)
	if err := w.Remove(t.Context(), w.ada, room, "calc"); err != nil {
		t.Fatal(err)
	}
	kind(t, "an agent that left", again(w.ada, first.Seq), fault.Conflict)
	storetest.Sound(t, w.db)
}

func TestAgain_StopsWhatIsStillAtIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		room := w.room(w.ada, "calc")
		asked := w.say(w.ada, room, "1+1")
		w.answer(asked.Tasks[0], "3")
		first := w.last(room)
		running, err := w.Regenerate(t.Context(), w.ada, room, first.Seq, "api")
		if err != nil {
			t.Fatal(err)
		}
		w.hands.running[running.ID] = func() { // ends a moment later, as drivers do
			go func() {
				time.Sleep(300 * time.Millisecond)
				if err := w.Finish(t.Context(), running, task.Result{State: task.Canceled, Parts: text("half an ans"), Reason: "Stopped."}); err != nil {
					t.Error(err)
				}
			}()
		}
		k, err := w.Regenerate(t.Context(), w.ada, room, first.Seq, "api")
		if err != nil || w.task(running.ID).State != task.Canceled || k.Replaces != first.Seq {
			t.Errorf("%+v %v; the other is %s", k, err, w.task(running.ID).State)
		}
		if n := w.active(room); len(n) != 1 || n[0].ID != k.ID {
			t.Errorf("%d are at it", len(n))
		}
	})
}

func TestBranch_IsAPrivateCopyOfWhatOneSees(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "keeper", "bob")
	w.say(w.ada, room, "hello all")
	w.set(room, chat.Change{Past: ptr(chat.PastNothing), Title: ptr("Plans")})
	w.book.only["keeper"] = w.ada.ID
	if _, err := w.Invite(t.Context(), w.ada, room, "eve"); err != nil {
		t.Fatal(err)
	}
	one := w.say(w.ada, room, "for eve, too").Message
	gone := w.say(w.ada, room, "oops").Message
	w.answer(w.say(w.bob, room, "@calc 1").Tasks[0], "1!")
	answer := w.last(room)
	d := w.draft("thanks")
	d.Quotes, d.To = answer.Seq, "nobody"
	thanks := w.post(w.eve, room, d).Message
	w.say(w.ada, room, "later")
	if _, err := w.DeleteMessage(t.Context(), w.ada, room, gone.Seq); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Edit(t.Context(), w.ada, room, one.Seq, text("for eve")); err != nil {
		t.Fatal(err)
	}
	c, err := w.Branch(t.Context(), w.eve, room, thanks.Seq)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Members) != 2 || c.Members[0].Handle != "eve" && c.Members[1].Handle != "eve" || c.BranchedFrom != room || c.BranchedSeq != thanks.Seq || !strings.Contains(c.Title, "Plans") {
		t.Errorf("%+v", c)
	}
	var got []string
	ids := make(map[string]bool)
	for _, m := range w.messages(room) {
		ids[m.ID] = true
	}
	var last chat.Message
	for _, m := range w.messages(c.ID) {
		if ids[m.ID] {
			t.Errorf("message %s is in both", m.ID)
		}
		if m.Kind == chat.Text {
			got, last = append(got, m.Sender.Handle+": "+task.PlainText(m.Parts)), m
		}
	}
	if s := strings.Join(got, "; "); s != "ada: for eve; bob: @calc 1; calc: 1!; eve: thanks" || last.Target != 3 {
		t.Errorf("%q, the last quotes %d", s, last.Target)
	}
	if got := w.heard(w.say(w.eve, c.ID, "go on").Tasks[0]); !strings.HasSuffix(got, "eve: thanks") {
		t.Errorf("its agent hears %q", got)
	}
	_, err = w.Branch(t.Context(), w.eve, room, 1)
	kind(t, "from before one came", err, fault.NotFound)
	_, err = w.Branch(t.Context(), guest(), room, 1)
	kind(t, "a stranger", err, fault.NotFound)
	storetest.Sound(t, w.db)
}

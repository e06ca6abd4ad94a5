package chat_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func (w *world) link(who ident.Actor, room string, d chat.LinkDraft) (chat.Link, string) {
	w.t.Helper()
	l, secret, err := w.NewLink(w.t.Context(), who, room, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return l, secret
}

func TestJoinByLink(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc")
	w.say(w.ada, room, "before")
	w.set(room, chat.Change{Past: ptr(chat.PastNothing)})
	l, secret := w.link(w.ada, room, chat.LinkDraft{Kind: chat.JoinLink, Role: chat.RoleReader, MaxUses: 1})
	if e := w.last(room); !strings.Contains(task.PlainText(e.Parts), "made a link") || strings.Contains(task.PlainText(e.Parts), secret) {
		t.Errorf("%+v", e)
	}
	in, err := w.Invitation(t.Context(), w.bob, secret)
	if err != nil || in.Inviter != "ada" || in.Role != chat.RoleReader || in.Past != chat.PastNothing || in.Member || in.ConversationID != room {
		t.Errorf("%+v %v", in, err)
	}
	_, err = w.Invitation(t.Context(), guest(), secret)
	kind(t, "a guest looks", err, fault.Unauthenticated)
	_, err = w.JoinByLink(t.Context(), guest(), secret)
	kind(t, "a guest joins", err, fault.Unauthenticated)
	c, err := w.JoinByLink(t.Context(), w.bob, secret)
	if err != nil || c.Mine.Role != chat.RoleReader {
		t.Fatalf("%+v %v", c, err)
	}
	list, _, err := w.Messages(t.Context(), w.bob, room, chat.Span{Limit: 100})
	if err != nil || slices.ContainsFunc(list, func(m chat.Message) bool { return task.PlainText(m.Parts) == "before" }) {
		t.Errorf("who joined sees the past: %+v %v", list, err)
	}
	before := len(w.messages(room))
	if c, err = w.JoinByLink(t.Context(), w.ada, secret); err == nil || c.ID != "" {
		t.Error("a used link lets in", err) // it has no uses left, not even for members
	}
	_, err = w.JoinByLink(t.Context(), w.eve, secret)
	kind(t, "no uses left", err, fault.NotFound)
	if len(w.messages(room)) != before {
		t.Error("nothing happened, and something was said")
	}
	l, secret = w.link(w.ada, room, chat.LinkDraft{Kind: chat.JoinLink})
	if _, err = w.JoinByLink(t.Context(), w.bob, secret); err != nil {
		t.Error("a member again:", err)
	}
	kind(t, "somebody else ends it", w.DropLink(t.Context(), w.bob, room, l.ID), fault.NotFound)
	kind(t, "its owner ends it", w.DropLink(t.Context(), w.ada, room, l.ID), "")
	_, absent := w.JoinByLink(t.Context(), w.eve, "agsj_nothing")
	_, ended := w.JoinByLink(t.Context(), w.eve, secret)
	if !fault.Is(absent, fault.NotFound) || ended.Error() != absent.Error() {
		t.Errorf("%v; %v", absent, ended)
	}
	_, read := w.link(w.ada, room, chat.LinkDraft{Kind: chat.ReadLink})
	_, err = w.JoinByLink(t.Context(), w.eve, read)
	kind(t, "a read link lets in", err, fault.NotFound)
	storetest.Sound(t, w.db)
}

func TestNewLink_WhoMay(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "calc", "bob")
	make := func(who ident.Actor, d chat.LinkDraft) error {
		_, _, err := w.NewLink(t.Context(), who, room, d)
		return err
	}
	join, read := chat.LinkDraft{Kind: chat.JoinLink}, chat.LinkDraft{Kind: chat.ReadLink}
	kind(t, "a member lets people in", make(w.bob, join), fault.Forbidden)
	kind(t, "a member shares", make(w.bob, read), "")
	kind(t, "a stranger", make(w.eve, read), fault.NotFound)
	kind(t, "a guest", make(guest(), read), fault.Unauthenticated)
	for what, d := range map[string]chat.LinkDraft{"kind": {Kind: "x"}, "role": {Kind: chat.JoinLink, Role: chat.RoleOwner}, "uses": {Kind: chat.JoinLink, MaxUses: -1},
		"life": {Kind: chat.JoinLink, Life: chat.MaxLinkLife + 1}, "negative": {Kind: chat.JoinLink, Life: -time.Hour}} {
		kind(t, what, make(w.ada, d), fault.Invalid)
	}
	if list, err := w.Links(t.Context(), w.ada, room); err != nil || len(list) != 1 || list[0].Creator.Handle != "bob" {
		t.Error(list, err)
	}
	w.link(w.ada, room, join)
	if list, err := w.Links(t.Context(), w.bob, room); err != nil || len(list) != 1 {
		t.Error("a member sees others' links:", list, err)
	}
	for range chat.MaxLinks - 2 {
		w.link(w.ada, room, join)
	}
	kind(t, "too many", make(w.ada, join), fault.Conflict)
	// The links of who leaves end.
	_, secret := func() (chat.Link, string) {
		list, _ := w.Links(t.Context(), w.ada, room)
		w.DropLink(t.Context(), w.ada, room, list[len(list)-1].ID)
		return w.link(w.bob, room, read)
	}()
	if _, err := w.Shared(t.Context(), secret, 0, 10); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(t.Context(), w.ada, room, "bob"); err != nil {
		t.Fatal(err)
	}
	_, err := w.Shared(t.Context(), secret, 0, 10)
	kind(t, "of somebody who was removed", err, fault.NotFound)
}

func TestShared_ShowsWhatItsMakerSawThen(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "bob")
	f, g := w.put(w.ada, "a.txt", []byte("a")), w.put(w.ada, "b.txt", []byte("b"))
	w.post(w.ada, room, w.with("a secret", g))
	w.set(room, chat.Change{Past: ptr(chat.PastNothing)})
	if _, err := w.Invite(t.Context(), w.ada, room, "eve"); err != nil {
		t.Fatal(err)
	}
	m := w.post(w.ada, room, w.with("look", f)).Message
	if _, err := w.React(t.Context(), w.bob, room, m.Seq, "👍", true); err != nil {
		t.Fatal(err)
	}
	_, secret := w.link(w.eve, room, chat.LinkDraft{Kind: chat.ReadLink})
	later := w.put(w.ada, "c.txt", []byte("c"))
	w.post(w.ada, room, w.with("later", later))
	if _, err := w.Edit(t.Context(), w.ada, room, m.Seq, append([]task.Part{task.TextPart("look, and more")}, m.Parts[1:]...)); err != nil {
		t.Fatal(err)
	}
	got, err := w.Shared(t.Context(), secret, 0, 100)
	if err != nil || got.By != "eve" {
		t.Fatalf("%+v %v", got, err)
	}
	var said []string
	for _, m := range got.Messages {
		if m.Kind == chat.Text {
			said = append(said, m.Parts[0].Text)
		}
	}
	if s := strings.Join(said, "; "); s != "look" || got.EarlierSeq != 0 {
		t.Errorf("%q, %d", s, got.EarlierSeq)
	}
	page, err := w.Shared(t.Context(), secret, 0, 2)
	if err != nil || page.EarlierSeq == 0 {
		t.Errorf("%+v %v", page, err)
	}
	if page, err = w.Shared(t.Context(), secret, page.EarlierSeq, 2); err != nil || len(page.Messages) == 0 || page.EarlierSeq != 0 {
		t.Errorf("%+v %v", page, err)
	}
	_, r, err := w.Files.OpenShared(t.Context(), secret, f.Hash)
	if err != nil || checkRead(r) != "a" {
		t.Error(err)
	}
	for what, hash := range map[string]string{"from before": g.Hash, "from later": later.Hash, "none": "x"} {
		_, _, err := w.Files.OpenShared(t.Context(), secret, hash)
		kind(t, what, err, fault.NotFound)
		_, err = w.Files.PreviewShared(t.Context(), secret, hash)
		kind(t, what, err, fault.NotFound)
	}
	if _, err := w.DeleteMessage(t.Context(), w.ada, room, m.Seq); err != nil {
		t.Fatal(err)
	}
	if got, err = w.Shared(t.Context(), secret, 0, 100); err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Messages {
		if strings.Contains(task.PlainText(m.Parts), "look") {
			t.Error("what was taken away is shared")
		}
	}
	_, err = w.Shared(t.Context(), secret, 0, 0)
	kind(t, "limit", err, fault.Invalid)
	_, err = w.Shared(t.Context(), "", 0, 10)
	kind(t, "no secret", err, fault.NotFound)
}

// removing removes bob before each invitation and link is stored, after the service has seen him as a member.
type removing struct {
	*storetest.DB
	remove func()
}

func (r *removing) InvitePerson(ctx context.Context, id string, in chat.Invitees, joined, invited chat.Message) (chat.Member, chat.Message, error) {
	r.remove()
	return r.DB.InvitePerson(ctx, id, in, joined, invited)
}

func (r *removing) PutLink(ctx context.Context, l chat.Link, secretHash string) error {
	r.remove()
	return r.DB.PutLink(ctx, l, secretHash)
}

// A member who is removed at the same moment leaves neither an invitation nor a link behind.
func TestRemove_WinsAgainstInvitationsAndLinks(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.stranger("cleo")
	for _, person := range []string{"cleo", "eve"} { // one is invited, the other would be added
		room := w.room(w.ada, "bob")
		late := &removing{w.db, func() {
			if err := w.Remove(t.Context(), w.ada, room, "bob"); err != nil {
				t.Error(err)
			}
		}}
		_, err := chat.New(late, w.book, w.hands, chat.Config{Portal: "home.example"}).Invite(t.Context(), w.bob, room, person)
		kind(t, person, err, fault.NotFound)
		if c, err := w.Get(t.Context(), w.ada, room); err != nil || len(c.Members) != 1 || len(c.Invited) != 0 {
			t.Errorf("%+v %v", c, err)
		}
	}
	room := w.room(w.ada, "bob")
	late := &removing{w.db, func() { _ = w.Remove(t.Context(), w.ada, room, "bob") }}
	kind(t, "a link", third(chat.New(late, w.book, w.hands, chat.Config{Portal: "home.example"}).
		NewLink(t.Context(), w.bob, room, chat.LinkDraft{Kind: chat.ReadLink})), fault.NotFound)
	if list, err := w.Links(t.Context(), w.ada, room); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}

func TestNewLink_RacesKeepTheBound(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada)
	var all sync.WaitGroup
	for range 3 * chat.MaxLinks {
		all.Go(func() { _, _, _ = w.NewLink(t.Context(), w.ada, room, chat.LinkDraft{Kind: chat.ReadLink}) })
	}
	all.Wait()
	if list, err := w.Links(t.Context(), w.ada, room); err != nil || len(list) != chat.MaxLinks {
		t.Errorf("%d links, %v", len(list), err)
	}
}

// A link lets nobody undo what an owner decided about them.
func TestJoinByLink_IsNoWayBack(t *testing.T) {
	t.Parallel()
	w := open(t)
	room := w.room(w.ada, "bob", "eve")
	_, secret := w.link(w.ada, room, chat.LinkDraft{Kind: chat.JoinLink})
	if err := w.SetRole(t.Context(), w.ada, room, "bob", chat.RoleReader); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteConversation(t.Context(), w.bob, room); err != nil {
		t.Fatal(err)
	}
	if c, err := w.JoinByLink(t.Context(), w.bob, secret); err != nil || c.Mine.Role != chat.RoleReader {
		t.Errorf("a reader comes back as %q, %v", c.Mine.Role, err)
	}
	// Nor does an invitation of another member.
	if err := w.DeleteConversation(t.Context(), w.bob, room); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Invite(t.Context(), w.eve, room, "bob"); err != nil {
		t.Fatal(err)
	}
	if c, err := w.Contacts.Accept(t.Context(), w.bob, room); err != nil || c.Mine.Role != chat.RoleReader {
		t.Errorf("an invited reader comes back as %q, %v", c.Mine.Role, err)
	}
	if err := w.Remove(t.Context(), w.ada, room, "eve"); err != nil {
		t.Fatal(err)
	}
	_, err := w.JoinByLink(t.Context(), w.eve, secret)
	kind(t, "somebody who was removed", err, fault.NotFound)
	if list, err := w.Links(t.Context(), w.ada, room); err != nil || len(list) != 1 || list[0].Uses != 1 {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := w.Invite(t.Context(), w.ada, room, "eve"); err != nil {
		t.Error(err)
	}
	if err := w.DeleteConversation(t.Context(), w.eve, room); err != nil {
		t.Fatal(err)
	}
	if c, err := w.JoinByLink(t.Context(), w.eve, secret); err != nil || c.Mine.Role != chat.RoleMember {
		t.Errorf("somebody who left by themselves: %q, %v", c.Mine.Role, err)
	}
}

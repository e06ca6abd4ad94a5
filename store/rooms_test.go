package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

func roomsOf(t testing.TB, db *storetest.DB, who account.Account, f chat.RoomFilter) []chat.Conversation {
	t.Helper()
	f.Limit = 50
	list, err := db.RoomsOf(context.Background(), "person", who.ID, f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRoomsOf(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	helper := storetest.Agent(t, db, "helper", ada)
	var rooms []chat.Conversation
	for range 3 {
		rooms = append(rooms, storetest.Conversation(t, db, ada, helper))
	}
	busy := rooms[0]
	storetest.Say(t, db, busy, ada, "before bob")
	join(t, db, busy, bob, chat.RoleMember, -1)
	if list := roomsOf(t, db, bob, chat.RoomFilter{}); len(list) != 1 || list[0].Snippet != "" || list[0].Unread != 0 {
		t.Errorf("bob sees something of before: %+v", list)
	}
	question := storetest.Say(t, db, busy, ada, "question", helper)
	answer := storetest.Finish(t, db, question.Tasks[0], task.Completed, "answer")
	storetest.Say(t, db, busy, bob, "mine")
	removed := storetest.Say(t, db, busy, ada, "removed").Message.Seq
	last := storetest.Say(t, db, busy, ada, "last").Message.Seq
	amend(t, db, by(busy, ada, chat.Unsaid, removed, ""))
	amend(t, db, by(busy, ada, chat.Edit, last, "last, edited"))
	check := func(who account.Account, unread int, snippet string) {
		t.Helper()
		list := roomsOf(t, db, who, chat.RoomFilter{})
		i := slices.IndexFunc(list, func(c chat.Conversation) bool { return c.ID == busy.ID })
		if i < 0 || list[i].Unread != unread || list[i].Snippet != snippet || len(list[i].Members) != 3 {
			t.Errorf("%s: %+v", who.Name, list)
		}
	}
	check(bob, 3, "last, edited")
	check(ada, 2, "last, edited")
	if err := db.MarkRead(ctx, busy.ID, "person", bob.ID, answer.Seq); err != nil {
		t.Fatal(err)
	}
	check(bob, 1, "last, edited")
	amend(t, db, by(busy, ada, chat.Unsaid, last, ""))
	check(bob, 0, "mine")
	for range 150 {
		storetest.Say(t, db, busy, ada, "one of many")
	}
	check(bob, chat.MaxUnread, "one of many")

	// What somebody decides for themselves changes nothing for others.
	for i, m := range []chat.Mine{{Pinned: true, Notify: chat.NotifyMentions}, {Archived: true}, {}} {
		if err := db.SetMine(ctx, rooms[i].ID, "person", ada.ID, m); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(list []chat.Conversation) (out []string) {
		for _, c := range list {
			for i, r := range rooms {
				if r.ID == c.ID {
					out = append(out, fmt.Sprint(i))
				}
			}
		}
		return out
	}
	for _, tt := range []struct {
		f    chat.RoomFilter
		want []string
	}{{chat.RoomFilter{}, []string{"0", "2"}}, {chat.RoomFilter{Pinned: true}, []string{"0"}}, {chat.RoomFilter{Archived: true}, []string{"1"}}, {chat.RoomFilter{Archived: true, Pinned: true}, nil}} {
		if got := ids(roomsOf(t, db, ada, tt.f)); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.f, got, tt.want)
		}
	}
	got, err := db.Room(ctx, busy.ID, "person", ada.ID)
	if err != nil || got.Mine != (chat.Mine{Role: chat.RoleOwner, Pinned: true, Notify: chat.NotifyMentions}) || got.Settings != chat.DefaultSettings {
		t.Errorf("%+v %v", got, err)
	}
	got, err = db.Room(ctx, busy.ID, "person", bob.ID)
	if err != nil || got.Mine != (chat.Mine{Role: chat.RoleMember, FromSeq: 1}) || got.ReadSeq != answer.Seq {
		t.Errorf("%+v %v", got, err)
	}
	i := slices.IndexFunc(got.Members, func(m chat.Member) bool { return m.ID == bob.ID })
	if m := got.Members[i]; m.FromSeq != 1 || m.ReadSeq != answer.Seq {
		t.Errorf("%+v", m)
	}
	if err := db.SetMine(ctx, rooms[2].ID, "person", bob.ID, chat.Mine{}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

// Roles and settings hold from the moment the call that changed them returns.
func TestRooms_RolesAndSettings(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Conversation(t, db, ada)
	join(t, db, c, bob, chat.RoleMember, 0)
	role := func() string {
		t.Helper()
		list, err := db.Members(ctx, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return list[slices.IndexFunc(list, func(m chat.Member) bool { return m.ID == bob.ID })].Role
	}
	for _, want := range []string{chat.RoleReader, chat.RoleOwner, chat.RoleMember} {
		role() // is remembered
		if _, err := db.SetRole(ctx, c.ID, "person", bob.ID, want, event(ada)); err != nil {
			t.Fatal(err)
		}
		if got := role(); got != want {
			t.Errorf("role %s, want %s", got, want)
		}
		_, err := db.Append(ctx, storetest.Post(c, bob, "", "hello"))
		if want == chat.RoleReader && !fault.Is(err, fault.Forbidden) || want != chat.RoleReader && err != nil {
			t.Errorf("as %s: %v", want, err)
		}
	}
	if _, err := db.SetRole(ctx, c.ID, "person", ada.ID, chat.RoleReader, event(ada)); !fault.Is(err, fault.Conflict) {
		t.Errorf("the only owner: %v", err)
	}
	// Joining again is not a way to another role or to see more.
	join(t, db, c, bob, chat.RoleOwner, -1)
	if got := role(); got != chat.RoleMember {
		t.Error(got)
	}
	if r, err := db.Room(ctx, c.ID, "person", bob.ID); err != nil || r.Mine.FromSeq != 0 {
		t.Error(r, err)
	}
	want := chat.Settings{Speaks: chat.SpeaksTurns, SpeakerID: "x", Past: chat.PastNothing, Hops: 1, Turns: 2, Budget: 3}
	for _, s := range []chat.Settings{chat.DefaultSettings, want} {
		if _, err := db.SetRoom(ctx, c.ID, s, event(ada)); err != nil {
			t.Fatal(err)
		}
		if got, _, err := db.SettingsOf(ctx, c.ID); err != nil || got != s {
			t.Errorf("%+v %v", got, err)
		}
	}
	for _, agent := range []string{"one", "two"} {
		p := storetest.Post(c, ada, "", "next")
		p.Spoke = agent
		if _, err := db.Append(ctx, p); err != nil {
			t.Fatal(err)
		}
		if got, spoke, err := db.SettingsOf(ctx, c.ID); err != nil || spoke != agent || got != want {
			t.Errorf("%s %+v %v", spoke, got, err)
		}
	}
	if err := db.DeleteRoom(ctx, c.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.SettingsOf(ctx, c.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

// A room keeps an owner who may write, if there is one.
func TestLeave_PassesOnToAWriter(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
	c := storetest.Conversation(t, db, ada)
	join(t, db, c, bob, chat.RoleReader, 0)
	join(t, db, c, eve, chat.RoleMember, 0)
	if _, err := db.Leave(t.Context(), c.ID, "person", ada.ID, clock.Now(), event(ada)); err != nil {
		t.Fatal(err)
	}
	if r, err := db.Room(t.Context(), c.ID, "person", eve.ID); err != nil || r.Mine.Role != chat.RoleOwner {
		t.Error(r, err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, now := t.Context(), clock.Now()
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	storetest.Say(t, db, c, ada, "hello")
	put := func(l chat.Link) chat.Link {
		t.Helper()
		l.ID, l.ConversationID, l.CreatedAt, l.Creator = ident.NewID(), c.ID, now, chat.Sender{Kind: "person", ID: ada.ID, Handle: "ada"}
		if err := db.PutLink(ctx, l, "hash of "+l.ID); err != nil {
			t.Fatal(err)
		}
		return l
	}
	use := func(l chat.Link) error {
		who := storetest.Account(t, db, "u"+strings.ToLower(ident.NewID()))
		_, err := db.Join(ctx, c.ID, chat.Member{Kind: "person", ID: who.ID, Handle: who.Name, Role: l.Role}, l.ID, event(who))
		if _, rerr := db.Room(ctx, c.ID, "person", who.ID); (rerr == nil) != (err == nil) {
			t.Errorf("joining says %v, the room %v", err, rerr)
		}
		return err
	}
	twice := put(chat.Link{Kind: chat.JoinLink, Role: chat.RoleReader, MaxUses: 2, ExpiresAt: now.Add(time.Hour)})
	open := put(chat.Link{Kind: chat.JoinLink, Role: chat.RoleMember, ExpiresAt: now.Add(time.Hour)})
	ended := put(chat.Link{Kind: chat.JoinLink, Role: chat.RoleMember, ExpiresAt: now.Add(-time.Second)})
	read := put(chat.Link{Kind: chat.ReadLink, FromSeq: 0, UpToSeq: 1, ExpiresAt: now.Add(time.Hour)})
	for i, tt := range []struct {
		l   chat.Link
		let bool
	}{{twice, true}, {twice, true}, {twice, false}, {open, true}, {open, true}, {open, true}, {ended, false}, {read, false}} {
		if err := use(tt.l); (err == nil) != tt.let || err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("%d: %v", i, err)
		}
	}
	list, err := db.LinksOf(ctx, c.ID)
	if err != nil || len(list) != 2 || list[0].ID != open.ID || list[0].Uses != 3 || list[1] != read {
		t.Errorf("%+v %v", list, err)
	}
	for _, l := range []chat.Link{twice, ended} {
		if _, err := db.LinkByHash(ctx, "hash of "+l.ID); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
	got, err := db.LinkByHash(ctx, "hash of "+read.ID)
	if err != nil || got != read {
		t.Errorf("%+v %v", got, err)
	}
	if room, err := db.RoomByLink(ctx, got); err != nil || room.ID != c.ID || len(room.Members) != 6 || room.Mine != (chat.Mine{}) {
		t.Errorf("%+v %v", room, err)
	}
	if err := db.DropLink(ctx, ident.NewID(), read.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if err := db.DropLink(ctx, c.ID, read.ID); err != nil {
		t.Error(err)
	}
	if _, err := db.LinkByHash(ctx, "hash of "+read.ID); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

func TestPeople(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx, now := t.Context(), clock.Now()
	ada := storetest.Account(t, db, "ada")
	one, two := storetest.Agent(t, db, "one", ada), storetest.Agent(t, db, "two", ada)
	ids := []string{one.ID, two.ID}
	if m, err := db.Disclosures(ctx, "person", ada.ID, ids); err != nil || len(m) != 0 {
		t.Error(m, err)
	}
	for _, share := range []chat.Share{chat.ShareAll, chat.ShareNothing} {
		want := chat.Disclosure{AgentID: one.ID, Agent: "one", Host: "agent.example", Share: share, ToldAt: now}
		if err := db.Disclose(ctx, "person", ada.ID, want); err != nil {
			t.Fatal(err)
		}
		if m, err := db.Disclosures(ctx, "person", ada.ID, ids); err != nil || len(m) != 1 || m[one.ID] != want {
			t.Errorf("%+v %v", m, err)
		}
	}
	if m, err := db.Disclosures(ctx, "guest", ada.ID, ids); err != nil || len(m) != 0 {
		t.Error(m, err)
	}
	for _, want := range []chat.Prefs{{}, {Notify: chat.NotifyNothing, QuietFrom: 1, QuietTo: 1439, Zone: "Asia/Tokyo"}, {}} {
		if err := db.SetPrefs(ctx, ada.ID, want); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Prefs(ctx, ada.ID); err != nil || got != want {
			t.Errorf("%+v %v", got, err)
		}
	}
	if err := db.SetPrefs(ctx, ada.ID, chat.Prefs{QuietFrom: 1440}); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	storetest.Sound(t, db)
}

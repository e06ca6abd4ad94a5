package store_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/quota"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

const smallQuota = 64 << 10

// openBounded opens a new database in which each owner may store smallQuota.
func openBounded(t *testing.T) *storetest.DB {
	t.Helper()
	dir := t.TempDir()
	storetest.Prepare(t, dir)
	limits := make(quota.Limits)
	for _, kind := range quota.Kinds() {
		limits[kind] = quota.Bound{Total: smallQuota}
	}
	opened, err := store.OpenWith(t.Context(), dir, store.Config{Quota: limits}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storetest.CheckStorage(t, opened); opened.Close() })
	return storetest.Join(opened)
}

func usedBy(t *testing.T, db *storetest.DB, kind ident.ActorKind, id string) quota.Usage {
	t.Helper()
	u, err := db.Quotas.Used(t.Context(), ident.Actor{Kind: kind, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// An account that has used its quota is refused, its retries of stored messages and its deletions are
// not, and deleting gives room again.
func TestQuota_RefusesAndGivesBack(t *testing.T) {
	t.Parallel()
	db := openBounded(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Conversation(t, db, ada)
	storetest.Say(t, db, storetest.Conversation(t, db, bob), bob, "short")
	text := strings.Repeat("x", 10<<10)
	n := 0
	var last chat.Post
	for ; n < 100; n++ {
		p := storetest.Post(c, ada, ident.NewID(), text)
		_, err := db.Append(ctx, p)
		if fault.Is(err, fault.RateLimited) {
			if f := fault.As(err); !strings.Contains(f.Safe, "of 64 KiB") || f.RetryAfter == 0 {
				t.Errorf("refused by %+v", f)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = p
	}
	if n != 6 {
		t.Fatalf("%d messages of 10 KiB were stored in 64 KiB", n)
	}
	if done, err := db.Append(ctx, last); err != nil || !done.Repeat || done.Message.Seq != 6 {
		t.Errorf("a retry gives %+v, %v", done, err)
	}
	if _, err := db.Amend(ctx, chat.Message{ConversationID: c.ID, ID: ident.NewID(), Sender: last.Message.Sender, Kind: chat.Unsaid, Target: 6, CreatedAt: clock.Now()}, true); err != nil {
		t.Errorf("deleting: %v", err)
	}
	storetest.Say(t, db, c, ada, "short")
	u := usedBy(t, db, ident.Person, ada.ID)
	if err := db.DeleteRoom(ctx, c.ID); err != nil {
		t.Fatal(err)
	}
	after := usedBy(t, db, ident.Person, ada.ID)
	if after.Total != 0 || after.Today < u.Today || u.Total < 50<<10 {
		t.Errorf("used %d before the conversation was deleted, %d after; %d and %d today", u.Total, after.Total, u.Today, after.Today)
	}
	if u := usedBy(t, db, ident.Person, bob.ID); u.Total == 0 || u.Total > 2<<10 {
		t.Errorf("bob used %d", u.Total)
	}
	storetest.Sound(t, db)
}

// The answer of an agent is stored beyond the quota of its owner, and counts for the agent and the owner;
// the next question is refused. The answer of an agent without owner counts for the caller.
func TestQuota_NeverRefusesAnOutcome(t *testing.T) {
	t.Parallel()
	db := openBounded(t)
	ctx := t.Context()
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	agent, built := storetest.Agent(t, db, "parrot", bob), storetest.Agent(t, db, "calcu", account.Account{})
	c := storetest.Conversation(t, db, ada, agent, built)
	asked := storetest.Say(t, db, c, ada, "tell all", agent)
	storetest.Finish(t, db, asked.Tasks[0], task.Completed, strings.Repeat("a", 2*smallQuota))
	if u := usedBy(t, db, ident.Person, bob.ID); u.Total < 2*smallQuota {
		t.Errorf("the owner of the agent used %d", u.Total)
	}
	if u := usedBy(t, db, ident.AgentBot, agent.ID); u.Total < 2*smallQuota {
		t.Errorf("the agent used %d", u.Total)
	}
	if _, err := db.Append(ctx, storetest.Post(c, ada, "2", "more", agent)); !fault.Is(err, fault.RateLimited) {
		t.Errorf("the next question: %v", err)
	}
	if u := usedBy(t, db, ident.Person, ada.ID); u.Total > 4<<10 {
		t.Errorf("the caller used %d", u.Total)
	}
	asked = storetest.Say(t, db, c, ada, "tell all", built)
	storetest.Finish(t, db, asked.Tasks[0], task.Completed, strings.Repeat("b", smallQuota))
	if u := usedBy(t, db, ident.Person, ada.ID); u.Total < smallQuota {
		t.Errorf("the caller of an agent without owner used %d", u.Total)
	}
	cleo := storetest.Account(t, db, "cleo")
	if err := db.SetOffer(ctx, agent.ID, cleo.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.Transfer(ctx, agent.ID, cleo.ID, false, 10); err != nil {
		t.Fatal(err)
	}
	if was, is := usedBy(t, db, ident.Person, bob.ID), usedBy(t, db, ident.Person, cleo.ID); was.Total != 0 || is.Total < 2*smallQuota {
		t.Errorf("after the agent changed its owner: %d and %d", was.Total, is.Total)
	}
	storetest.Sound(t, db)
}

// The messages of a copied conversation count for the account that copies it, not for their senders.
func TestQuota_CopiesCountForTheCopier(t *testing.T) {
	t.Parallel()
	db := openBounded(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Conversation(t, db, ada)
	storetest.Say(t, db, c, ada, strings.Repeat("x", 30<<10))
	said := storetest.Messages(t, db, c.ID)
	before := usedBy(t, db, ident.Person, ada.ID)
	copyRoom := func() error {
		return db.CreateConversation(context.Background(), chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), BranchedFrom: c.ID, BranchedSeq: 1,
			Members: []chat.Member{{Kind: "person", ID: bob.ID, Handle: "bob", Role: chat.RoleOwner}}}, said, nil)
	}
	if err := copyRoom(); err != nil {
		t.Fatal(err)
	}
	if after := usedBy(t, db, ident.Person, ada.ID); after.Total != before.Total {
		t.Errorf("the sender used %d before and %d after the copy", before.Total, after.Total)
	}
	if u := usedBy(t, db, ident.Person, bob.ID); u.Total < 30<<10 || u.Today != u.Total {
		t.Errorf("the copier used %d, %d today", u.Total, u.Today)
	}
	if err := copyRoom(); err != nil {
		t.Fatal(err)
	}
	if err := copyRoom(); !fault.Is(err, fault.RateLimited) {
		t.Errorf("the third copy: %v", err)
	}
}

// Guests of one network share a quota, and people of one portal too. Files and agents count.
func TestQuota_OfNetworksPortalsFilesAndAgents(t *testing.T) {
	t.Parallel()
	db := openBounded(t)
	ctx := t.Context()
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	say := func(kind, id string, bytes int) error {
		p := storetest.Post(c, ada, ident.NewID(), strings.Repeat("x", bytes))
		p.MustBeMember, p.Message.Sender.Kind, p.Message.Sender.ID = false, kind, id
		_, err := db.Append(ctx, p)
		return err
	}
	var guests [3]string
	for i, addr := range []string{"192.0.2.7", "192.0.2.200", "198.51.100.1"} {
		g := account.Credential{ID: ident.NewID(), Hash: ident.NewID(), Kind: account.GuestCredential, CreatedAt: clock.Now(), ExpiresAt: clock.Now(), Addr: addr}
		if err := db.AddCredential(ctx, g); err != nil {
			t.Fatal(err)
		}
		guests[i] = g.ID
	}
	for i, want := range []bool{false, true, false} {
		if err := say("guest", guests[i], 40<<10); fault.Is(err, fault.RateLimited) != want || !want && err != nil {
			t.Errorf("guest %d: %v", i, err)
		}
	}
	for id, want := range map[string]bool{"portal-b/bob@b": false, "portal-c/cleo@c": false} {
		if err := say("guest", id, 40<<10); fault.Is(err, fault.RateLimited) != want || !want && err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := say("guest", "portal-b/dora@b", 40<<10); !fault.Is(err, fault.RateLimited) {
		t.Errorf("another person of the same portal: %v", err)
	}
	for i, want := range []bool{false, true} {
		hash, size, _, err := db.PutBlob(ctx, io.LimitReader(strings.NewReader(strings.Repeat(string(rune('a'+i)), 60<<10)), 40<<10), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.PutFile(ctx, chat.File{Hash: hash, Size: size, MediaType: "text/plain", CreatedAt: clock.Now()}, "person", ada.ID, 1<<30); fault.Is(err, fault.RateLimited) != want {
			t.Errorf("file %d: %v", i, err)
		}
	}
	a := hub.Agent{ID: ident.NewID(), Name: "large", Title: "large", Description: strings.Repeat("d", 20<<10), Kind: hub.A2A, Endpoint: "https://agent.example/",
		Visibility: hub.Public, OwnerID: ada.ID, OwnerName: "ada", Version: 1, Status: hub.Status{State: hub.Active}, CreatedAt: clock.Now(), UpdatedAt: clock.Now()}
	if err := db.CreateAgent(ctx, a, nil); !fault.Is(err, fault.RateLimited) {
		t.Errorf("an agent: %v", err)
	}
	list, err := db.Quotas.Greatest(ctx, quota.Account, 5)
	if err != nil || len(list) != 1 || list[0].Name != "ada" || list[0].Bound.Total != smallQuota {
		t.Errorf("the greatest accounts: %+v, %v", list, err)
	}
	if _, err := db.DropFiles(ctx, clock.Now().AddDate(0, 0, 2), 100); err != nil {
		t.Fatal(err)
	}
	if u := usedBy(t, db, ident.Person, ada.ID); u.Total != 0 {
		t.Errorf("used %d after the file was dropped", u.Total)
	}
	if _, err := db.DeleteCredentials(ctx, "", "", account.GuestCredential); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteRoom(ctx, c.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.Quotas.SweepGuests(ctx); err != nil {
		t.Fatal(err)
	}
	storetest.Sound(t, db)
}

// Deleting an agent frees the texts of its earlier versions.
func TestQuota_DeletedAgentsGiveBack(t *testing.T) {
	t.Parallel()
	db := openBounded(t)
	ada := storetest.Account(t, db, "ada")
	a := storetest.Agent(t, db, "large", ada)
	for range 5 {
		base := a.Version
		a.Version, a.Description, a.UpdatedAt = base+1, strings.Repeat("d", 5<<10), clock.Now()
		if err := db.UpdateAgent(t.Context(), a, base, nil, ident.Actor{Kind: ident.Person, ID: ada.ID}); err != nil {
			t.Fatal(err)
		}
	}
	before := usedBy(t, db, ident.Person, ada.ID).Total
	if err := db.DeleteAgent(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if after := usedBy(t, db, ident.Person, ada.ID).Total; before < 25<<10 || after > before-20<<10 {
		t.Errorf("%d bytes before the agent was deleted, %d after", before, after)
	}
	storetest.Sound(t, db)
}

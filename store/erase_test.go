package store_test

import (
	"slices"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store/erasure"
)

// Only data that others still see holds the id of an erased account, and the database is sound.
func TestErase_LeavesWhatOthersSee(t *testing.T) {
	t.Parallel()
	storetest.SkipOnPostgres(t)
	db := storetest.New(t)
	ctx := t.Context()
	ann, bob := storetest.Account(t, db, "ann"), storetest.Account(t, db, "bob")
	calc := storetest.Agent(t, db, "calc", account.Account{})
	mine := storetest.Agent(t, db, "mine", ann)
	storetest.Agent(t, db, "theirs", bob)
	storetest.Credential(t, db, ann, account.SessionCredential, time.Hour)
	storetest.Credential(t, db, ann, account.TokenCredential, time.Hour)
	storetest.Credential(t, db, bob, account.TokenCredential, time.Hour)
	webhook(t, db, ann, notify.AgentRegistered)
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must(db.AddNotice(ctx, hub.Notice{ID: ident.NewID(), AccountID: ann.ID, Kind: "down", Text: "It is down.", CreatedAt: clock.Now()}),
		db.SetPrefs(ctx, ann.ID, chat.Prefs{Notify: "nothing"}),
		db.Block(ctx, ann.ID, chat.Block{ID: bob.ID, Handle: "bob", CreatedAt: clock.Now()}),
		db.Disclose(ctx, "person", ann.ID, chat.Disclosure{AgentID: calc.ID, Host: "x.example", Share: "all", ToldAt: clock.Now()}),
		db.Add(ctx, "2026-11-25", "account:"+ann.ID, 5))
	shared := storetest.Conversation(t, db, bob, calc)
	must(func() error {
		_, err := db.Join(ctx, shared.ID, chat.Member{Kind: "person", ID: ann.ID, Handle: "ann", Role: chat.RoleMember}, "",
			chat.Message{ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: ann.ID, Handle: "ann"}, Kind: chat.Event, CreatedAt: clock.Now()})
		return err
	}())
	said := storetest.Say(t, db, shared, ann, "hello", calc)
	if _, err := db.Begin(ctx, said.Tasks[0].ID, 1); err != nil {
		t.Fatal(err)
	}
	storetest.Finish(t, db, said.Tasks[0], task.Completed, "done")

	by := ident.Actor{Kind: ident.System}
	must(db.DeleteAgent(ctx, mine.ID), db.SetDisabled(ctx, ann.ID, clock.Now(), by))
	if _, err := db.Leave(ctx, shared.ID, "person", ann.ID, clock.Now(), chat.Message{ID: ident.NewID(),
		Sender: chat.Sender{Kind: "person", ID: ann.ID, Handle: "ann"}, Kind: chat.Event, CreatedAt: clock.Now()}); err != nil {
		t.Fatal(err)
	}
	must(db.EraseAuthor(ctx, ann.ID, "ann", false, by), db.EraseAccount(ctx, ann.ID, by), db.EraseAccount(ctx, ann.ID, by))

	got := storetest.TablesHolding(t, storetest.Dir(db), ann.ID)
	want := []string{"accounts.id", "agent_versions.author_id", "agents.owner_id", "audit.subject", "members.member_id", "messages.charged", "messages.sender_id",
		"names.ref", "storage.id", "tasks.caller_id"}
	if got = slices.DeleteFunc(got, func(s string) bool { return slices.Contains(want, s) }); len(got) > 0 {
		t.Errorf("the id is left in %v", got)
	}
	if list := storetest.Messages(t, db, shared.ID); !slices.ContainsFunc(list, func(m chat.Message) bool { return m.Sender.Handle == erasure.Handle }) {
		t.Error("others lost a message")
	}
	if _, err := db.AccountByName(ctx, "ann"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	if taken, err := db.NameTaken(ctx, "ann"); err != nil || !taken {
		t.Error("the name is free", err)
	}
	if list, err := db.ListAccounts(ctx, "", 10); err != nil || len(list) != 1 || list[0].Name != "bob" {
		t.Error(list, err)
	}
	if list, err := db.ListCredentials(ctx, bob.ID, account.TokenCredential); err != nil || len(list) != 1 {
		t.Error("another account lost a token", err)
	}
	storetest.CheckStorage(t, db.DB)
	storetest.Sound(t, db)
}

package store_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// What is remembered must be gone when the call that ended it returns,
// whoever reads meanwhile.
func TestCredentialByHash_EndsWithTheCallThatEndsIt(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("AGENTSITE_TEST_FULL") != "" {
		rounds = 20
	}
	db := storetest.New(t)
	ctx := context.Background()
	for name, end := range map[string]func(account.Account, account.Credential) error{
		"revoked": func(a account.Account, c account.Credential) error {
			_, err := db.DeleteCredentials(ctx, a.ID, c.ID, c.Kind)
			return err
		},
		"disabled": func(a account.Account, c account.Credential) error {
			return db.SetDisabled(ctx, a.ID, clock.Now(), ident.Actor{Kind: ident.System})
		},
		"password": func(a account.Account, c account.Credential) error {
			return db.SetPassword(ctx, a.ID, "y", "", "")
		},
	} {
		a := storetest.Account(t, db, "ann-"+name)
		for range rounds {
			c := storetest.Credential(t, db, a, account.SessionCredential, time.Hour)
			stop, wg := make(chan struct{}), sync.WaitGroup{}
			for range 4 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							db.CredentialByHash(ctx, c.Hash)
						}
					}
				})
			}
			if _, _, err := db.CredentialByHash(ctx, c.Hash); err != nil {
				t.Fatal(err)
			}
			if err := end(a, c); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				if _, _, err := db.CredentialByHash(ctx, c.Hash); !fault.Is(err, fault.NotFound) {
					t.Fatalf("%s: still found: %v", name, err)
				}
			}
			close(stop)
			wg.Wait()
			if name == "disabled" {
				if err := db.SetDisabled(ctx, a.ID, time.Time{}, ident.Actor{Kind: ident.System}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestCredentialByHash_RemembersNoneThatExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storetest.New(t)
		c := storetest.Credential(t, db, storetest.Account(t, db, "ann"), account.TokenCredential, time.Hour)
		if _, _, err := db.CredentialByHash(t.Context(), c.Hash); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, _, err := db.CredentialByHash(t.Context(), c.Hash); !fault.Is(err, fault.NotFound) {
			t.Errorf("an expired credential: %v", err)
		}
	})
}

func TestCredentialByHash_TellsWhatBecameOfTheAccount(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	c := storetest.Credential(t, db, storetest.Account(t, db, "ann"), account.TokenCredential, time.Hour)
	db.CredentialByHash(ctx, c.Hash)
	used := clock.Now().Add(time.Minute)
	if err := db.Touch(ctx, c.Hash, used, c.ExpiresAt); err != nil {
		t.Fatal(err)
	}
	if got, _, err := db.CredentialByHash(ctx, c.Hash); err != nil || !got.UsedAt.Equal(used) {
		t.Errorf("used at %s, %v; want %s", got.UsedAt, err, used)
	}
}

func TestMembers_FollowEveryChange(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ctx := context.Background()
	ann, bob := storetest.Account(t, db, "ann"), storetest.Account(t, db, "bob")
	calc := storetest.Agent(t, db, "calc", account.Account{})
	room := storetest.Conversation(t, db, ann, calc)
	check := func(want ...string) {
		t.Helper()
		for range 2 { // from the disk, and remembered
			list, err := db.Members(ctx, room.ID)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range list {
				got = append(got, m.Handle)
			}
			slices.Sort(got) // who joined in the same moment has no order
			if !slices.Equal(got, want) {
				t.Fatalf("members %v, want %v", got, want)
			}
		}
	}
	event := func() chat.Message {
		return chat.Message{ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: ann.ID, Handle: "ann"}, Kind: chat.Event, CreatedAt: clock.Now()}
	}
	check("ann", "calc")
	if _, err := db.Join(ctx, room.ID, chat.Member{Kind: "person", ID: bob.ID, Handle: "bob", Role: "member"}, "", event()); err != nil {
		t.Fatal(err)
	}
	check("ann", "bob", "calc")
	if _, err := db.Leave(ctx, room.ID, "person", bob.ID, clock.Now(), event()); err != nil {
		t.Fatal(err)
	}
	check("ann", "calc")
	if err := db.MarkRead(ctx, room.ID, "person", ann.ID, 1); err != nil {
		t.Fatal(err)
	}
	check("ann", "calc")
	if err := db.DeleteRoom(ctx, room.ID); err != nil {
		t.Fatal(err)
	}
	check()
}

package store_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestNames_NeverGivenAgain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	storetest.Agent(t, db, "helper", ada)
	gone := storetest.Agent(t, db, "gone", ada)
	if err := db.DeleteAgent(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := db.AgentByName(t.Context(), "gone"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	for _, name := range []string{"ada", "helper", "gone"} {
		a := account.Account{ID: ident.NewID(), Name: name, PasswordHash: "x", CreatedAt: clock.Now()}
		if err := db.CreateAccount(t.Context(), a, ""); !fault.Is(err, fault.Conflict) {
			t.Errorf("an account took %s: %v", name, err)
		}
		g := gone
		g.ID, g.Name = ident.NewID(), name
		if err := db.CreateAgent(t.Context(), g, nil); !fault.Is(err, fault.Conflict) {
			t.Errorf("an agent took %s: %v", name, err)
		}
	}
	if r := storetest.Sound(t, db); r.Accounts != 1 || r.Agents != 1 {
		t.Errorf("%+v", r)
	}
}

func found(t *testing.T, db *storetest.DB, c account.Credential) bool {
	t.Helper()
	got, _, err := db.CredentialByHash(t.Context(), c.Hash)
	if err != nil && !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	return err == nil && got.ID == c.ID
}

func TestCredentials_Expire(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	old := storetest.Credential(t, db, ada, account.SessionCredential, -time.Millisecond)
	fresh := storetest.Credential(t, db, ada, account.SessionCredential, time.Hour)
	invite := storetest.Credential(t, db, account.Account{}, account.InviteCredential, -time.Millisecond)
	if found(t, db, old) || !found(t, db, fresh) || found(t, db, invite) {
		t.Error("expiry is not looked at")
	}
	list, err := db.ListCredentials(t.Context(), ada.ID, account.SessionCredential)
	if err != nil || len(list) != 1 || list[0].ID != fresh.ID {
		t.Error(list, err)
	}
	bob := account.Account{ID: ident.NewID(), Name: "bob", PasswordHash: "x", CreatedAt: clock.Now()}
	if err := db.CreateAccount(t.Context(), bob, invite.Hash, account.InviteCredential); !fault.Is(err, fault.NotFound) {
		t.Error("an expired invitation was spent:", err)
	}
	if err := db.CreateAccount(t.Context(), bob, fresh.Hash, account.SessionCredential); !fault.Is(err, fault.NotFound) {
		t.Error("somebody's session was spent as an invitation:", err)
	}
	if err := db.Touch(t.Context(), fresh.Hash, clock.Now(), clock.Now().Add(-time.Millisecond)); err != nil || found(t, db, fresh) {
		t.Error("touching did not move the expiry", err)
	}
}

func TestCredentials_SpentOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	invite := storetest.Credential(t, db, account.Account{}, account.InviteCredential, time.Hour)
	ada := storetest.Account(t, db, "ada")
	reset := storetest.Credential(t, db, ada, account.ResetCredential, time.Hour)
	var joined, changed atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			a := account.Account{ID: ident.NewID(), Name: fmt.Sprint("new", i), PasswordHash: "x", CreatedAt: clock.Now()}
			switch err := db.CreateAccount(context.Background(), a, invite.Hash, account.SetupCredential, account.InviteCredential); {
			case err == nil:
				joined.Add(1)
			case !fault.Is(err, fault.NotFound):
				t.Error(err)
			}
			switch err := db.SetPassword(context.Background(), ada.ID, fmt.Sprint(i), "", reset.Hash); {
			case err == nil:
				changed.Add(1)
			case !fault.Is(err, fault.NotFound):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if joined.Load() != 1 || changed.Load() != 1 {
		t.Errorf("spent %d and %d times", joined.Load(), changed.Load())
	}
	if r := storetest.Sound(t, db); r.Accounts != 2 {
		t.Errorf("%+v", r)
	}
}

// A refused account leaves its invitation for another try.
func TestCreateAccount_TakenNameSpendsNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	storetest.Account(t, db, "ada")
	invite := storetest.Credential(t, db, account.Account{}, account.InviteCredential, time.Hour)
	a := account.Account{ID: ident.NewID(), Name: "ada", PasswordHash: "x", CreatedAt: clock.Now()}
	if err := db.CreateAccount(t.Context(), a, invite.Hash, account.InviteCredential); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
	if !found(t, db, invite) {
		t.Error("the invitation is gone")
	}
}

func TestSetPassword_KeepsOnlyThisSession(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	here, there := storetest.Credential(t, db, ada, account.SessionCredential, time.Hour), storetest.Credential(t, db, ada, account.SessionCredential, time.Hour)
	token, reset := storetest.Credential(t, db, ada, account.TokenCredential, time.Hour), storetest.Credential(t, db, ada, account.ResetCredential, time.Hour)
	if err := db.SetPassword(t.Context(), ada.ID, "new", here.ID, ""); err != nil {
		t.Fatal(err)
	}
	if !found(t, db, here) || found(t, db, there) || !found(t, db, token) || found(t, db, reset) {
		t.Error("the wrong credentials are left")
	}
}

func TestSetDisabled_DeletesCredentials(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	storetest.Agent(t, db, "helper", ada)
	session, token := storetest.Credential(t, db, ada, account.SessionCredential, time.Hour), storetest.Credential(t, db, ada, account.TokenCredential, time.Hour)
	others := storetest.Credential(t, db, bob, account.SessionCredential, time.Hour)
	if err := db.SetDisabled(t.Context(), ada.ID, clock.Now(), ident.Actor{Kind: ident.Operator, ID: bob.ID}); err != nil {
		t.Fatal(err)
	}
	if found(t, db, session) || found(t, db, token) || !found(t, db, others) {
		t.Error("the wrong credentials are left")
	}
	if a, err := db.AccountByID(t.Context(), ada.ID); err != nil || !a.Disabled() {
		t.Error(a, err)
	}
	if _, err := db.AgentByName(t.Context(), "helper"); !fault.Is(err, fault.NotFound) {
		t.Error("a disabled account's agent is found:", err)
	}
	if err := db.SetDisabled(t.Context(), ada.ID, time.Time{}, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	if a, err := db.AccountByID(t.Context(), ada.ID); err != nil || a.Disabled() || found(t, db, session) {
		t.Error(a, err)
	}
	if _, err := db.AgentByName(t.Context(), "helper"); err != nil {
		t.Error(err)
	}
}

func TestDeleteCredentials_ScopedByAccount(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	c := storetest.Credential(t, db, ada, account.TokenCredential, time.Hour)
	for _, tt := range []struct {
		owner, id string
		kind      account.CredentialKind
	}{{bob.ID, c.ID, account.TokenCredential}, {"", c.ID, account.TokenCredential}, {ada.ID, c.ID, account.SessionCredential}} {
		if gone, err := db.DeleteCredentials(t.Context(), tt.owner, tt.id, tt.kind); err != nil || len(gone) != 0 || !found(t, db, c) {
			t.Errorf("%+v deleted %v %v", tt, gone, err)
		}
	}
	if gone, err := db.DeleteCredentials(t.Context(), ada.ID, "", account.TokenCredential); err != nil || len(gone) != 1 || found(t, db, c) {
		t.Error(gone, err)
	}
}

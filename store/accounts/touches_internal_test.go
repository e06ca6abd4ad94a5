package accounts

import (
	"agentsite/internal/testing/plantest"
	"agentsite/store/agents"
	"agentsite/store/hooks"
	"agentsite/store/quotas"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/store/engine"
)

func addCredential(t *testing.T, d *Accounts, life time.Duration) account.Credential {
	t.Helper()
	c := account.Credential{ID: ident.NewID(), Hash: ident.HashSecret(ident.NewID()), Kind: account.GuestCredential, CreatedAt: clock.Now(), ExpiresAt: clock.Now().Add(life)}
	if err := d.AddCredential(t.Context(), c); err != nil {
		t.Error(err)
	}
	return c
}

// usedAt is what the row says on the disk.
func usedAt(t *testing.T, d *Accounts, c account.Credential) time.Time {
	t.Helper()
	var at int64
	if err := d.db.Get(t.Context(), &at, `SELECT used_at FROM credentials WHERE hash = ?`, c.Hash); err != nil {
		t.Fatal(err)
	}
	return clock.FromMilli(at)
}

func TestTouch_GoesAlongWithTheNextCommit(t *testing.T) {
	t.Parallel()
	d := openAccounts(t, t.TempDir())
	a, b := addCredential(t, d, time.Hour), addCredential(t, d, time.Hour)
	for _, write := range []func(engine.Tx) error{
		func(engine.Tx) error { return nil },
		func(t engine.Tx) error { // that is taken out of the batch
			if _, err := t.Exec(`DELETE FROM credentials`); err != nil {
				return err
			}
			return errors.New("refused after it wrote")
		},
	} {
		used := usedAt(t, d, a).Add(time.Hour)
		for _, c := range []account.Credential{a, b} {
			if err := d.Touch(t.Context(), c.Hash, used, c.ExpiresAt.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.db.Write(t.Context(), write); err != nil { // the others of its batch may still be under way
			_ = d.db.Write(t.Context(), func(engine.Tx) error { return nil })
		}
		for _, c := range []account.Credential{a, b} {
			if at := usedAt(t, d, c); !at.Equal(used) {
				t.Errorf("on disk it was used at %s, want %s", at, used)
			}
			got, _, err := d.CredentialByHash(t.Context(), c.Hash)
			if err != nil || !got.UsedAt.Equal(used) || !got.ExpiresAt.Equal(c.ExpiresAt.Add(time.Minute)) {
				t.Errorf("%+v %v", got, err)
			}
		}
	}
}

func TestTouch_GetsACommitOfItsOwnInTheEnd(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := openAccounts(t, dir)
		c := addCredential(t, d, time.Hour)
		for range 3 {
			used := clock.Now().Add(time.Minute)
			if err := d.Touch(t.Context(), c.Hash, used, c.ExpiresAt); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if at := usedAt(t, d, c); at.Equal(used) {
				t.Error("it waited for nothing to go along with")
			}
			time.Sleep(touchDelay)
			synctest.Wait()
			if at := usedAt(t, d, c); !at.Equal(used) {
				t.Errorf("after %s it was used at %s on disk, want %s", touchDelay, at, used)
			}
		}
	})
}

func TestTouch_IsWrittenByTheStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openAccounts(t, dir)
	c := addCredential(t, d, time.Hour)
	used := clock.Now().Add(time.Minute)
	if err := d.Touch(t.Context(), c.Hash, used, c.ExpiresAt); err != nil {
		t.Fatal(err)
	}
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Touch(t.Context(), c.Hash, used, c.ExpiresAt); !fault.Is(err, fault.Unavailable) {
		t.Error("noted by a closed database:", err)
	}
	if at := usedAt(t, openAccounts(t, dir), c); !at.Equal(used) {
		t.Errorf("used at %s, want %s", at, used)
	}
}

// What has expired goes along with deleted credentials: not what was just
// prolonged.
func TestTouch_ComesBeforeTheWritesAfterIt(t *testing.T) {
	t.Parallel()
	d := openAccounts(t, t.TempDir())
	c, other := addCredential(t, d, -time.Millisecond), addCredential(t, d, time.Hour)
	if err := d.Touch(t.Context(), c.Hash, clock.Now(), clock.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.CredentialByHash(t.Context(), c.Hash); err != nil {
		t.Error("before it is on disk:", err)
	}
	if _, err := d.DeleteCredentials(t.Context(), "", other.ID, other.Kind); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.CredentialByHash(t.Context(), c.Hash); err != nil {
		t.Error("afterwards:", err)
	}
}

// Whatever is written meanwhile, a use is known when Touch returns, and one
// that is deleted stays so.
func TestTouch_IsKnownAtOnce(t *testing.T) {
	t.Parallel()
	d := openAccounts(t, t.TempDir())
	stop, others := make(chan struct{}), sync.WaitGroup{}
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = d.db.Write(context.Background(), func(engine.Tx) error { return nil })
				}
			}
		})
	}
	others.Go(func() { // each deletion empties the cache
		for {
			select {
			case <-stop:
				return
			default:
				c := addCredential(t, d, time.Hour)
				if _, err := d.DeleteCredentials(t.Context(), "", c.ID, c.Kind); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			c := addCredential(t, d, time.Hour)
			for i := range 200 {
				used, expires := c.CreatedAt.Add(time.Duration(i)*time.Millisecond), c.ExpiresAt.Add(time.Duration(i%7)*time.Second)
				if err := d.Touch(t.Context(), c.Hash, used, expires); err != nil {
					t.Error(err)
				}
				got, _, err := d.CredentialByHash(t.Context(), c.Hash)
				if err != nil || !got.UsedAt.Equal(used) || !got.ExpiresAt.Equal(expires) {
					t.Errorf("%+v, %v; want used %s, expires %s", got, err, used, expires)
				}
			}
			brief := addCredential(t, d, time.Hour)
			if err := d.Touch(t.Context(), brief.Hash, clock.Now(), clock.Now()); err != nil {
				t.Error(err)
			}
			for range 20 {
				if _, _, err := d.CredentialByHash(t.Context(), brief.Hash); !fault.Is(err, fault.NotFound) {
					t.Errorf("it has expired: %v", err)
				}
			}
			if err := d.Touch(t.Context(), c.Hash, clock.Now(), c.ExpiresAt); err != nil {
				t.Error(err)
			}
			if gone, err := d.DeleteCredentials(t.Context(), "", c.ID, c.Kind); err != nil || len(gone) != 1 {
				t.Error(gone, err)
			}
			for range 20 {
				if err := d.Touch(t.Context(), c.Hash, clock.Now(), c.ExpiresAt); err != nil {
					t.Error(err)
				}
				if _, _, err := d.CredentialByHash(t.Context(), c.Hash); !fault.Is(err, fault.NotFound) {
					t.Errorf("it was deleted: %v", err)
				}
			}
		})
	}
	users.Wait()
	close(stop)
	others.Wait()
}

func openAccounts(t *testing.T, dir string) *Accounts {
	t.Helper()
	db := plantest.Open(t, dir)
	free := quotas.New(db, nil, nil)
	return New(db, agents.New(db, hooks.New(db, free), free, nil), free)
}

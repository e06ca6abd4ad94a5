package ident_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/internal/ident"
)

const day = 24 * time.Hour

var began = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

func operational(t *testing.T, dir string, now time.Time) *ident.Operational {
	t.Helper()
	k, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	o, err := ident.OpenOperational(dir, k.Public(), now)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOperational_MadeOncePrivateAndKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := operational(t, dir, began).List()
	again := operational(t, dir, began.Add(day)).List()
	if len(first) != 1 || len(again) != 1 || !again[0].Key.Equal(first[0].Key) || !again[0].From.Equal(first[0].From) || !again[0].Until.Equal(first[0].Until) {
		t.Errorf("%v became %v", first, again)
	}
	if first[0].Until.Sub(first[0].From) > 90*day {
		t.Error("the key lives longer than a card may list")
	}
	st, err := os.Stat(filepath.Join(dir, ident.OperationalKeysFile))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 3 {
		t.Errorf("something was left: %v", files)
	}
}

// What a key signs last lives 37 days: it must not end before that.
func TestOperational_RotateLongBeforeTheEnd(t *testing.T) {
	t.Parallel()
	o := operational(t, t.TempDir(), began)
	last := began
	for now := began; now.Before(began.Add(400 * day)); now = now.Add(6 * time.Hour) {
		if _, err := o.Renew(now); err != nil {
			t.Fatal(err)
		}
		list := o.Current(now)
		if len(list) == 0 || len(list) > 3 || len(o.List()) != len(list) {
			t.Fatalf("%d keys after %v", len(list), now.Sub(began))
		}
		k, ok := o.Signing(now, nil)
		if !ok || k.Until.Before(now.Add(37*day)) {
			t.Fatalf("after %v what is signed ends before its key", now.Sub(began))
		}
		if k.From.After(last) && now.Sub(k.From) < 2*time.Hour {
			t.Fatalf("a key signs %v after it was made", now.Sub(k.From))
		}
	}
	if len(o.List()) < 2 {
		t.Error("nothing was rotated")
	}
}

func TestOperational_SigningIsOneThatIsAccepted(t *testing.T) {
	t.Parallel()
	o := operational(t, t.TempDir(), began)
	old := o.List()[0]
	k, err := o.Rotate(began.Add(day))
	if err != nil {
		t.Fatal(err)
	}
	now := began.Add(2 * day)
	if got, ok := o.Signing(now, nil); !ok || !got.Key.Equal(k.Key) {
		t.Error("the new key does not sign")
	}
	if got, ok := o.Signing(now, func(k ident.OperationalKey) bool { return k.Key.Equal(old.Key) }); !ok || !got.Key.Equal(old.Key) {
		t.Error("the key that a card lists does not sign")
	}
	if _, ok := o.Signing(began.Add(200*day), nil); ok {
		t.Error("a key signs after its end")
	}
	if _, ok := o.Signing(began.Add(-day), nil); ok {
		t.Error("a key signs before its time")
	}
}

func TestOperational_RotateAndRevoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := operational(t, dir, began)
	for range 3 {
		if _, err := o.Rotate(began); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Rotate(began); !errors.Is(err, ident.ErrTooManyKeys) {
		t.Error(err)
	}
	list := o.List()
	for i, k := range list {
		if err := o.Revoke(began, k.Public()); err != nil {
			t.Fatal(err)
		}
		if err := o.Revoke(began, k.Public()); !errors.Is(err, ident.ErrNoSuchKey) {
			t.Error(err)
		}
		left := operational(t, dir, began).List()
		if want := max(len(list)-1-i, 1); len(left) != want {
			t.Errorf("%d keys are left, want %d", len(left), want)
		}
	}
	if k := o.List()[0]; k.Key.Equal(list[3].Key) {
		t.Error("a revoked key is still there")
	}
}

func TestOperational_DamagedOrForeignIsRefused(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	operational(t, dir, began)
	operational(t, other, began)
	path := filepath.Join(dir, ident.OperationalKeysFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(filepath.Join(other, ident.OperationalKeysFile))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ident.LoadKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		file []byte
		want string
	}{
		"cut":     {good[:len(good)/2], "damaged"},
		"garbage": {[]byte("x"), "damaged"},
		"no time": {bytes.Replace(good, []byte("Until: "), []byte("Until: x"), 1), "damaged"},
		"foreign": {foreign, "belongs to another portal"},
		"five":    {bytes.Repeat(good, 5), "damaged"},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ident.OpenOperational(dir, keys.Public(), began); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, c.file) {
			t.Errorf("%s was replaced", what)
		}
	}
}

func TestDetach_LeavesThePublicHalf(t *testing.T) {
	t.Parallel()
	dir, away := t.TempDir(), filepath.Join(t.TempDir(), "root.key")
	first, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := ident.DetachRoot(dir, away); err != nil {
		t.Fatal(err)
	}
	k, err := ident.LoadKeys(dir)
	if err != nil || k.Portal != nil || k.ID() != first.ID() || !k.Public().Equal(first.Public()) || k.Mark("a", "b") != first.Mark("a", "b") {
		t.Fatal(k, err)
	}
	if k, err := ident.CreateKeys(dir); err != nil || k.Portal != nil || k.ID() != first.ID() {
		t.Error("a portal whose key is away got another", err)
	}
	root, err := ident.ReadRoot(away)
	if err != nil || !root.Equal(first.Portal) {
		t.Error(err)
	}
	if st, err := os.Stat(away); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
	// Again, after it was cut short, and with a key that was moved by hand.
	if err := ident.DetachRoot(dir, away); err != nil {
		t.Error(err)
	}
	if err := os.Rename(away, filepath.Join(dir, ident.PortalKeyFile)); err != nil {
		t.Fatal(err)
	}
	if k, err := ident.LoadKeys(dir); err != nil || k.Portal == nil {
		t.Error("a key that came back is not used", err)
	}
}

func TestDetach_ReplacesNothing(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		if _, err := ident.CreateKeys(d); err != nil {
			t.Fatal(err)
		}
	}
	taken := filepath.Join(other, ident.PortalKeyFile)
	if err := ident.DetachRoot(dir, taken); err == nil || !strings.Contains(err.Error(), "not this portal's key") {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, link} {
		if err := ident.DetachRoot(dir, filepath.Join(d, ident.PortalKeyFile)); err == nil ||
			!strings.Contains(err.Error(), "name another place") {
			t.Errorf("the key's own place: %v", err)
		}
	}
	if k, err := ident.LoadKeys(dir); err != nil || k.Portal == nil {
		t.Error("the key is gone", err)
	}
	if err := ident.DetachRoot(t.TempDir(), filepath.Join(dir, "nothing")); err == nil {
		t.Error("nothing was taken away")
	}
}

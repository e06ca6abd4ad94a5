package ident_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/ident"
)

func TestKeys_CreatedOnceAndPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	ids, sealed := make([]string, 16), make([][]byte, 16)
	for i := range ids {
		wg.Go(func() {
			k, err := ident.CreateKeys(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i], sealed[i] = k.ID(), k.Seal("s", "x")
		})
	}
	wg.Wait()
	k, err := ident.LoadKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if ids[i] != k.ID() || len(ids[i]) != 16 {
			t.Errorf("two starts got the keys %s and %s", ids[i], k.ID())
		}
		if s, err := k.Open(sealed[i], "x"); err != nil || s != "s" {
			t.Error("a start sealed with a key that was not kept", err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		if st, err := f.Info(); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), st.Mode())
		}
	}
}

func TestKeys_MissingIsRefusedNotReplaced(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{ident.PortalKeyFile, ident.SealKeyFile} {
		dir := t.TempDir()
		if _, err := ident.CreateKeys(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
		if _, err := ident.LoadKeys(dir); err == nil || !strings.Contains(err.Error(), gone) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("without %s: %v", gone, err)
		}
		if _, err := os.Stat(filepath.Join(dir, gone)); !os.IsNotExist(err) {
			t.Errorf("%s was made anew", gone)
		}
	}
}

func TestKeys_GoOnWhereAStartWasCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ident.SealKeyFile)); err != nil {
		t.Fatal(err)
	}
	if again, err := ident.CreateKeys(dir); err != nil || again.ID() != first.ID() {
		t.Error("the portal got another identity", err)
	}
}

func TestKeys_DamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	whole := make(map[string][]byte)
	for _, f := range []string{ident.PortalKeyFile, ident.SealKeyFile} {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		whole[f] = b
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for f, b := range whole {
		other := whole[ident.SealKeyFile]
		if f == ident.SealKeyFile {
			other = whole[ident.PortalKeyFile]
		}
		for what, bad := range map[string][]byte{"empty": {}, "cut": b[:len(b)/2], "garbage": bytes.Repeat([]byte{0}, len(b)), "the other key": other} {
			write(f, bad)
			for _, open := range []func(string) (*ident.Keys, error){ident.LoadKeys, ident.CreateKeys} {
				if _, err := open(dir); err == nil || !strings.Contains(err.Error(), f) || !strings.Contains(err.Error(), "damaged") {
					t.Errorf("%s, %s: %v", f, what, err)
				}
			}
			if got, _ := os.ReadFile(filepath.Join(dir, f)); !bytes.Equal(got, bad) {
				t.Errorf("%s was replaced", f)
			}
		}
		write(f, b)
	}
}

func TestSeal_OpensOnlyForItsOwner(t *testing.T) {
	t.Parallel()
	k, err := ident.CreateKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, err := ident.CreateKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sealed := k.Seal("sk-secret", "agent-1")
	if s, err := k.Open(sealed, "agent-1"); err != nil || s != "sk-secret" {
		t.Error(s, err)
	}
	if bytes.Contains(sealed, []byte("sk-secret")) || bytes.Equal(sealed, k.Seal("sk-secret", "agent-1")) {
		t.Error("the sealed form tells something")
	}
	if _, err := k.Open(sealed, "agent-2"); err == nil {
		t.Error("another agent's bound opened it")
	}
	if _, err := other.Open(sealed, "agent-1"); err == nil || strings.Contains(err.Error(), "sk-") {
		t.Error("another portal opened it", err)
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := k.Open(bad, "agent-1"); err == nil {
			t.Fatalf("byte %d may change", i)
		}
	}
	for _, bad := range [][]byte{nil, {}, sealed[:5], sealed[:len(sealed)-1]} {
		if _, err := k.Open(bad, "agent-1"); err == nil {
			t.Errorf("%d bytes opened", len(bad))
		}
	}
}

func TestKeyFile_HoldsTheRootKeyOutsideTheFolder(t *testing.T) {
	t.Parallel()
	files := ident.KeyFiles{Dir: t.TempDir(), Root: filepath.Join(t.TempDir(), "identity")}
	if _, err := files.Load(); err == nil || !strings.Contains(err.Error(), files.Root) {
		t.Errorf("a missing key file: %v", err)
	}
	first, err := files.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(files.Dir, ident.PortalKeyFile)); !os.IsNotExist(err) {
		t.Errorf("the folder holds the root key too: %v", err)
	}
	if again, err := files.Load(); err != nil || again.ID() != first.ID() || again.Mark("a", "b") != first.Mark("a", "b") {
		t.Errorf("%v", err)
	}
	for mode, readable := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true} {
		if err := os.Chmod(files.Root, mode); err != nil {
			t.Fatal(err)
		}
		_, err := files.Load()
		if (err != nil) != readable || err != nil && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
	if err := os.Chmod(files.Root, 0o600); err != nil {
		t.Fatal(err)
	}
	away := filepath.Join(t.TempDir(), "root.key")
	if err := files.DetachRoot(away); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files.Root); !os.IsNotExist(err) {
		t.Errorf("the key file is still there: %v", err)
	}
	if k, err := files.Load(); err != nil || k.Portal != nil || k.ID() != first.ID() {
		t.Errorf("a portal whose key is away: %v", err)
	}
}

func TestKeyFile_RefusesAKeyInTheFolderToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := ident.CreateKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := ident.KeyFiles{Dir: dir, Root: filepath.Join(t.TempDir(), "identity")}
	for _, open := range []func() (*ident.Keys, error){files.Create, files.Load} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), "move it to the key file") {
			t.Errorf("two places: %v", err)
		}
	}
	if err := os.Rename(filepath.Join(dir, ident.PortalKeyFile), files.Root); err != nil {
		t.Fatal(err)
	}
	if k, err := files.Load(); err != nil || k.ID() != first.ID() {
		t.Errorf("the moved key: %v", err)
	}
}

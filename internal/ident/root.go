package ident

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReadRoot reads a root key from a file outside of the data folder, written by DetachRoot.
func ReadRoot(path string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != rootKeyKind || len(block.Bytes) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s holds no root key of a portal", path)
	}
	return ed25519.NewKeyFromSeed(block.Bytes), nil
}

// DetachRoot is KeyFiles.DetachRoot for keys that are all in dir.
func DetachRoot(dir, path string) error { return KeyFiles{Dir: dir}.DetachRoot(path) }

// DetachRoot moves the root key away from the portal: it writes the key to path, where no file may
// exist, and removes the original. If the key was moved to path by hand before, that is accepted. Load
// then returns Keys without the root key.
func (f KeyFiles) DetachRoot(path string) error {
	dir, home := f.Dir, f.RootPath()
	if isSameFile(path, home) {
		return fmt.Errorf("%s is the key file that the portal uses; name another place", path)
	}
	root, err := ReadRoot(home)
	if errors.Is(err, os.ErrNotExist) {
		if root, err = ReadRoot(path); err != nil {
			return fmt.Errorf("there is no root key in %s, nor at the place you name: %w", dir, err)
		}
	} else if err != nil {
		return err
	} else if err := newFile(path, &pem.Block{Type: rootKeyKind, Bytes: root.Seed()}); errors.Is(err, os.ErrExist) {
		if there, rerr := ReadRoot(path); rerr != nil || !bytes.Equal(there, root) {
			return fmt.Errorf("%s exists and is not this portal's key; name a file that is not there", path)
		}
	} else if err != nil {
		return err
	}
	// Read the copy back, because path may be on a removable drive that loses writes.
	if there, err := ReadRoot(path); err != nil || !bytes.Equal(there, root) {
		return errors.Join(fmt.Errorf("%s does not hold the written key", path), err)
	}
	public := root.Public().(ed25519.PublicKey)
	err = newFile(filepath.Join(dir, PublicKeyFile), &pem.Block{Type: publicKeyKind, Bytes: public})
	if errors.Is(err, os.ErrExist) {
		if known, kerr := readPublic(dir); kerr != nil || !known.Equal(public) {
			return fmt.Errorf("%s names another root key; is this the right folder?", filepath.Join(dir, PublicKeyFile))
		}
	} else if err != nil {
		return err
	}
	if err := os.Remove(home); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("take the root key away: %w", err)
	}
	return errors.Join(syncFolder(filepath.Dir(home)), syncFolder(dir))
}

// isSameFile reports whether two paths lead to one file. Removing one would remove the other.
func isSameFile(a, b string) bool {
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// readPublic reads the public root key that DetachRoot leaves in the data folder.
func readPublic(dir string) (ed25519.PublicKey, error) {
	path := filepath.Join(dir, PublicKeyFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != publicKeyKind || len(block.Bytes) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%s is damaged; restore it from a backup", path)
	}
	return block.Bytes, nil
}

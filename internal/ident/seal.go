package ident

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Keys are a portal's own secrets, kept in files of its data folder that only
// its user may read: the Ed25519 key that is its identity and the key that
// seals stored credentials.
type Keys struct {
	Portal ed25519.PrivateKey
	seal   cipher.AEAD
	mark   []byte
}

// Names of the key files in the data folder.
const (
	PortalKeyFile = "portal.key"
	SealKeyFile   = "seal.key"
)

// CreateKeys makes the keys of a new portal in dir, leaving those that are
// there: a start that was cut short goes on where it was.
func CreateKeys(dir string) (*Keys, error) { return keys(dir, true) }

// LoadKeys reads the keys in dir. A missing key is an error: a new one could
// not open what was sealed, nor speak for the same portal.
func LoadKeys(dir string) (*Keys, error) { return keys(dir, false) }

func keys(dir string, create bool) (*Keys, error) {
	seed, err := loadKey(filepath.Join(dir, PortalKeyFile), "AGENTSITE PORTAL KEY", ed25519.SeedSize, create)
	if err != nil {
		return nil, err
	}
	sealKey, err := loadKey(filepath.Join(dir, SealKeyFile), "AGENTSITE SEAL KEY", 32, create)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(sealKey)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	mark, err := hkdf.Key(sha256.New, sealKey, nil, "agentsite/mark/1", sha256.Size)
	if err != nil {
		return nil, err
	}
	return &Keys{Portal: ed25519.NewKeyFromSeed(seed), seal: aead, mark: mark}, nil
}

func loadKey(path, kind string, size int, create bool) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && create {
		return createKey(path, kind, size)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing beside the database; put it back from a backup", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != kind || len(block.Bytes) != size {
		return nil, fmt.Errorf("%s is damaged; restore it from a backup", path)
	}
	return block.Bytes, nil
}

// createKey writes to a temporary file first: a crash leaves a whole key or
// none.
func createKey(path, kind string, size int) ([]byte, error) {
	key := make([]byte, size)
	rand.Read(key)
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	defer os.Remove(f.Name())
	err = pem.Encode(f, &pem.Block{Type: kind, Bytes: key})
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("write key: %w", err)
	}
	// Link fails when the file exists: a key is never replaced.
	err = os.Link(f.Name(), path)
	if errors.Is(err, os.ErrExist) {
		return loadKey(path, kind, size, false) // somebody was quicker
	}
	if err != nil {
		return nil, fmt.Errorf("keep key: %w", err)
	}
	// The name has to reach the disk as well as the bytes.
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("keep key: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return nil, fmt.Errorf("keep key: %w", err)
	}
	return key, nil
}

// ID is the portal's identity in short: 16 characters of its public key.
func (k *Keys) ID() string {
	pub := k.Portal.Public().(ed25519.PublicKey)
	return base64.RawURLEncoding.EncodeToString(pub)[:16]
}

// Mark is a text that only this portal can make, the same for the same
// purpose and subject: 160 bits in 27 characters.
func (k *Keys) Mark(purpose, subject string) string {
	h := hmac.New(sha256.New, k.mark)
	fmt.Fprintf(h, "%d:%s%s", len(purpose), purpose, subject)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:20])
}

// Seal encrypts plain; only Open with the same bound reads it.
func (k *Keys) Seal(plain, bound string) []byte {
	return k.seal.Seal(nil, nil, []byte(plain), []byte(bound))
}

// Open is the inverse of Seal.
func (k *Keys) Open(sealed []byte, bound string) (string, error) {
	plain, err := k.seal.Open(nil, nil, sealed, []byte(bound))
	if err != nil {
		return "", errors.New("a stored credential cannot be opened with this portal's seal.key")
	}
	return string(plain), nil
}

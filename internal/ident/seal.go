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
// its user may read: the Ed25519 root key that is its identity and the key that
// seals stored credentials. Those it signs with are Operational.
type Keys struct {
	// Portal is the root key, which signs the portal's card and nothing else;
	// nil when it is kept elsewhere, see Detach.
	Portal ed25519.PrivateKey
	public ed25519.PublicKey
	seal   cipher.AEAD
	mark   []byte
}

// Names of the key files in the data folder.
const (
	PortalKeyFile = "portal.key"
	SealKeyFile   = "seal.key"
	// PublicKeyFile stands in for a root key that was taken away.
	PublicKeyFile = "portal.pub"
)

const rootKeyKind, publicKeyKind = "AGENTSITE PORTAL KEY", "AGENTSITE PORTAL PUBLIC KEY"

// CreateKeys makes the keys of a new portal in dir, leaving those that are
// there: a start that was cut short goes on where it was.
func CreateKeys(dir string) (*Keys, error) { return keys(dir, true) }

// LoadKeys reads the keys in dir. A missing key is an error: a new one could
// not open what was sealed, nor speak for the same portal.
func LoadKeys(dir string) (*Keys, error) { return keys(dir, false) }

func keys(dir string, create bool) (*Keys, error) {
	k := &Keys{}
	seed, err := loadKey(filepath.Join(dir, PortalKeyFile), rootKeyKind, ed25519.SeedSize, false)
	if errors.Is(err, os.ErrNotExist) {
		public, away := readPublic(dir)
		switch {
		case away == nil:
			k.public = public
		case !errors.Is(away, os.ErrNotExist):
			return nil, away
		case create:
			seed, err = loadKey(filepath.Join(dir, PortalKeyFile), rootKeyKind, ed25519.SeedSize, true)
		}
	}
	if err != nil && k.public == nil {
		return nil, err
	}
	if seed != nil {
		k.Portal = ed25519.NewKeyFromSeed(seed)
		k.public = k.Portal.Public().(ed25519.PublicKey)
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
	k.seal, k.mark = aead, mark
	return k, nil
}

func loadKey(path, kind string, size int, create bool) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && create {
		return createKey(path, kind, size)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, &missingError{path}
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

// missingError says which key file is not there; it is an os.ErrNotExist.
type missingError struct{ path string }

func (e *missingError) Error() string {
	more := ""
	if filepath.Base(e.path) == PortalKeyFile {
		more = ", or say with `agentsite keys detach FILE` where it is kept"
	}
	return e.path + " is missing beside the database; put it back from a backup" + more
}

func (e *missingError) Unwrap() error { return os.ErrNotExist }

func createKey(path, kind string, size int) ([]byte, error) {
	key := make([]byte, size)
	rand.Read(key)
	err := newFile(path, &pem.Block{Type: kind, Bytes: key})
	if errors.Is(err, os.ErrExist) {
		return loadKey(path, kind, size, false) // somebody was quicker
	}
	return key, err
}

// newFile writes a key file that is not there yet; an error that is
// os.ErrExist when it is: a key is never replaced.
func newFile(path string, blocks ...*pem.Block) error {
	return writeKeys(path, os.Link, blocks)
}

// writeKeys writes to a temporary file first, which put then gives its name: a
// crash leaves a whole file or none.
func writeKeys(path string, put func(from, to string) error, blocks []*pem.Block) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("create key: %w", err)
	}
	defer os.Remove(f.Name())
	for _, b := range blocks {
		err = errors.Join(err, pem.Encode(f, b))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	if err := put(f.Name(), path); err != nil {
		return fmt.Errorf("keep key: %w", err)
	}
	// The name has to reach the disk as well as the bytes.
	return flush(filepath.Dir(path))
}

func flush(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("keep key: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("keep key: %w", err)
	}
	return nil
}

// Public is the public half of the root key, which the portal's id is made of.
func (k *Keys) Public() ed25519.PublicKey { return k.public }

// ID is the portal's identity in short: 16 characters of its public key.
func (k *Keys) ID() string {
	return base64.RawURLEncoding.EncodeToString(k.public)[:16]
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

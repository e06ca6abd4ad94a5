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

// Keys holds a portal's own secrets, kept in files that only its user may read (see KeyFiles): the
// Ed25519 root key that is its identity and the key that seals stored credentials. The signing keys are
// in Operational.
type Keys struct {
	// Portal is the root key, which only signs the portal's card. It is nil after DetachRoot.
	Portal ed25519.PrivateKey
	public ed25519.PublicKey
	seal   cipher.AEAD
	mark   []byte
}

// Names of the key files in the data folder.
const (
	PortalKeyFile = "portal.key"
	SealKeyFile   = "seal.key"
	// PublicKeyFile exists after DetachRoot and holds the public half of the root key.
	PublicKeyFile = "portal.pub"
)

const rootKeyKind, publicKeyKind = "AGENTSITE PORTAL KEY", "AGENTSITE PORTAL PUBLIC KEY"

// KeyFiles names the places of a portal's key files.
type KeyFiles struct {
	// Dir is the data folder.
	Dir string
	// Root is the file of the root key outside the data folder; "" for portal.key in it. All other keys
	// are in the data folder.
	Root string
}

// RootPath returns the path of the root key.
func (f KeyFiles) RootPath() string {
	if f.Root != "" {
		return f.Root
	}
	return filepath.Join(f.Dir, PortalKeyFile)
}

// Create creates the keys of a new portal. It keeps keys that exist already, so that a start that was
// interrupted can be repeated.
func (f KeyFiles) Create() (*Keys, error) { return f.open(true) }

// Load reads the keys. A missing key is an error and not replaced: with a new key, sealed data could not
// be opened, or the portal would have another identity.
func (f KeyFiles) Load() (*Keys, error) { return f.open(false) }

// CreateKeys creates the keys of a new portal in dir, see KeyFiles.Create.
func CreateKeys(dir string) (*Keys, error) { return KeyFiles{Dir: dir}.Create() }

// LoadKeys reads the keys in dir, see KeyFiles.Load.
func LoadKeys(dir string) (*Keys, error) { return KeyFiles{Dir: dir}.Load() }

func (f KeyFiles) open(create bool) (*Keys, error) {
	k, dir := &Keys{}, f.Dir
	if err := f.checkRoot(); err != nil {
		return nil, err
	}
	seed, err := loadKey(f.RootPath(), rootKeyKind, ed25519.SeedSize, false)
	if errors.Is(err, os.ErrNotExist) {
		public, away := readPublic(dir)
		switch {
		case away == nil:
			k.public = public
		case !errors.Is(away, os.ErrNotExist):
			return nil, away
		case create:
			seed, err = loadKey(f.RootPath(), rootKeyKind, ed25519.SeedSize, true)
		}
	}
	if err != nil && k.public == nil {
		return nil, err
	}
	if seed != nil {
		k.Portal = ed25519.NewKeyFromSeed(seed)
		k.public = k.Portal.Public().(ed25519.PublicKey)
	}
	if err := k.openSeal(dir, create); err != nil {
		return nil, err
	}
	return k, nil
}

// LoadSealKey reads the key that seals alone. The result can seal, open and make marks, but not sign.
func LoadSealKey(dir string) (*Keys, error) {
	k := &Keys{}
	return k, k.openSeal(dir, false)
}

func (k *Keys) openSeal(dir string, create bool) error {
	sealKey, err := loadKey(filepath.Join(dir, SealKeyFile), "AGENTSITE SEAL KEY", 32, create)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(sealKey)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return err
	}
	mark, err := hkdf.Key(sha256.New, sealKey, nil, "agentsite/mark/1", sha256.Size)
	if err != nil {
		return err
	}
	k.seal, k.mark = aead, mark
	return nil
}

// checkRoot returns an error for a root key outside the data folder that other users can read, or that
// is in the data folder as well: a copy of that folder would then hold the identity of the portal.
func (f KeyFiles) checkRoot() error {
	if f.Root == "" {
		return nil
	}
	inside := filepath.Join(f.Dir, PortalKeyFile)
	if _, err := os.Lstat(inside); err == nil {
		return fmt.Errorf("the key file is %s, but %s is there too: move it to the key file, or start without a key file",
			f.Root, inside)
	}
	st, err := os.Stat(f.Root)
	if err == nil && st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can read the key file %s (mode %#o): run `chmod 600` on it", f.Root, st.Mode().Perm())
	}
	return nil // reading it reports other errors
}

func loadKey(path, kind string, size int, create bool) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && create {
		return createKey(path, kind, size)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, &missingError{path, kind}
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

// missingError reports a missing key file with the way to fix it; errors.Is(err, os.ErrNotExist) is
// true.
type missingError struct{ path, kind string }

func (e *missingError) Error() string {
	more := ""
	if e.kind == rootKeyKind {
		more = ", or say with `agentsite keys detach FILE` where it is kept"
	}
	return e.path + " is missing, but the database is there; put it back from a backup" + more
}

func (e *missingError) Unwrap() error { return os.ErrNotExist }

func createKey(path, kind string, size int) ([]byte, error) {
	key := make([]byte, size)
	rand.Read(key)
	err := newFile(path, &pem.Block{Type: kind, Bytes: key})
	if errors.Is(err, os.ErrExist) {
		return loadKey(path, kind, size, false) // another process created the key first
	}
	return key, err
}

// newFile writes a key file. It returns os.ErrExist if the file exists, because a key is never replaced.
func newFile(path string, blocks ...*pem.Block) error {
	return writeKeys(path, os.Link, blocks)
}

// writeKeys writes blocks to a temporary file and then calls put to give it the name path, so that a
// crash leaves a whole file or none.
func writeKeys(path string, put func(from, to string) error, blocks []*pem.Block) error {
	// The start of a portal removes files of this name, which a kill left; CreateTemp gives mode 0600.
	f, err := os.CreateTemp(filepath.Dir(path), ".agentsite-tmp-key-*")
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
	// Sync the folder as well, so that the file's name survives a crash.
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("keep key: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("keep key: %w", err)
	}
	return nil
}

// Public returns the public half of the root key. The portal's network id is derived from it.
func (k *Keys) Public() ed25519.PublicKey { return k.public }

// ID returns a short form of the portal's identity for people: 16 characters of its public key.
func (k *Keys) ID() string {
	return base64.RawURLEncoding.EncodeToString(k.public)[:16]
}

// Mark returns a text that depends on purpose and subject and that only this portal can compute: 160
// bits in 27 characters. Different purposes give unrelated marks.
func (k *Keys) Mark(purpose, subject string) string {
	h := hmac.New(sha256.New, k.mark)
	fmt.Fprintf(h, "%d:%s%s", len(purpose), purpose, subject)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:20])
}

// Seal encrypts and authenticates plain. bound is the context, for example a row's id; Open fails with
// another one, so that sealed data cannot be moved to another row.
func (k *Keys) Seal(plain, bound string) []byte {
	return k.seal.Seal(nil, nil, []byte(plain), []byte(bound))
}

// Open decrypts the result of Seal. It fails if the data was changed or bound is different.
func (k *Keys) Open(sealed []byte, bound string) (string, error) {
	plain, err := k.seal.Open(nil, nil, sealed, []byte(bound))
	if err != nil {
		return "", errors.New("a stored credential cannot be opened with this portal's seal.key")
	}
	return string(plain), nil
}

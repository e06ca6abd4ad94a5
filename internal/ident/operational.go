package ident

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// OperationalKeysFile is the name of the file in the data folder with the keys that sign requests and
// records.
const OperationalKeysFile = "operational.keys"

const operationalKind = "AGENTSITE OPERATIONAL KEY"

// Number and lifetimes of operational keys. Number and life are also bounds of record.Card.
const (
	maxOperational  = 4
	operationalLife = 90 * 24 * time.Hour
	// renewOperational is the age of the newest key at which a new one is made. Signatures are valid for
	// at most 37 days, and the old key stays valid for the other 45 days.
	renewOperational = 45 * 24 * time.Hour
	// settleOperational is how long a new key waits before it signs, if an older key can sign: other
	// portals may cache a key directory for an hour.
	settleOperational = 2 * time.Hour
	// backdate is subtracted from the start of a new key's validity, for portals whose clocks are
	// behind.
	backdate = 10 * time.Minute
)

// OperationalKey is a key that signs requests and records, valid from From until before Until, at most
// 90 days.
type OperationalKey struct {
	Key         ed25519.PrivateKey
	From, Until time.Time
}

// Public returns the public half of the key, which the portal's card lists.
func (k OperationalKey) Public() ed25519.PublicKey { return k.Key.Public().(ed25519.PublicKey) }

// Operational holds a portal's operational keys, stored in one file of the data folder. It is safe for
// concurrent use in one process.
type Operational struct {
	path string
	root ed25519.PublicKey

	mu   sync.Mutex       // guards keys and the file
	keys []OperationalKey // oldest first; replaced as a whole, never modified
}

// ErrTooManyKeys is returned by Rotate if there are 4 unexpired keys, the maximum that a card can list.
var ErrTooManyKeys = errors.New("there are 4 operational keys already; revoke one, or wait until the oldest has ended")

// ErrNoSuchKey is returned by Revoke for an unknown key.
var ErrNoSuchKey = errors.New("there is no such operational key")

// OpenOperational reads the operational keys in dir and renews them. It creates the first key if there
// is none. A file that belongs to a portal with another root key is an error.
func OpenOperational(dir string, root ed25519.PublicKey, now time.Time) (*Operational, error) {
	o := &Operational{path: filepath.Join(dir, OperationalKeysFile), root: root}
	b, err := os.ReadFile(o.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read keys: %w", err)
	default:
		if o.keys, err = parseOperational(b, root); err != nil {
			return nil, fmt.Errorf("%s %w", o.path, err)
		}
	}
	if _, err := o.Renew(now); err != nil {
		return nil, err
	}
	return o, nil
}

// CheckOperational returns the problem with the contents of a file of operational keys, or nil. root is
// the public root key of the portal to which the file must belong.
func CheckOperational(file []byte, root ed25519.PublicKey) error {
	_, err := parseOperational(file, root)
	return err
}

func parseOperational(b []byte, root ed25519.PublicKey) ([]OperationalKey, error) {
	var out []OperationalKey
	for len(bytes.TrimSpace(b)) > 0 {
		block, rest := pem.Decode(b)
		if block == nil || block.Type != operationalKind || len(block.Bytes) != ed25519.SeedSize ||
			len(out) == maxOperational {
			return nil, errors.New("is damaged; restore it from a backup, or move it away to get new keys")
		}
		from, ferr := strconv.ParseInt(block.Headers["From"], 10, 64)
		until, uerr := strconv.ParseInt(block.Headers["Until"], 10, 64)
		k := OperationalKey{ed25519.NewKeyFromSeed(block.Bytes), time.UnixMilli(from).UTC(),
			time.UnixMilli(until).UTC()}
		if ferr != nil || uerr != nil || from <= 0 || !k.Until.After(k.From) || k.Until.Sub(k.From) > operationalLife {
			return nil, errors.New("is damaged: a key has no time")
		}
		if block.Headers["Portal"] != portalHeader(root) {
			return nil, errors.New("belongs to another portal; restore it from a backup, or move it away to get " +
				"new keys")
		}
		out = append(out, k)
		b = rest
	}
	return out, nil
}

func portalHeader(root ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(root) }

// List returns the keys that are neither revoked nor removed by Renew, oldest first.
func (o *Operational) List() []OperationalKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.keys)
}

// Current returns the keys that are valid at the time now, oldest first. They can verify, but see
// Signing.
func (o *Operational) Current(now time.Time) []OperationalKey {
	return slices.DeleteFunc(o.List(), func(k OperationalKey) bool {
		return now.Before(k.From) ||
			!now.Before(k.Until)
	})
}

// Signing returns the newest key that other portals can know at the time now and that ok accepts; a nil
// ok accepts all. The second result is false if there is none.
func (o *Operational) Signing(now time.Time, ok func(OperationalKey) bool) (OperationalKey, bool) {
	list := o.Current(now)
	if ok != nil {
		list = slices.DeleteFunc(list, func(k OperationalKey) bool { return !ok(k) })
	}
	if len(list) == 0 {
		return OperationalKey{}, false
	}
	for _, k := range slices.Backward(list) {
		if now.Sub(k.From) >= backdate+settleOperational {
			return k, true
		}
	}
	return list[0], true
}

// Renew removes expired keys. It makes a new key if the newest has reached half of its life or if none
// is valid. It reports whether the keys changed; the caller must then publish a new card.
func (o *Operational) Renew(now time.Time) (changed bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := slices.DeleteFunc(slices.Clone(o.keys), func(k OperationalKey) bool { return !now.Before(k.Until) })
	changed = len(keys) != len(o.keys)
	current := slices.ContainsFunc(keys, func(k OperationalKey) bool { return !now.Before(k.From) })
	if n := len(keys); n < maxOperational && (!current || now.Sub(keys[n-1].From) >= renewOperational) {
		keys, changed = append(keys, newOperational(now)), true
	}
	if !changed {
		return false, nil
	}
	return true, o.saveKeys(keys)
}

// Rotate makes a new key. The other keys stay valid until they expire. It fails with ErrTooManyKeys.
func (o *Operational) Rotate(now time.Time) (OperationalKey, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := slices.DeleteFunc(slices.Clone(o.keys), func(k OperationalKey) bool { return !now.Before(k.Until) })
	if len(keys) >= maxOperational {
		return OperationalKey{}, ErrTooManyKeys
	}
	k := newOperational(now)
	return k, o.saveKeys(append(keys, k))
}

// Revoke deletes a key for good: once the portal's next card is published, the key and all its
// signatures are invalid. A new key replaces it if it was the only one.
func (o *Operational) Revoke(now time.Time, public ed25519.PublicKey) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := slices.DeleteFunc(slices.Clone(o.keys), func(k OperationalKey) bool { return k.Public().Equal(public) })
	if len(keys) == len(o.keys) {
		return ErrNoSuchKey
	}
	if !slices.ContainsFunc(keys, func(k OperationalKey) bool { return now.Before(k.Until) }) {
		keys = append(keys, newOperational(now))
	}
	return o.saveKeys(keys)
}

func newOperational(now time.Time) OperationalKey {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil { // cannot happen: crypto/rand does not fail
		panic(err)
	}
	from := now.Add(-backdate).UTC().Truncate(time.Millisecond)
	return OperationalKey{key, from, from.Add(operationalLife)}
}

// saveKeys writes keys to the file and, after success, to o.keys; the caller must hold mu.
func (o *Operational) saveKeys(keys []OperationalKey) error {
	var blocks []*pem.Block
	for _, k := range keys {
		blocks = append(blocks, &pem.Block{Type: operationalKind, Bytes: k.Key.Seed(), Headers: map[string]string{
			"Portal": portalHeader(o.root), "From": strconv.FormatInt(k.From.UnixMilli(), 10),
			"Until": strconv.FormatInt(k.Until.UnixMilli(), 10)}})
	}
	if err := writeKeys(o.path, os.Rename, blocks); err != nil {
		return err
	}
	o.keys = keys
	return nil
}

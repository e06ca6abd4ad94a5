// Package ident defines identities: ids, names and handles, keys, secrets and the Actor of every
// service call. It does not depend on services, storage or protocols. Endpoints build Actors from
// credentials; services decide about their rights.
package ident

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"sync"

	"github.com/oklog/ulid/v2"
)

// NewID returns a new ULID: 26 characters, unique, sorting roughly by time. Order that matters is by
// seq, never by id. An id cannot be guessed from other ids, because for visitors without a cookie the
// id of their conversation is the proof that it is theirs.
func NewID() string {
	ms := ulid.Now()
	ids.Lock()
	id, err := ulid.New(ms, ids.next)
	ids.Unlock()
	if err != nil { // no room above the last id of this millisecond
		id = ulid.MustNew(ms, rand.Reader)
	}
	return id.String()
}

// idStep bounds the random step from an id to the next of the same millisecond. The library's default
// is a generator seeded with the time and steps of 32 bits, which can be guessed.
const idStep = 1 << 62

var ids = struct {
	sync.Mutex // guards next
	next       io.Reader
}{next: ulid.Monotonic(rand.Reader, idStep)}

// ValidID reports whether s has the form of an id. The id need not exist.
func ValidID(s string) bool {
	_, err := ulid.ParseStrict(s)
	return err == nil && len(s) == ulid.EncodedSize
}

// secretBytes is the entropy of every secret that we issue: 256 bit.
const secretBytes = 32

// NewSecret returns prefix followed by 43 characters of fresh randomness. The
// caller shows it once and stores only HashSecret of it.
func NewSecret(prefix string) string {
	var b [secretBytes]byte
	rand.Read(b[:])
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashSecret returns the form in which a secret is stored and looked up. A
// plain SHA-256 is enough because secrets carry 256 bit of entropy.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// EqualSecret compares two secrets in constant time; an empty secret equals
// nothing, not even another empty one.
func EqualSecret(a, b string) bool {
	return a != "" && b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// Prefixes of the secrets that we issue, so that people and scanners recognise a leaked one.
const (
	TokenPrefix   = "ags_"
	SessionPrefix = "agss_"
	LinkPrefix    = "agsl_"
	InvitePrefix  = "agsi_"
)

// BearerToken extracts the token of an Authorization header, or "".
func BearerToken(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

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

// NewID returns a new ULID: 26 characters, unique, sorted roughly by creation time. Exact order is by
// seq, never by id. An id cannot be guessed from other ids, because a visitor without a cookie proves
// with the id of a conversation that the conversation is theirs.
func NewID() string {
	ms := ulid.Now()
	ids.Lock()
	id, err := ulid.New(ms, ids.next)
	ids.Unlock()
	if err != nil { // the random part would overflow
		id = ulid.MustNew(ms, rand.Reader)
	}
	return id.String()
}

// idStep is the maximum random distance between two ids of the same millisecond. The library's default
// generator is seeded with the time and takes steps of 32 bits, so its ids can be guessed.
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

// secretBytes is the size of every secret that this portal issues, 256 bit of entropy.
const secretBytes = 32

// NewSecret returns prefix followed by 43 characters of fresh randomness. The caller shows the secret
// once and stores only its HashSecret.
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

// Prefixes of the secrets that this portal issues. They allow people and scanners to recognize a leaked
// secret.
const (
	TokenPrefix   = "ags_"
	SessionPrefix = "agss_"
	LinkPrefix    = "agsl_"
	InvitePrefix  = "agsi_"
)

// BearerToken returns the token in the value of an Authorization header, or "" if there is none.
func BearerToken(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

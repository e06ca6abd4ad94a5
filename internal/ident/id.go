// Package ident is who and what: ids, names and handles, keys, secrets and
// the Actor that every service call is made by. It knows no service, no
// storage and no protocol; doors build Actors from credentials, services
// decide what an Actor may do.
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

// NewID returns a new ULID: 26 characters, unique, sorting roughly by time.
// Order that matters is by seq, never by id. Nobody can tell an id from others
// they have seen: to visitors without a cookie, that of their conversation is
// what shows that it is theirs.
func NewID() string {
	ms := ulid.Now()
	ids.Lock()
	id, err := ulid.New(ms, ids.next)
	ids.Unlock()
	if err != nil { // no room above the last one of this millisecond
		id = ulid.MustNew(ms, rand.Reader)
	}
	return id.String()
}

// idStep bounds the random step from an id to the next of the same
// millisecond. What the library does by itself is a generator that is seeded
// with the time, and steps of 32 bits.
const idStep = 1 << 62

var ids = struct {
	sync.Mutex // guards next
	next       io.Reader
}{next: ulid.Monotonic(rand.Reader, idStep)}

// ValidID reports whether s has the form of an id. It says nothing about
// whether such a thing exists.
func ValidID(s string) bool {
	_, err := ulid.ParseStrict(s)
	return err == nil && len(s) == ulid.EncodedSize
}

// secretBytes is the entropy of every secret we hand out: 256 bit.
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

// Prefixes of the secrets we hand out, so that a leaked one can be recognised
// by people and by scanners.
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

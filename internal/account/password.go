package account

import (
	"context"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
)

// Minimum and maximum length of a password in characters, and its maximum size in bytes.
const (
	minPassword      = 10
	maxPassword      = 256
	maxPasswordBytes = 1024
)

// MinPassword is the minimum length of a password in characters, which forms display.
const MinPassword = minPassword

// hashParams are the minimum that OWASP recommends for argon2id: 19 MiB, two passes, one thread. They
// are constant so that all hashes cost the same on every machine.
var hashParams = argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// cheapParams replace hashParams if Config.CheapHashes is set.
var cheapParams = argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// hasher computes password hashes behind a gate.
type hasher struct {
	*gate
	params argon2id.Params
	once   sync.Once
	decoy  string // set once by decoyHash
}

// newHasher returns a hasher where at most the given number of computations wait.
func newHasher(cheap bool, waiting int) *hasher {
	params := hashParams
	if cheap {
		params = cheapParams
	}
	return &hasher{gate: newGate(waiting), params: params}
}

// decoyHash returns a hash that no password matches. It is compared for unknown names, so that the
// answer takes as long as for known ones.
func (h *hasher) decoyHash() string {
	h.once.Do(func() {
		hash, err := argon2id.CreateHash("no account has this password", &h.params)
		if err != nil {
			panic(err) // cannot happen: crypto/rand never fails
		}
		h.decoy = hash
	})
	return h.decoy
}

// hashPassword returns the hash of a new password. For a name that signs up, the client has no name.
func (h *hasher) hashPassword(ctx context.Context, c client, password string) (string, error) {
	if err := h.acquire(ctx, c); err != nil {
		return "", err
	}
	defer h.release(c)
	h.fail(c)
	return argon2id.CreateHash(password, &h.params)
}

// matchesHash reports whether password belongs to hash. An empty hash never matches, but takes as long.
// The errors are those of acquire.
func (h *hasher) matchesHash(ctx context.Context, c client, password, hash string) (bool, error) {
	if len(password) > maxPasswordBytes {
		return false, nil
	}
	if err := h.acquire(ctx, c); err != nil {
		return false, err
	}
	defer h.release(c)
	decoy := h.decoyHash() // for each name, so that the first unknown one takes no longer
	if hash == "" {
		_, err := argon2id.ComparePasswordAndHash(password, decoy)
		return false, err
	}
	return argon2id.ComparePasswordAndHash(password, hash)
}

// CheckPassword returns the problem with a new password, or nil. name is the account's name, which must
// not be the password.
func CheckPassword(password, name string) error {
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword || n > maxPassword || len(password) > maxPasswordBytes:
		return fmt.Errorf("use %d to %d characters", minPassword, maxPassword)
	case !utf8.ValidString(password):
		return fmt.Errorf("use text (UTF-8)")
	case password == name || onlyOneRune(password):
		return fmt.Errorf("choose something harder to guess")
	}
	return nil
}

func onlyOneRune(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	for _, r := range s {
		if r != first {
			return false
		}
	}
	return true
}

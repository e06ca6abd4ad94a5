// Package transcript chains the entries of a conversation by hashes, so that a changed or missing one is found.
//
// An entry enters the chain by a commitment to its author's handle and its body, made with a random salt. Once the salt
// is destroyed, the commitment holds nothing of either, and the chain still verifies.
package transcript

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// SaltBytes is the length of a salt.
const SaltBytes = 16

// destroyedBytes is the length of the mark that takes the place of a destroyed salt.
const destroyedBytes = 1

// Salt is the salt of an entry: SaltBytes random bytes, nil for an entry that is older than salts, or Destroyed.
type Salt []byte

// Destroyed returns the mark of an entry without its salt, which was erased with the content.
func Destroyed() Salt { return Salt{0} }

// NewSalt returns a new random salt.
func NewSalt() Salt {
	s := make(Salt, SaltBytes)
	rand.Read(s) // It never fails.
	return s
}

// Older reports whether the entry has no salt because it is older than salts.
func (s Salt) Older() bool { return len(s) == 0 }

// IsDestroyed reports whether the salt was destroyed.
func (s Salt) IsDestroyed() bool { return len(s) == destroyedBytes }

// Entry holds the fields of one message that the chain covers.
type Entry struct {
	Seq        int64
	ID         string
	SenderKind string
	SenderID   string
	// SenderHandle is the author's handle as readers see it.
	SenderHandle string
	Kind         string
	TaskID       string
	TaskState    string
	Reason       string
	Target       int64
	CreatedAt    int64 // milliseconds since 1970
	Body         []byte
	Salt         Salt
	// Commitment is that of an entry with a deleted body, nil for others. For an entry that is older than salts it is
	// the SHA-256 of the body.
	Commitment []byte
}

// Commit returns the commitment of an entry with its body: to handle and body if it has a salt, else to its body.
func (e *Entry) Commit() []byte {
	h := sha256.New()
	if !e.Salt.Older() {
		h.Write(e.Salt)
		writeField(h, []byte(e.SenderHandle))
	}
	h.Write(e.Body)
	return h.Sum(nil)
}

// writeField writes a field with its length, so that no two entries share an encoding.
func writeField(h hash.Hash, b []byte) {
	writeNumber(h, int64(len(b)))
	h.Write(b)
}

func writeNumber(h hash.Hash, v int64) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(v))
	h.Write(n[:])
}

// Chain returns the hash of an entry that follows prev (nil for the first).
func Chain(prev []byte, e Entry) []byte {
	commitment := e.Commitment
	if commitment == nil {
		commitment = e.Commit()
	}
	h := sha256.New()
	switch {
	case !e.Salt.Older():
		h.Write([]byte("agentsite/transcript/3"))
		writeNumber(h, e.Target)
	case e.Target == 0:
		h.Write([]byte("agentsite/transcript/1"))
	default: // Entries of the first release have no target, and their hashes must stay valid.
		h.Write([]byte("agentsite/transcript/2"))
		writeNumber(h, e.Target)
	}
	writeField(h, prev)
	writeNumber(h, e.Seq)
	writeField(h, []byte(e.ID))
	writeField(h, []byte(e.SenderKind))
	writeField(h, []byte(e.SenderID))
	if e.Salt.Older() {
		writeField(h, []byte(e.SenderHandle))
	}
	for _, s := range []string{e.Kind, e.TaskID, e.TaskState, e.Reason} {
		writeField(h, []byte(s))
	}
	writeNumber(h, e.CreatedAt)
	h.Write(commitment)
	return h.Sum(nil)
}

package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
)

// PortalID is the permanent id of a portal: "p1" and 52 characters derived from its root key. The
// signature of a record proves it.
type PortalID string

// KeyID is the id of a key of a portal: 16 characters derived from the key. It is short, so it may
// only select among the few keys of one card.
type KeyID string

const (
	portalPrefix = "p1"
	agentPrefix  = "a1"
	keyIDLen     = 16
	keyIDBytes   = 10
)

var base32lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hashLabel returns the SHA-256 of a label and the labelled bytes.
func hashLabel(label string, b []byte) Hash {
	var room [192]byte // avoids an allocation; large enough for the longest agent id
	return sha256.Sum256(append(append(room[:0], label...), b...))
}

// PortalOf returns the id of the portal with that root key.
func PortalOf(root Public) PortalID {
	return portalID(hashLabel("agentsite/portal/1", root[:]))
}

// PortalWith returns the id whose Digest is d.
func PortalWith(d Hash) PortalID { return portalID(d) }

func portalID(d Hash) PortalID { return PortalID(portalPrefix + base32lower.EncodeToString(d[:])) }

// Digest returns the 32 bytes that the id encodes, which are also the portal's place in the DHT. ok
// is false if the id is invalid.
func (p PortalID) Digest() (Hash, bool) { return parseDigest(portalPrefix, string(p)) }

// PortableID returns the id of an agent with its own key: "a1" and 52 characters. Several portals
// may list it.
func PortableID(pub Public) string {
	d := hashLabel("agentsite/agent/1", pub[:])
	return agentPrefix + base32lower.EncodeToString(d[:])
}

// KeyIDOf returns the id of a public key; equal ids do not prove equal keys.
func KeyIDOf(pub Public) KeyID {
	d := hashLabel("agentsite/key/1", pub[:])
	return KeyID(base32lower.EncodeToString(d[:keyIDBytes]))
}

// The keys of the DHT, under which the portals that list an agent, offer a capability or claim a host
// are found.

// AgentKey returns the key of an agent's id, in the form of AgentID. It is also the key of the
// agent's leaf in its portal's tree.
func AgentKey(id string) Hash { return hashLabel("agentsite/k/agent", []byte(id)) }

// HostKey returns the key of a host, as in handles and in the origins of cards: in lower case, with
// a port only if it is not the scheme's own. The values under it are of the portals that claim the
// host.
func HostKey(host string) Hash { return hashLabel("agentsite/k/host", []byte(strings.ToLower(host))) }

// CapKeys returns the keys of a capability: its own first, then those of the taxonomies above it
// ("a/b/c" is in "a/b" and in "a").
func CapKeys(tag string) []Hash {
	tag = strings.ToLower(tag)
	var keys []Hash
	for {
		keys = append(keys, hashLabel("agentsite/k/cap", []byte(tag)))
		i := strings.LastIndexByte(tag, '/')
		if i < 0 {
			return keys
		}
		tag = tag[:i]
	}
}

// AgentID returns the network id of an agent: its portal and its id there, or only its own id if it
// has a key.
func AgentID(portal PortalID, id string) string {
	if isPortable(id) {
		return id
	}
	return string(portal) + "/" + id
}

// Portable reports whether an id has the form of PortableID: the id of an agent with its own key.
func Portable(id string) bool { return isPortable(id) }

func isPortable(id string) bool {
	_, ok := parseDigest(agentPrefix, id)
	return ok
}

func parseDigest(prefix, s string) (d Hash, ok bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || len(rest) != base32lower.EncodedLen(len(d)) {
		return d, false
	}
	n, err := base32lower.Decode(d[:], []byte(rest))
	// Only one spelling is valid per id: the decoder ignores line ends and unused bits.
	return d, err == nil && n == len(d) && base32lower.EncodeToString(d[:]) == rest
}

func parseKeyID(b []byte) (KeyID, bool) {
	if len(b) != keyIDLen {
		return "", false
	}
	for _, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= '2' && c <= '7') {
			return "", false
		}
	}
	return KeyID(b), true
}

// Hash is a SHA-256, in text 43 characters of base64url.
type Hash [32]byte

// Public is an Ed25519 public key, in text as a Hash.
type Public [32]byte

// Signature is an Ed25519 signature, in text 86 characters of base64url.
type Signature [64]byte

var errBinary = errors.New("is not base64url of the right length")

func (h Hash) isLess(o Hash) bool { return bytes.Compare(h[:], o[:]) < 0 }

func (h Hash) String() string { return encoding.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return encoding.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(b []byte) error { return decodeExact(h[:], b) }

func (p Public) String() string { return encoding.EncodeToString(p[:]) }

// MarshalText implements encoding.TextMarshaler.
func (p Public) MarshalText() ([]byte, error) { return encoding.AppendEncode(nil, p[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Public) UnmarshalText(b []byte) error { return decodeExact(p[:], b) }

// MarshalText implements encoding.TextMarshaler.
func (s Signature) MarshalText() ([]byte, error) { return encoding.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Signature) UnmarshalText(b []byte) error { return decodeExact(s[:], b) }

// decodeExact decodes text to exactly len(dst) bytes. The base64 decoder skips line ends, so text that
// contains some comes out short and is refused.
func decodeExact(dst, text []byte) error {
	if len(text) != encoding.EncodedLen(len(dst)) {
		return errBinary
	}
	if n, err := encoding.Decode(dst, text); err != nil || n != len(dst) {
		return errBinary
	}
	return nil
}

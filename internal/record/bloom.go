package record

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
)

// MaxBloom bounds a filter, in bytes: 20,000 terms at one wrong yes in 100.
const MaxBloom = 24_000

// bloomHashes is how many bits a term sets: the best number for 1 %.
const bloomHashes = 7

// Bloom is a set of terms that never denies one it has and affirms about one
// in a hundred that it has not. In text it is base64url.
type Bloom []byte

// NewBloom returns a filter for n terms, or the largest there is.
func NewBloom(n int) Bloom {
	bits := math.Ceil(float64(max(n, 1)) * -math.Log(0.01) / (math.Ln2 * math.Ln2))
	return make(Bloom, min(int(bits)/8+1, MaxBloom))
}

// Term is a word as filters of any size have it, for who asks many.
type Term struct{ x, y uint64 }

// TermOf returns the term of a word; its case does not matter. x and y are the
// first two 64-bit big-endian numbers of its digest.
func TermOf(word string) Term {
	d := digest("agentsite/k/term", []byte(strings.ToLower(word)))
	return Term{binary.BigEndian.Uint64(d[:8]), binary.BigEndian.Uint64(d[8:16])}
}

// Add puts a word in.
func (b Bloom) Add(word string) {
	if len(b) == 0 {
		return
	}
	t := TermOf(word)
	for range bloomHashes {
		bit := t.x % (uint64(len(b)) * 8)
		b[bit/8] |= 1 << (bit % 8)
		t.x += t.y // wraps at 2^64
	}
}

// Has reports whether the word may be in.
func (b Bloom) Has(word string) bool { return b.HasTerm(TermOf(word)) }

// HasTerm is Has of a term. Its bits are x + i·y, modulo the size of the filter.
func (b Bloom) HasTerm(t Term) bool {
	for range bloomHashes {
		if len(b) == 0 {
			return false
		}
		bit := t.x % (uint64(len(b)) * 8)
		if b[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
		t.x += t.y
	}
	return true
}

// Wrong is how likely the filter affirms a word that it has not.
func (b Bloom) Wrong() float64 {
	set := 0
	for _, v := range b {
		set += bits.OnesCount8(v)
	}
	return math.Pow(float64(set)/float64(max(len(b), 1)*8), bloomHashes)
}

// MarshalText implements encoding.TextMarshaler.
func (b Bloom) MarshalText() ([]byte, error) { return encoding.AppendEncode(nil, b), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bloom) UnmarshalText(text []byte) error {
	n := encoding.DecodedLen(len(text))
	if n > MaxBloom {
		return errBinary
	}
	out := make(Bloom, n)
	if got, err := encoding.Decode(out, text); err != nil || got != n {
		return errBinary
	}
	*b = out
	return nil
}

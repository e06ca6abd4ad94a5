package record

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
)

// MaxBloom is the size of the largest filter, in bytes: 20,000 terms with 1 % false positives.
const MaxBloom = 24_000

// bloomHashes is the number of bits set for each term: the optimum for 1 % false positives.
const bloomHashes = 7

// Bloom is a Bloom filter: Has is true for every word in the set and for about 1 % of the others. Its
// text form is base64url.
type Bloom []byte

// NewBloom returns an empty filter sized for n terms, at most MaxBloom bytes.
func NewBloom(n int) Bloom {
	bits := math.Ceil(float64(max(n, 1)) * -math.Log(0.01) / (math.Ln2 * math.Ln2))
	return make(Bloom, min(int(bits)/8+1, MaxBloom))
}

// Term is a hashed word. It fits filters of any size, so that a query word is hashed once for many
// filters.
type Term struct{ x, y uint64 }

// TermOf returns the term of a word, ignoring case. x and y are the first two 64-bit big-endian
// numbers of its digest.
func TermOf(word string) Term {
	d := hashLabel("agentsite/k/term", []byte(strings.ToLower(word)))
	return Term{binary.BigEndian.Uint64(d[:8]), binary.BigEndian.Uint64(d[8:16])}
}

// Add adds a word to the set, ignoring case.
func (b Bloom) Add(word string) {
	if len(b) == 0 {
		return
	}
	t := TermOf(word)
	for range bloomHashes {
		bit := t.x % (uint64(len(b)) * 8)
		b[bit/8] |= 1 << (bit % 8)
		t.x += t.y // the uint64 overflow is intended
	}
}

// Has reports whether the word may be in the set, ignoring case; false is certain.
func (b Bloom) Has(word string) bool { return b.HasTerm(TermOf(word)) }

// HasTerm is Has for a term. Its bits are x + i·y, modulo the size of the filter.
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

// Wrong returns the probability that Has is true for a word outside of the set, from the number of set
// bits.
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

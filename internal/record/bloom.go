package record

import (
	"encoding/binary"
	"math"
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

// Add puts a term in; its case does not matter.
func (b Bloom) Add(term string) {
	for bit := range b.bits(term) {
		b[bit/8] |= 1 << (bit % 8)
	}
}

// Has reports whether the term may be in.
func (b Bloom) Has(term string) bool {
	for bit := range b.bits(term) {
		if b[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return len(b) > 0
}

// bits yields the bits of a term: x + i·y, where x and y are the first two
// 64-bit big-endian numbers of its digest, modulo the size of the filter.
func (b Bloom) bits(term string) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if len(b) == 0 {
			return
		}
		d := digest("agentsite/k/term", []byte(strings.ToLower(term)))
		x, y := binary.BigEndian.Uint64(d[:8]), binary.BigEndian.Uint64(d[8:16])
		for range bloomHashes {
			if !yield(x % (uint64(len(b)) * 8)) {
				return
			}
			x += y // wraps at 2^64
		}
	}
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

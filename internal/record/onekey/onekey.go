// Package onekey checks many Ed25519 signatures of one key, as in a log, at less than half the cost
// of crypto/ed25519 for each. Its result is the same for every signature, valid or not: it computes
// the same point by the same complete formulas and compares the same bytes, see Key.Verify. All
// inputs are public, so its time may depend on them. It does not know records.
//
//	key := onekey.New(pub)
//	for some := range slices.Chunk(list, onekey.MaxAtOnce) {
//	key.Verify(some, ok)
//	}
package onekey

import (
	"crypto/ed25519"
	"crypto/sha512"
	"sync"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"
)

const (
	// Fewest is the number of signatures of one key from which on New and Verify are cheaper than
	// crypto/ed25519.
	Fewest = 32
	// MaxAtOnce is the number of signatures in one call of Verify.
	MaxAtOnce = 16
	// keyBits and baseBits are the bits of a scalar that one addition handles. A table has about
	// 2^bits/2 * 256/bits points of 160 bytes: 220 kB for a key, computed within 0.3 ms, and 660 kB
	// for the base point, computed once.
	keyBits  = 6
	baseBits = 8
)

// Key is a public key with precomputed multiples of its point. It is immutable.
type Key struct {
	pub  [ed25519.PublicKeySize]byte
	less *multiples // multiples of the negated point
}

// Signed is a signature and the message that it signs.
type Signed struct {
	Message []byte
	Sig     *[ed25519.SignatureSize]byte
}

// New prepares a public key for Verify. For an encoding that is no point, Verify rejects every
// signature.
func New(pub [ed25519.PublicKeySize]byte) *Key {
	k := &Key{pub: pub}
	if a, err := new(edwards25519.Point).SetBytes(pub[:]); err == nil {
		k.less = multiplesOf(a.Negate(a), keyBits)
	}
	return k
}

// base holds the multiples of the base point, which are always the same.
var base = sync.OnceValue(func() *multiples { return multiplesOf(edwards25519.NewGeneratorPoint(), baseBits) })

// Verify decides for each of list, at most MaxAtOnce, whether it is a signature of the key: ok must
// be as long. It follows RFC 8032, 5.1.7 without the cofactor, as crypto/ed25519 does: S below the
// order of the base point, and R equal to the bytes of S·B - k·A, where k is the number that
// SHA-512 of R, A and the message encodes.
func (k *Key) Verify(list []Signed, ok []bool) {
	clear(ok)
	if k.less == nil {
		return
	}
	var points [MaxAtOnce]edwards25519.Point
	var at [MaxAtOnce]int
	n := 0
	hash := sha512.New()
	var digest [sha512.Size]byte
	var s, c edwards25519.Scalar
	for i := range list {
		sig := list[i].Sig
		if _, err := s.SetCanonicalBytes(sig[32:]); err != nil {
			continue
		}
		hash.Reset()
		hash.Write(sig[:32])
		hash.Write(k.pub[:])
		hash.Write(list[i].Message)
		if _, err := c.SetUniformBytes(hash.Sum(digest[:0])); err != nil {
			continue // cannot happen: the input has the required length
		}
		p := &points[n]
		p.Set(edwards25519.NewIdentityPoint())
		base().addMultiple(p, s.Bytes())
		k.less.addMultiple(p, c.Bytes())
		at[n] = i
		n++
	}
	for j, r := range encodePoints(points[:n]) {
		ok[at[j]] = r == [32]byte(list[at[j]].Sig[:32])
	}
}

// encodePoints returns the bytes of points, at most MaxAtOnce. It divides once for all of them: 1/a
// is b/(a·b), 1/b is a/(a·b).
func encodePoints(points []edwards25519.Point) [][32]byte {
	if len(points) == 0 {
		return nil
	}
	var x, y, z, before [MaxAtOnce]field.Element
	all := new(field.Element).One()
	for i := range points {
		px, py, pz, _ := points[i].ExtendedCoordinates()
		x[i], y[i], z[i], before[i] = *px, *py, *pz, *all
		all.Multiply(all, pz) // z of a valid point is never 0
	}
	all.Invert(all)
	out := make([][32]byte, len(points))
	for i := len(points) - 1; i >= 0; i-- {
		var inverse field.Element
		inverse.Multiply(all, &before[i])
		all.Multiply(all, &z[i])
		copy(out[i][:], y[i].Multiply(&y[i], &inverse).Bytes())
		out[i][31] |= byte(x[i].Multiply(&x[i], &inverse).IsNegative() << 7)
	}
	return out
}

// multiples are the multiples of a point P of which scalars are composed: 1 to 2^(bits-1) times
// 2^(bits·i)·P for each i.
type multiples struct {
	bits   uint
	points []edwards25519.Point
}

func multiplesOf(p *edwards25519.Point, bits uint) *multiples {
	each := 1 << (bits - 1)
	windows := int((scalarBits + bits) / bits)
	m := &multiples{bits, make([]edwards25519.Point, windows*each)}
	step := new(edwards25519.Point).Set(p)
	for i := range windows {
		row := m.points[i*each:][:each]
		row[0].Set(step)
		for n := 1; n < each; n++ {
			row[n].Add(&row[n-1], step)
		}
		step.Double(&row[each-1])
	}
	return m
}

// scalarBits is the length of scalars in bits, plus one for the carry.
const scalarBits = 253 + 1

// addMultiple adds the multiple for a scalar, little-endian, to p. Its digits are -2^(bits-1)+1 to
// 2^(bits-1), which halves the number of multiples.
func (m *multiples) addMultiple(p *edwards25519.Point, scalar []byte) {
	each := 1 << (m.bits - 1)
	row := m.points
	var have uint64 // buffered bits of the scalar
	var count uint
	next, carry := 0, 0
	for len(row) > 0 {
		for count < m.bits && next < len(scalar) {
			have |= uint64(scalar[next]) << count
			count += 8
			next++
		}
		digit := int(have&(1<<m.bits-1)) + carry
		have >>= m.bits
		count -= min(count, m.bits)
		carry = 0
		if digit > each {
			digit -= 2 * each
			carry = 1
		}
		switch {
		case digit > 0:
			p.Add(p, &row[digit-1])
		case digit < 0:
			p.Subtract(p, &row[-digit-1])
		}
		row = row[each:]
	}
}

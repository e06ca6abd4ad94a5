package kademlia

import (
	"cmp"
	"encoding/binary"
	"math/bits"

	"agentsite/peering/kademlia/wire"
)

// ID identifies a node or a key, 256 bits. The distance of two ids is their exclusive or, read as a number
// (section 2.1 of the Kademlia paper).
type ID = wire.ID

// Nearer reports whether a is strictly nearer to the target than b.
func Nearer(target, a, b ID) bool { return compareDistance(target, a, b) < 0 }

// compareDistance returns -1, 0 or 1 when a is nearer to the target than b, equally near or farther.
func compareDistance(target, a, b ID) int {
	for i := 0; i < len(target); i += 8 {
		t := binary.BigEndian.Uint64(target[i:])
		x, y := binary.BigEndian.Uint64(a[i:])^t, binary.BigEndian.Uint64(b[i:])^t
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return 0
}

// leadingBits returns the first 64 bits of an id. They suffice to compare most pairs of random ids, without
// reading the rest from memory.
func leadingBits(id ID) uint64 { return binary.BigEndian.Uint64(id[:]) }

// commonBits returns the number of leading bits that two ids share, 256 for equal ids.
func commonBits(a, b ID) int {
	for i := 0; i < len(a); i += 8 {
		if x := binary.BigEndian.Uint64(a[i:]) ^ binary.BigEndian.Uint64(b[i:]); x != 0 {
			return i*8 + bits.LeadingZeros64(x)
		}
	}
	return 8 * len(a)
}

// differAfter reports whether two ids differ in the bit with index n, counted from 0; n must be less than
// 256.
func differAfter(a, b ID, n int) bool { return (a[n/8]^b[n/8])<<(n%8)&0x80 != 0 }

// distanceShare returns the distance of two ids as a fraction of the id space, from 0 to 1. With n evenly
// spread nodes a fraction of 1/n contains one node.
func distanceShare(a, b ID) float64 {
	return float64(binary.BigEndian.Uint64(a[:])^binary.BigEndian.Uint64(b[:])) / (1 << 64)
}

// flipBit returns an id that shares exactly n leading bits with id; its remaining bits are those of noise.
// n must be less than 256.
func flipBit(id, noise ID, n int) ID {
	at, bit := n/8, byte(0x80)>>(n%8)
	out := noise
	copy(out[:at], id[:at])
	mask := -bit // covers bit n of the byte and the bits before it
	out[at] = (id[at]^bit)&mask | noise[at]&^mask
	return out
}

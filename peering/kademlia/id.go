package kademlia

import (
	"cmp"
	"encoding/binary"
	"math/bits"

	"agentsite/peering/kademlia/wire"
)

// ID names a node or a key. Ids are near each other if their exclusive or,
// taken as a number, is small (section 2.1).
type ID = wire.ID

// Nearer reports whether a is strictly nearer to the target than b.
func Nearer(target, a, b ID) bool { return compare(target, a, b) < 0 }

// compare orders two ids by their distance from the target.
func compare(target, a, b ID) int {
	for i := 0; i < len(target); i += 8 {
		t := binary.BigEndian.Uint64(target[i:])
		x, y := binary.BigEndian.Uint64(a[i:])^t, binary.BigEndian.Uint64(b[i:])^t
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return 0
}

// lead returns the first bits of an id. Two that differ in them, as random ones
// do, are compared by them alone: an id is looked at where it lies only else.
func lead(id ID) uint64 { return binary.BigEndian.Uint64(id[:]) }

// common returns how many leading bits two ids share, 256 for the same.
func common(a, b ID) int {
	for i := 0; i < len(a); i += 8 {
		if x := binary.BigEndian.Uint64(a[i:]) ^ binary.BigEndian.Uint64(b[i:]); x != 0 {
			return i*8 + bits.LeadingZeros64(x)
		}
	}
	return 8 * len(a)
}

// differ reports whether two ids differ in the bit after the first n.
func differ(a, b ID, n int) bool { return (a[n/8]^b[n/8])<<(n%8)&0x80 != 0 }

// apart returns the distance of two ids as a share of the whole space, from 0
// to 1: of n nodes with even ids, a share of 1/n holds one.
func apart(a, b ID) float64 {
	return float64(binary.BigEndian.Uint64(a[:])^binary.BigEndian.Uint64(b[:])) / (1 << 64)
}

// flip returns an id that shares exactly n leading bits with id and has the
// rest of noise.
func flip(id, noise ID, n int) ID {
	at, bit := n/8, byte(0x80)>>(n%8)
	out := noise
	copy(out[:at], id[:at])
	mask := -bit // the bit and those before it
	out[at] = (id[at]^bit)&mask | noise[at]&^mask
	return out
}

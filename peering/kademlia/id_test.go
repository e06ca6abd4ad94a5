package kademlia

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func randomID(r *rand.Rand) (id ID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

func distance(a, b ID) *big.Int {
	var x ID
	for i := range x {
		x[i] = a[i] ^ b[i]
	}
	return new(big.Int).SetBytes(x[:])
}

func TestCompare_OrdersByExclusiveOr(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		target, a, b := randomID(r), randomID(r), randomID(r)
		n := r.IntN(len(a) + 1)
		copy(b[:n], a[:n]) // near each other, the same at times
		if got, want := compareDistance(target, a, b), distance(target, a).Cmp(distance(target, b)); got != want {
			t.Fatalf("%x: %x and %x: %d, want %d", target, a, b, got, want)
		}
		if got, want := commonBits(a, b), 256-distance(a, b).BitLen(); got != want {
			t.Fatalf("%x and %x share %d bits, want %d", a, b, got, want)
		}
	}
}

func TestFlip_SharesJustSoManyBits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for n := range 256 {
		id := randomID(r)
		if got := commonBits(id, flipBit(id, randomID(r), n)); got != n {
			t.Errorf("%d bits, want %d", got, n)
		}
	}
}

func TestAfter_FollowsInOrder(t *testing.T) {
	var last ID
	for i := range last {
		last[i] = 255
	}
	if nextID(last) != (ID{}) {
		t.Error("zero does not follow the last")
	}
	r := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		id := randomID(r)
		id[31], id[30] = 255, byte(r.IntN(2)*255)
		if next := nextID(id); slices.Compare(id[:], next[:]) >= 0 || distance(ID{}, next).Cmp(new(big.Int).Add(distance(ID{}, id), big.NewInt(1))) != 0 {
			t.Errorf("%x follows %x", next, id)
		}
	}
}

package record

import (
	"crypto/sha256"
	"iter"
	"math/bits"
)

// Tree is the Merkle tree of a portal's agents: a set of leaves, each a key
// (AgentKey) with the hash of the agent's record, in the order of the keys.
// Its root follows from the set alone, whatever was added and removed before:
//
//	no leaf    SHA-256("")
//	one leaf   SHA-256(0x00 ‖ key ‖ hash)
//	several    SHA-256(0x01 ‖ root of those with 0 ‖ root of those with 1)
//	           at the first bit where the keys are not all the same
//
// The prefixes are those of RFC 6962. Its shape is not: there a leaf in the
// middle moves all that follow, here it moves none, so a change costs about
// log2 n hashes (BenchmarkTree: a million leaves).
//
// A million leaves take about 110 MB. A Tree is for one goroutine at a time.
type Tree struct {
	leaves []leaf
	nodes  []node
	// Places in leaves and nodes that can be used again.
	freeLeaves, freeNodes []ref
	top                   ref
}

type leaf struct{ key, hash Hash }

// node is where keys part.
type node struct {
	child [2]ref
	bit   uint16 // the first that differs below, from the left
	known bool   // hash is that of what is below
	hash  Hash
}

// ref is a node n as n+1, a leaf n as -n-1, and 0 as nothing.
type ref int32

func (r ref) isNode() bool { return r > 0 }

func (t *Tree) node(r ref) *node { return &t.nodes[r-1] }
func (t *Tree) leaf(r ref) *leaf { return &t.leaves[-r-1] }

var emptyRoot = Hash(sha256.Sum256(nil))

// Len returns the number of leaves.
func (t *Tree) Len() int { return len(t.leaves) - len(t.freeLeaves) }

func bit(key *Hash, i uint16) int { return int(key[i/8]>>(7-i%8)) & 1 }

// parting returns the first bit in which two different keys differ.
func parting(a, b *Hash) uint16 {
	for i := range a {
		if x := a[i] ^ b[i]; x != 0 {
			return uint16(i*8 + bits.LeadingZeros8(x))
		}
	}
	return 256
}

// nearest returns the leaf at which the bits of key lead, which shares more of
// them than no other does.
func (t *Tree) nearest(key *Hash) *leaf {
	r := t.top
	for r.isNode() {
		n := t.node(r)
		r = n.child[bit(key, n.bit)]
	}
	return t.leaf(r)
}

// Get returns the hash at a key, and whether there is one.
func (t *Tree) Get(key Hash) (Hash, bool) {
	if t.top == 0 {
		return Hash{}, false
	}
	l := t.nearest(&key)
	return l.hash, l.key == key
}

// Set puts a leaf in, in place of one with the same key.
func (t *Tree) Set(key, hash Hash) {
	if t.top == 0 {
		t.top = t.newLeaf(key, hash)
		return
	}
	if l := t.nearest(&key); l.key != key {
		t.insert(key, hash, parting(&key, &l.key))
		return
	}
	r := t.top
	for r.isNode() {
		n := t.node(r)
		n.known = false
		r = n.child[bit(&key, n.bit)]
	}
	t.leaf(r).hash = hash
}

// insert adds a key that parts from its nearest at the given bit.
func (t *Tree) insert(key, hash Hash, at uint16) {
	l, r := t.newLeaf(key, hash), t.newNode() // first: they may move the slices
	link := &t.top
	for link.isNode() && t.node(*link).bit < at {
		n := t.node(*link)
		n.known = false
		link = &n.child[bit(&key, n.bit)]
	}
	n := t.node(r)
	*n = node{bit: at}
	side := bit(&key, at)
	n.child[side], n.child[1-side] = l, *link
	*link = r
}

// Delete takes a leaf out and reports whether it was there.
func (t *Tree) Delete(key Hash) bool {
	if _, ok := t.Get(key); !ok {
		return false
	}
	var up *ref // to the node above link
	link, side := &t.top, 0
	for link.isNode() {
		n := t.node(*link)
		n.known = false
		side = bit(&key, n.bit)
		up, link = link, &n.child[side]
	}
	t.freeLeaves = append(t.freeLeaves, *link)
	if up == nil {
		t.top = 0
		return true
	}
	gone := *up
	*up = t.node(gone).child[1-side]
	t.freeNodes = append(t.freeNodes, gone)
	return true
}

func (t *Tree) newLeaf(key, hash Hash) ref {
	if n := len(t.freeLeaves); n > 0 {
		r := t.freeLeaves[n-1]
		t.freeLeaves = t.freeLeaves[:n-1]
		*t.leaf(r) = leaf{key, hash}
		return r
	}
	t.leaves = append(t.leaves, leaf{key, hash})
	return -ref(len(t.leaves))
}

func (t *Tree) newNode() ref {
	if n := len(t.freeNodes); n > 0 {
		r := t.freeNodes[n-1]
		t.freeNodes = t.freeNodes[:n-1]
		return r
	}
	t.nodes = append(t.nodes, node{})
	return ref(len(t.nodes))
}

// Root returns the root of the set. It hashes what has changed since the last
// time.
func (t *Tree) Root() Hash {
	if t.top == 0 {
		return emptyRoot
	}
	return t.hash(t.top)
}

// hash recurses at most 256 deep: each node's bit is above its parent's.
func (t *Tree) hash(r ref) Hash {
	if !r.isNode() {
		l := t.leaf(r)
		return leafHash(l.key, l.hash)
	}
	n := t.node(r)
	if !n.known {
		n.hash, n.known = nodeHash(t.hash(n.child[0]), t.hash(n.child[1])), true
	}
	return n.hash
}

func leafHash(key, hash Hash) Hash {
	var b [1 + 2*sha256.Size]byte
	copy(b[1:], key[:])
	copy(b[1+sha256.Size:], hash[:])
	return sha256.Sum256(b[:])
}

func nodeHash(left, right Hash) Hash {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

// Leaves yields keys with their hashes, in order, from the first key that is
// not below from. The tree must not change meanwhile.
func (t *Tree) Leaves(from Hash) iter.Seq2[Hash, Hash] {
	return func(yield func(Hash, Hash) bool) {
		if t.top != 0 {
			t.walk(t.top, &from, yield)
		}
	}
}

// walk yields the leaves below r that are not below from, all when it is nil.
func (t *Tree) walk(r ref, from *Hash, yield func(Hash, Hash) bool) bool {
	if !r.isNode() {
		l := t.leaf(r)
		return from != nil && l.key.less(*from) || yield(l.key, l.hash)
	}
	n := t.node(r)
	if from == nil || !t.leaf(t.end(n.child[0], 1)).key.less(*from) {
		if !t.walk(n.child[0], from, yield) {
			return false
		}
		from = nil
	}
	return t.walk(n.child[1], from, yield)
}

// end returns the first (side 0) or the last (side 1) leaf below r.
func (t *Tree) end(r ref, side int) ref {
	for r.isNode() {
		r = t.node(r).child[side]
	}
	return r
}

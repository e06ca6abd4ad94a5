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
	// Indexes of leaves and nodes that are free for reuse.
	freeLeaves, freeNodes []ref
	top                   ref
}

type leaf struct{ key, hash Hash }

// node is an inner node: the keys below it share all bits before bit.
type node struct {
	child [2]ref
	bit   uint16 // number of the first bit in which the keys below differ, counted from the left
	known bool   // the stored hash is up to date
	hash  Hash
}

// ref refers to node n as n+1 and to leaf n as -n-1; 0 is nil.
type ref int32

func (r ref) isNode() bool { return r > 0 }

func (t *Tree) node(r ref) *node { return &t.nodes[r-1] }
func (t *Tree) leaf(r ref) *leaf { return &t.leaves[-r-1] }

var emptyRoot = Hash(sha256.Sum256(nil))

// Len returns the number of leaves.
func (t *Tree) Len() int { return len(t.leaves) - len(t.freeLeaves) }

func bitOf(key *Hash, i uint16) int { return int(key[i/8]>>(7-i%8)) & 1 }

// firstDifference returns the first bit in which two different keys differ.
func firstDifference(a, b *Hash) uint16 {
	for i := range a {
		if x := a[i] ^ b[i]; x != 0 {
			return uint16(i*8 + bits.LeadingZeros8(x))
		}
	}
	return 256
}

// nearestLeaf returns the leaf that shares the most leading bits with key. The tree must not be empty.
func (t *Tree) nearestLeaf(key *Hash) *leaf {
	r := t.top
	for r.isNode() {
		n := t.node(r)
		r = n.child[bitOf(key, n.bit)]
	}
	return t.leaf(r)
}

// Get returns the hash at a key; false if the tree has no such leaf.
func (t *Tree) Get(key Hash) (Hash, bool) {
	if t.top == 0 {
		return Hash{}, false
	}
	l := t.nearestLeaf(&key)
	return l.hash, l.key == key
}

// Set adds a leaf or replaces the hash of the leaf with that key.
func (t *Tree) Set(key, hash Hash) {
	if t.top == 0 {
		t.top = t.newLeaf(key, hash)
		return
	}
	if l := t.nearestLeaf(&key); l.key != key {
		t.insertLeaf(key, hash, firstDifference(&key, &l.key))
		return
	}
	r := t.top
	for r.isNode() {
		n := t.node(r)
		n.known = false
		r = n.child[bitOf(&key, n.bit)]
	}
	t.leaf(r).hash = hash
}

// insertLeaf adds a leaf whose key first differs from its nearest leaf at bit at.
func (t *Tree) insertLeaf(key, hash Hash, at uint16) {
	// before insertion, because appending may move the slice that link points into
	l, r := t.newLeaf(key, hash), t.newNode()
	link := &t.top
	for link.isNode() && t.node(*link).bit < at {
		n := t.node(*link)
		n.known = false
		link = &n.child[bitOf(&key, n.bit)]
	}
	n := t.node(r)
	*n = node{bit: at}
	side := bitOf(&key, at)
	n.child[side], n.child[1-side] = l, *link
	*link = r
}

// Delete removes a leaf and reports whether it was there.
func (t *Tree) Delete(key Hash) bool {
	if _, ok := t.Get(key); !ok {
		return false
	}
	var up *ref // the node whose child link is
	link, side := &t.top, 0
	for link.isNode() {
		n := t.node(*link)
		n.known = false
		side = bitOf(&key, n.bit)
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

// Root returns the root hash. It recomputes only the hashes that changes have made outdated.
func (t *Tree) Root() Hash {
	if t.top == 0 {
		return emptyRoot
	}
	return t.hashOf(t.top)
}

// hashOf returns the hash of a subtree, computing outdated hashes. The recursion is at most 256 deep,
// because each node's bit is above its parent's.
func (t *Tree) hashOf(r ref) Hash {
	if !r.isNode() {
		l := t.leaf(r)
		return leafHash(l.key, l.hash)
	}
	n := t.node(r)
	if !n.known {
		n.hash, n.known = nodeHash(t.hashOf(n.child[0]), t.hashOf(n.child[1])), true
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

// Leaves yields keys with their hashes, in order, from the first key that is not below from. The
// tree must not change meanwhile.
func (t *Tree) Leaves(from Hash) iter.Seq2[Hash, Hash] {
	return func(yield func(Hash, Hash) bool) {
		if t.top != 0 {
			t.walkLeaves(t.top, &from, yield)
		}
	}
}

// walkLeaves yields the leaves below r that are not below from, all if from is nil.
func (t *Tree) walkLeaves(r ref, from *Hash, yield func(Hash, Hash) bool) bool {
	if !r.isNode() {
		l := t.leaf(r)
		return from != nil && l.key.isLess(*from) || yield(l.key, l.hash)
	}
	n := t.node(r)
	if from == nil || !t.leaf(t.endLeaf(n.child[0], 1)).key.isLess(*from) {
		if !t.walkLeaves(n.child[0], from, yield) {
			return false
		}
		from = nil
	}
	return t.walkLeaves(n.child[1], from, yield)
}

// endLeaf returns the first (side 0) or the last (side 1) leaf below r.
func (t *Tree) endLeaf(r ref, side int) ref {
	for r.isNode() {
		r = t.node(r).child[side]
	}
	return r
}

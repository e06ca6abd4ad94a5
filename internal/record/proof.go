package record

import "encoding/json"

const (
	// maxPath is the longest path in a proof. Keys are SHA-256: finding two keys that share 64 bits
	// takes 2^64 tries.
	maxPath = 64
	// MaxProof is the largest encoded proof, in bytes: two paths of full length.
	MaxProof = 8 << 10
)

// Proof proves that a tree with a given root has a leaf with a key, or that it has none: by its
// neighbours, the leaves before and after the position of the key. The proof of absence relies on the
// signer of the root to keep the leaves in order; a replica checks the order itself, because it computes
// the root.
type Proof struct {
	Key    Hash    `json:"key"`
	Leaf   *Branch `json:"leaf,omitempty"`
	Before *Branch `json:"before,omitempty"`
	After  *Branch `json:"after,omitempty"`
}

// Branch is a leaf with the path from it to the root.
type Branch struct {
	Key  Hash   `json:"key"`
	Hash Hash   `json:"hash"`
	Path []Step `json:"path,omitempty"` // siblings from the leaf up to the root
}

// Step is one sibling on the path to the root. Its text form is "l" or "r", the side of the sibling,
// followed by the hash.
type Step struct {
	Left bool // the sibling is the left child
	Hash Hash
}

// MarshalText implements encoding.TextMarshaler.
func (s Step) MarshalText() ([]byte, error) {
	side := byte('r')
	if s.Left {
		side = 'l'
	}
	return encoding.AppendEncode([]byte{side}, s.Hash[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Step) UnmarshalText(b []byte) error {
	if len(b) == 0 || b[0] != 'l' && b[0] != 'r' {
		return errBinary
	}
	s.Left = b[0] == 'l'
	return decodeExact(s.Hash[:], b[1:])
}

// Encode returns the proof in canonical JSON form.
func (p *Proof) Encode() ([]byte, error) {
	return p.appendProof(make([]byte, 0, 2<<10)), nil
}

// ParseProof decodes a proof; Included or Absent check it.
func ParseProof(b []byte) (*Proof, error) {
	if len(b) > MaxProof {
		return nil, refuse(TooLarge, "it has %d bytes, a proof has at most %d", len(b), MaxProof)
	}
	if p, ok := readInclusion(b); ok {
		return p, nil
	}
	if err := Canonical(b); err != nil {
		return nil, err
	}
	var p Proof
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, refuse(BadField, "it is not a proof")
	}
	for _, x := range [...]*Branch{p.Leaf, p.Before, p.After} {
		if x != nil && len(x.Path) > maxPath {
			return nil, refuse(BadField, "a path has more than %d steps", maxPath)
		}
	}
	return &p, nil
}

// rootOf returns the root hash that follows from the leaf and its path.
func (b *Branch) rootOf() Hash {
	h := leafHash(b.Key, b.Hash)
	for _, s := range b.Path {
		if s.Left {
			h = nodeHash(s.Hash, h)
		} else {
			h = nodeHash(h, s.Hash)
		}
	}
	return h
}

// keepsSide reports whether all siblings of path are on one side: with all on the left, the leaf is
// the last of its tree, otherwise the first.
func keepsSide(path []Step, left bool) bool {
	for _, s := range path {
		if s.Left != left {
			return false
		}
	}
	return true
}

// Included reports whether the proof proves that the tree with that root has a leaf with the
// proof's key and that hash.
func (p *Proof) Included(root, hash Hash) bool {
	l := p.Leaf
	return l != nil && p.Before == nil && p.After == nil && len(l.Path) <= maxPath &&
		l.Key == p.Key && l.Hash == hash && l.rootOf() == root
}

// Absent reports whether the proof proves that the tree with that root has no leaf with the proof's
// key.
func (p *Proof) Absent(root Hash) bool {
	b, a := p.Before, p.After
	switch {
	case p.Leaf != nil, b != nil && (len(b.Path) > maxPath || !b.Key.isLess(p.Key) || b.rootOf() != root),
		a != nil && (len(a.Path) > maxPath || !p.Key.isLess(a.Key) || a.rootOf() != root):
		return false
	case b == nil && a == nil:
		return root == emptyRoot
	case b == nil:
		return keepsSide(a.Path, false)
	case a == nil:
		return keepsSide(b.Path, true)
	}
	return areAdjacent(b.Path, a.Path)
}

// areAdjacent reports whether the leaves of two paths to one root are neighbours. From the root
// down the paths are the same until one goes left and the other right; from there on each keeps to
// the side of the other.
func areAdjacent(before, after []Step) bool {
	i, j := len(before)-1, len(after)-1
	for i >= 0 && j >= 0 && before[i] == after[j] {
		i--
		j--
	}
	return i >= 0 && j >= 0 && !before[i].Left && after[j].Left && keepsSide(before[:i], true) &&
		keepsSide(after[:j], false)
}

// Prove returns the proof that key is in the tree, or that it is not.
func (t *Tree) Prove(key Hash) *Proof {
	p := &Proof{Key: key}
	if t.top == 0 {
		return p
	}
	t.Root() // computes all hashes that are out of date
	l := t.nearestLeaf(&key)
	if l.key == key {
		p.Leaf = t.branchOf(&key)
		return p
	}
	// Everything below r shares more bits with key than the rest of the tree does, so key would
	// come before or after all of it.
	at := firstDifference(&key, &l.key)
	var sides [2]ref // nearest subtrees to the left (0) and to the right (1) of the path
	r := t.top
	for r.isNode() && t.node(r).bit < at {
		n := t.node(r)
		side := bitOf(&key, n.bit)
		sides[1-side] = n.child[1-side]
		r = n.child[side]
	}
	sides[1-bitOf(&key, at)] = r
	if sides[0] != 0 {
		p.Before = t.branchOf(&t.leaf(t.endLeaf(sides[0], 1)).key)
	}
	if sides[1] != 0 {
		p.After = t.branchOf(&t.leaf(t.endLeaf(sides[1], 0)).key)
	}
	return p
}

// branchOf returns the branch of an existing leaf. The hashes of the tree must be up to date.
func (t *Tree) branchOf(key *Hash) *Branch {
	b := new(Branch)
	r := t.top
	for r.isNode() {
		n := t.node(r)
		side := bitOf(key, n.bit)
		b.Path = append(b.Path, Step{Left: side == 1, Hash: t.hashOf(n.child[1-side])})
		r = n.child[side]
	}
	for i, j := 0, len(b.Path)-1; i < j; i, j = i+1, j-1 {
		b.Path[i], b.Path[j] = b.Path[j], b.Path[i]
	}
	l := t.leaf(r)
	b.Key, b.Hash = l.key, l.hash
	return b
}

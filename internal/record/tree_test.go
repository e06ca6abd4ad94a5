package record_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/record"
)

type pair struct{ key, hash record.Hash }

// rootOf is the definition in Tree's comment, word for word.
func rootOf(set []pair) record.Hash {
	switch len(set) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(slices.Concat([]byte{0}, set[0].key[:], set[0].hash[:]))
	}
	for bit := range 256 {
		var side [2][]pair
		for _, p := range set {
			b := p.key[bit/8] >> (7 - bit%8) & 1
			side[b] = append(side[b], p)
		}
		if len(side[0]) > 0 && len(side[1]) > 0 {
			l, r := rootOf(side[0]), rootOf(side[1])
			return sha256.Sum256(slices.Concat([]byte{1}, l[:], r[:]))
		}
	}
	panic("two keys are the same")
}

// key draws few different keys that share long starts.
func key(t *rapid.T) record.Hash {
	var k record.Hash
	k[0] = byte(rapid.IntRange(0, 3).Draw(t, "first")) << 6
	k[17] = rapid.SampledFrom([]byte{0, 1, 0x80}).Draw(t, "middle")
	k[31] = byte(rapid.IntRange(0, 3).Draw(t, "last"))
	return k
}

func TestTree_IsItsSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var tree record.Tree
		set := map[record.Hash]record.Hash{}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			k := key(t)
			if rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				_, had := set[k]
				delete(set, k)
				if tree.Delete(k) != had {
					t.Fatal("Delete says something else than it did")
				}
			} else {
				h := record.Hash{byte(rapid.IntRange(0, 255).Draw(t, "hash"))}
				set[k] = h
				tree.Set(k, h)
			}
			if rapid.IntRange(0, 3).Draw(t, "root") == 0 {
				tree.Root() // so that some hashes are known and some are not
			}
		}
		var list []pair
		for k, h := range set {
			list = append(list, pair{k, h})
		}
		slices.SortFunc(list, func(a, b pair) int { return bytes.Compare(a.key[:], b.key[:]) })
		root := rootOf(list)
		if tree.Root() != root || tree.Len() != len(list) {
			t.Fatalf("%d leaves, %s; want %d, %s", tree.Len(), tree.Root(), len(list), root)
		}
		from := key(t)
		var got, want []pair
		for k, h := range tree.Leaves(from) {
			got = append(got, pair{k, h})
		}
		for _, p := range list {
			if bytes.Compare(p.key[:], from[:]) >= 0 {
				want = append(want, p)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("leaves from %s: %v, want %v", from, got, want)
		}
		k := key(t)
		h, in := set[k]
		if g, ok := tree.Get(k); ok != in || ok && g != h {
			t.Fatal("Get says otherwise")
		}
		p := tree.Prove(k)
		if p.Included(root, h) != in || p.Absent(root) == in {
			t.Fatalf("the proof of %s says otherwise than %v: %+v", k, in, p)
		}
		wire, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := record.ParseProof(wire)
		if err != nil || back.Included(root, h) != in || back.Absent(root) == in {
			t.Fatalf("%s came back as %+v, %v", wire, back, err)
		}
	})
}

func TestProof_ShowsNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var tree record.Tree
		set := map[record.Hash]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "leaves") {
			k := key(t)
			set[k] = true
			tree.Set(k, k)
		}
		root, asked := tree.Root(), key(t)
		p := tree.Prove(key(t))
		p.Key = asked
		other := tree.Prove(key(t))
		if rapid.Bool().Draw(t, "mix") {
			p.Before = other.Before
		}
		if rapid.Bool().Draw(t, "leaf as neighbour") && p.Leaf != nil {
			p.Before, p.Leaf = p.Leaf, nil
		}
		if rapid.Bool().Draw(t, "neighbour as leaf") {
			p.Leaf, p.After = p.After, nil
		}
		if rapid.Bool().Draw(t, "cut") && p.After != nil && len(p.After.Path) > 0 {
			p.After.Path = p.After.Path[1:]
		}
		if p.Absent(root) && set[asked] {
			t.Fatalf("%+v hides %s", p, asked)
		}
		if p.Included(root, asked) && !set[asked] {
			t.Fatalf("%+v invents %s", p, asked)
		}
	})
}

// Every way to leave an agent out of what a head covers is seen.
func TestProof_CannotHideALeaf(t *testing.T) {
	t.Parallel()
	var tree record.Tree
	var keys []record.Hash
	for i := range 64 {
		k := record.AgentKey(string(rune('a' + i)))
		keys = append(keys, k)
		tree.Set(k, record.Hash{1})
	}
	root := tree.Root()
	slices.SortFunc(keys, func(a, b record.Hash) int { return bytes.Compare(a[:], b[:]) })
	for i, hidden := range keys {
		for b := -1; b < i; b++ {
			for a := i + 1; a <= len(keys); a++ {
				p := &record.Proof{Key: hidden}
				if b >= 0 {
					p.Before = tree.Prove(keys[b]).Leaf
				}
				if a < len(keys) {
					p.After = tree.Prove(keys[a]).Leaf
				}
				if p.Absent(root) {
					t.Fatalf("leaves %d and %d hide leaf %d", b, a, i)
				}
			}
		}
		// A neighbour that is not in the tree, where the hidden one is.
		forged := tree.Prove(hidden).Leaf
		if i+1 < len(keys) {
			forged.Key = record.Hash{}
			if (&record.Proof{Key: hidden, Before: forged, After: tree.Prove(keys[i+1]).Leaf}).Absent(root) {
				t.Fatalf("a forged leaf before it hides leaf %d", i)
			}
		}
		if i > 0 {
			forged.Key = record.Hash(bytes.Repeat([]byte{0xff}, 32))
			if (&record.Proof{Key: hidden, Before: tree.Prove(keys[i-1]).Leaf, After: forged}).Absent(root) {
				t.Fatalf("a forged leaf after it hides leaf %d", i)
			}
		}
	}
}

// A tree in the wrong order proves no absence, also when its portal signs it.
func TestProof_NeedsOrder(t *testing.T) {
	t.Parallel()
	low, high := record.Hash{1}, record.Hash{3}
	var one, two record.Tree
	one.Set(low, low)
	two.Set(high, high)
	l, r := two.Root(), one.Root() // the higher key on the left
	root := record.Hash(sha256.Sum256(slices.Concat([]byte{1}, l[:], r[:])))
	p := &record.Proof{Key: record.Hash{2},
		Before: &record.Branch{Key: low, Hash: low, Path: []record.Step{{Left: true, Hash: l}}},
		After:  &record.Branch{Key: high, Hash: high, Path: []record.Step{{Left: false, Hash: r}}}}
	if p.Absent(root) {
		t.Error("neighbours that have changed places prove absence")
	}
}

func TestProof_IsOfItsKeyAndBounded(t *testing.T) {
	t.Parallel()
	var tree record.Tree
	tree.Set(record.Hash{1}, record.Hash{7})
	p := tree.Prove(record.Hash{1})
	if p.Key = (record.Hash{2}); p.Included(tree.Root(), record.Hash{7}) {
		t.Error("a leaf proves that another is there")
	}
	for steps, want := range map[int]record.Reason{64: "", 65: record.BadField, 200: record.TooLarge} {
		p.Leaf.Path = make([]record.Step, steps)
		b, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.ParseProof(b); record.ReasonOf(err) != want {
			t.Errorf("%d steps: %v, want %q", steps, err, want)
		}
	}
}

func FuzzProof(f *testing.F) {
	var tree record.Tree
	for i := range 9 {
		tree.Set(record.AgentKey(string(rune('a'+i))), record.Hash{byte(i)})
	}
	root := tree.Root()
	for _, k := range []record.Hash{record.AgentKey("a"), record.AgentKey("z"), {}, {0xff}} {
		b, err := tree.Prove(k).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := record.ParseProof(b)
		if err != nil {
			return
		}
		h, in := tree.Get(p.Key)
		if p.Absent(root) && in || p.Leaf != nil && p.Included(root, p.Leaf.Hash) && (!in || h != p.Leaf.Hash) {
			t.Errorf("%s lies", b)
		}
	})
}

// The head of a portal with a million agents is signed anew on every change.
func BenchmarkTree(b *testing.B) {
	const n = 1 << 20
	at := func(i int) (k record.Hash) {
		binary.BigEndian.PutUint64(k[:], uint64(i))
		return sha256.Sum256(k[:])
	}
	var tree record.Tree
	for i := range n {
		tree.Set(at(i), record.Hash{1})
	}
	tree.Root()
	b.Run("change", func(b *testing.B) {
		for i := range b.N {
			tree.Set(at(rand.IntN(n)), record.Hash{byte(i), byte(i >> 8), 2})
			tree.Root()
		}
	})
	b.Run("come and go", func(b *testing.B) {
		for i := range b.N {
			tree.Set(at(n+i), record.Hash{1})
			tree.Root()
			tree.Delete(at(n + i))
			tree.Root()
		}
	})
	b.Run("prove", func(b *testing.B) {
		for range b.N {
			tree.Prove(at(rand.IntN(2 * n)))
		}
	})
	b.Run("build", func(b *testing.B) {
		for range b.N {
			var t record.Tree
			for i := range n {
				t.Set(at(i), record.Hash{1})
			}
			t.Root()
		}
	})
}

package bm25

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fill puts documents in as a segment from an id on; meanwhile is called when
// only Append is left to do.
func fill(x *Index, s *Segment, first int, keys []string, docs [][][]string, meanwhile func()) {
	for _, d := range docs {
		s.Add(d...)
	}
	for from := 0; from < s.Words(); from += 3 {
		s.Resolve(from, min(from+3, s.Words()))
	}
	s.Sort()
	x.Intern(s)
	s.Build(keys)
	s.Look()
	s.Pair()
	meanwhile()
	x.Append(s, first)
	s.Reset()
}

// TestAppend_AgreesWithPut fills one index by segments, with puts and removals
// between the steps of a segment too, and one with single puts in the same
// order: even the postings are alike.
func TestAppend_AgreesWithPut(t *testing.T) {
	fields := []Field{{Name: "a", Weight: 4, Length: 2, Norm: 0.3}, {Name: "b", Weight: 1, Length: 10, Norm: 0.5}, {Name: "c", Weight: 2, Length: 3, Norm: 0.2}}
	words := strings.Fields("run runs running runner real-time realtime openAI agent agents GPT4 Zürich 東京 it's a1 a1-b2 node.js " + strings.Repeat("x", 60))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 6).Draw(t, "words"), rapid.SampledFrom([]string{" ", ", ", "-"}).Draw(t, "between"))
		})
		doc := rapid.Custom(func(t *rapid.T) [][]string {
			return [][]string{{text.Draw(t, "a")}, rapid.SliceOfN(text, 0, 3).Draw(t, "b"), rapid.SliceOfN(text, 0, 2).Draw(t, "c")}
		})
		x, y := New(fields...), New(fields...)
		s := x.NewSegment()
		n := 0
		put := func(id int, key string, d [][]string) {
			x.Put(id, key, x.Analyze(d...))
			y.Put(id, key, y.Analyze(d...))
		}
		remove := func(id int) { x.Remove(id); y.Remove(id) }
		change := func() {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				if id := rapid.IntRange(0, max(0, n-1)).Draw(t, "id"); rapid.Bool().Draw(t, "remove") {
					remove(id)
				} else if n > 0 {
					put(id, fmt.Sprint("k", rapid.IntRange(0, 9).Draw(t, "key")), doc.Draw(t, "doc"))
				}
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			change()
			docs := rapid.SliceOfN(doc, 1, 30).Draw(t, "docs")
			var keys []string
			for _, d := range docs {
				keys = append(keys, fmt.Sprint("k", rapid.IntRange(0, 50).Draw(t, "key")))
				s.Add(d...)
			}
			s.Resolve(0, s.Words())
			change()
			s.Sort()
			change()
			x.Intern(s)
			change()
			s.Build(keys)
			change()
			s.Look()
			s.Pair()
			change()
			x.Append(s, n)
			s.Reset()
			for i, d := range docs {
				y.Put(n+i, keys[i], y.Analyze(d...))
			}
			n += len(docs)
		}
		change()
		same(t, x, y)
		for id := range n {
			remove(id)
		}
		if x.Len() != 0 || x.Words() != 0 || x.Pairs() != 0 {
			t.Fatalf("%d documents, %d words, %d pairs are left", x.Len(), x.Words(), x.Pairs())
		}
	})
}

// same compares two indexes of the same documents, whatever their words are
// numbered.
func same(t interface{ Fatalf(string, ...any) }, x, y *Index) {
	if x.Len() != y.Len() || x.Words() != y.Words() || !slices.Equal(slices.Collect(x.all.Each), slices.Collect(y.all.Each)) {
		t.Fatalf("%d documents and %d words, want %d and %d", x.Len(), x.Words(), y.Len(), y.Words())
	}
	var order [2][]string
	var words [2][]string
	for i, x := range []*Index{x, y} {
		x.Ascend("", func(id int) bool { order[i] = append(order[i], fmt.Sprint(x.Key(id), id)); return true })
		x.words.order.eachFrom("", func(id uint32) bool {
			w := x.words.list[id]
			stem := x.words.list[x.words.termID[id]]
			words[i] = append(words[i], fmt.Sprint(w.text, w.refs, stem.text, stem.stems))
			return true
		})
		for c := range x.words.order.chunks {
			if len(x.words.order.chunks[c].ids) > chunkSize {
				t.Fatalf("a chunk of %d", len(x.words.order.chunks[c].ids))
			}
		}
	}
	if !reflect.DeepEqual(order[0], order[1]) || !reflect.DeepEqual(words[0], words[1]) {
		t.Fatalf("order\n got %q\nwant %q\nwords\n got %q\nwant %q", order[0], order[1], words[0], words[1])
	}
	all := func(p *postings) (list []string) {
		p.eachPosting(func(doc uint32, e posting) { list = append(list, fmt.Sprint(doc, e.impact(), e.fields())) })
		if p.many != nil {
			for i := range p.many.list {
				was := p.many.list[i].top
				if p.many.list[i].setTop(); was != p.many.list[i].top || len(p.many.list[i].list) > blockSize {
					t.Fatalf("a block of %d with %d at most, not %d", len(p.many.list[i].list), was, p.many.list[i].top)
				}
			}
			if p.many.bits != nil && p.many.bits.Count() != int(p.n) {
				t.Fatalf("%d bits of %d", p.many.bits.Count(), p.n)
			}
		}
		return list
	}
	terms := make(map[uint32]uint32)
	for id := range x.words.list {
		w := &x.words.list[id]
		if w.text == "" {
			continue
		}
		other, ok := y.words.byText.Find(w.text)
		if terms[uint32(id)] = other; !ok || !slices.Equal(all(&w.postings), all(y.words.postingsOf(other))) {
			t.Fatalf("%s:\n got %q\nwant %q", w.text, all(&w.postings), all(y.words.postingsOf(other)))
		}
	}
	if x.Pairs() != y.Pairs() {
		t.Fatalf("%d pairs, want %d", x.Pairs(), y.Pairs())
	}
	for pair, p := range x.pairs {
		if o := y.pairs[pairOf(terms[uint32(pair>>32)], terms[uint32(pair)])]; o == nil || !slices.Equal(all(p), all(o)) {
			t.Fatalf("pair %x: %v, want %v", pair, p, o)
		}
	}
}

// TestAppend_OfCommonTerms is of so many documents that terms become common,
// blocks full and the low bits of ids not enough.
func TestAppend_OfCommonTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x, y := New(Field{Name: "a", Weight: 1, Length: 4, Norm: 0.5}), New(Field{Name: "a", Weight: 1, Length: 4, Norm: 0.5})
	s := x.NewSegment()
	for first := 1<<16 - 6000; first < 1<<16+3000; first += 1501 {
		var keys []string
		var docs [][][]string
		for i := range 1500 {
			var w []string
			for range 1 + r.IntN(8) {
				u := r.Float64()
				w = append(w, "w"+string(rune('a'+int(u*u*u*26))))
			}
			if i%10 == 0 {
				w = append(w, "late later")
			}
			keys, docs = append(keys, fmt.Sprint("k", r.IntN(9000))), append(docs, [][]string{{strings.Join(w, " ")}})
			y.Put(first+i, keys[i], y.Analyze(docs[i]...))
		}
		fill(x, s, first, keys, docs, func() {
			// Two words become common, or cease to be.
			for id := range 2500 {
				if first%2 == 0 {
					x.Put(id, "k", x.Analyze([]string{"late later"}))
					y.Put(id, "k", y.Analyze([]string{"late later"}))
				} else {
					x.Remove(id)
					y.Remove(id)
				}
			}
		})
		for range 200 {
			id := first + r.IntN(1500)
			x.Remove(id)
			y.Remove(id)
		}
	}
	if x.Pairs() == 0 {
		t.Fatal("no pairs, and nothing was tried")
	}
	same(t, x, y)
}

// TestSorted_MergeAgreesWithInsert inserts in runs and one by one.
func TestSorted_MergeAgreesWithInsert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]int{20, 2000, 1 << 30}).Draw(t, "keys")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var keys []string
		key := func(id uint32) string { return keys[id] }
		x, y := sorted{texts: textsFunc(key)}, sorted{texts: textsFunc(key)}
		for range rapid.IntRange(1, 5).Draw(t, "runs") {
			var run []uint32
			for range rapid.IntRange(1, 2000).Draw(t, "ids") {
				run = append(run, uint32(len(keys)))
				keys = append(keys, fmt.Sprintf("beginning%d", r.IntN(spread))[r.IntN(9):])
			}
			for _, id := range run {
				y.insertID(id)
			}
			slices.SortFunc(run, func(a, b uint32) int {
				if x.lessID(a, b) {
					return -1
				}
				return 1
			})
			x.mergeIDs(run)
		}
		var got, want []uint32
		x.eachFrom("", func(id uint32) bool { got = append(got, id); return true })
		y.eachFrom("", func(id uint32) bool { want = append(want, id); return true })
		if !slices.Equal(got, want) {
			t.Fatalf("got %d, want %d", got, want)
		}
		for c, k := range x.chunks {
			if len(k.ids) == 0 || len(k.ids) > chunkSize || len(k.heads) != len(k.ids) || x.lasts[c] != k.heads[len(k.heads)-1] {
				t.Fatalf("chunk %d has %d", c, len(k.ids))
			}
		}
		for id := range keys { // each is found where it is
			x.removeID(uint32(id))
		}
		if len(x.chunks) != 0 {
			t.Fatalf("%d chunks are left", len(x.chunks))
		}
	})
}

func TestLexicon_NumbersInOrder(t *testing.T) {
	var l Lexicon
	for range 2 {
		r := rand.New(rand.NewPCG(1, 2))
		numbers := make(map[string]uint32)
		for range 20_000 {
			w := fmt.Sprint(r.IntN(6000))[r.IntN(2):]
			n := l.Number([]byte(w))
			if want, known := numbers[w]; known && n != want || !known && int(n) != len(numbers) {
				t.Fatalf("%q is %d, want %d of %d", w, n, want, len(numbers))
			}
			numbers[w] = n
		}
		texts := l.Texts(nil)
		if len(texts) != len(numbers) || l.Len() != len(texts) {
			t.Fatalf("%d texts, %d numbers", len(texts), len(numbers))
		}
		for n, w := range texts {
			if numbers[w] != uint32(n) || l.hashes[uint32(n)] != HashOf(w) {
				t.Fatalf("%d is %q", n, w)
			}
		}
		l.Reset()
	}
}

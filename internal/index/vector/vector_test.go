package vector

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

func unit(r *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	sum := 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i] * v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// near returns a vector of length 1 whose cosine with v is about c.
func near(r *rand.Rand, v []float32, c float64) []float32 {
	o := unit(r, len(v))
	dot := dotOf(o, v)
	sum := 0.0
	for i := range o {
		o[i] -= dot * v[i]
		sum += float64(o[i] * o[i])
	}
	out := make([]float32, len(v))
	for i := range out {
		out[i] = float32(c)*v[i] + float32(math.Sqrt(1-c*c)/math.Sqrt(sum))*o[i]
	}
	return out
}

func dotOf(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func TestRotate_KeepsCosines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, dims := range []int{3, 64, 100, 256} {
		a, b := unit(r, dims), unit(r, dims)
		if got, want := dotOf(Rotate(a), Rotate(b)), dotOf(a, b); math.Abs(float64(got-want)) > 1e-5 {
			t.Errorf("%d dimensions: cosine %v, want %v", dims, got, want)
		}
	}
}

// TestNearest_AgreesWithBruteForce compares with the cosines of all vectors, among documents that come, change
// and go.
func TestNearest_AgreesWithBruteForce(t *testing.T) {
	for _, dims := range []int{64, 256} {
		r := rand.New(rand.NewPCG(uint64(dims), 2))
		const docs = 3000
		s := New(dims)
		all := make([][][]float32, docs)
		target := unit(r, dims)
		for n := range 2 * docs {
			doc := r.IntN(docs)
			if r.IntN(4) == 0 {
				s.Remove(uint32(doc))
				all[doc] = nil
				continue
			}
			var list []Row
			all[doc] = nil
			for range 1 + r.IntN(5) {
				v := unit(r, dims)
				if n%50 == 0 {
					v = near(r, target, 0.3+0.6*r.Float64())
				}
				all[doc], list = append(all[doc], v), append(list, NewRow(v))
			}
			s.Put(uint32(doc), list)
		}
		allowed := make([]uint64, docs/64+1)
		for doc := range docs {
			if doc%3 > 0 {
				allowed[doc/64] |= 1 << (doc % 64)
			}
		}
		few := make([]uint64, 2)
		few[0], few[1] = 0xffff, 1
		rows := 0
		for _, list := range all {
			rows += len(list)
		}
		if s.Rows() != rows {
			t.Fatalf("%d rows, want %d", s.Rows(), rows)
		}
		for name, set := range map[string][]uint64{"all": nil, "filtered": allowed, "few": few} {
			var b Scratch
			s.Nearest(NewQuery(near(r, target, 0.95)), 20, set, &b) // leaves its buffers
			got, reach := s.Nearest(NewQuery(target), 20, set, &b)
			got = slices.Clone(got)
			if again := s.Within(NewQuery(target), reach, set, &b); !slices.Equal(again, got) {
				t.Errorf("%s: within %+v are %v, want %v", name, reach, again, got)
			}
			var want []Near
			for doc, list := range all {
				if len(list) == 0 || set != nil && !hasBit(set, uint32(doc)) {
					continue
				}
				best := Near{Doc: uint32(doc), Cosine: -2}
				for part, v := range list {
					if c := dotOf(v, target); c > best.Cosine {
						best.Part, best.Cosine = part, c
					}
				}
				want = append(want, best)
			}
			slices.SortFunc(want, func(a, b Near) int {
				if a.Cosine > b.Cosine {
					return -1
				}
				return 1
			})
			want = want[:min(20, len(want))]
			if len(got) != len(want) {
				t.Fatalf("%s: %d documents, want %d", name, len(got), len(want))
			}
			for i, g := range got {
				clear := want[i].Cosine > 0.5 // chance decides among vectors that are hardly near
				if math.Abs(float64(g.Cosine-want[i].Cosine)) > 0.02 && clear {
					t.Errorf("%s: place %d has cosine %v, want %v", name, i, g.Cosine, want[i].Cosine)
				}
			}
		}
	}
}

// TestNearest_EqualsPlainRanking compares Nearest with a ranking that reads every row: it takes the rows with the
// fewest different bits, rankedFor for each wanted document and ties, and orders them by cosine.
func TestNearest_EqualsPlainRanking(t *testing.T) {
	for _, dims := range []int{64, 128, 256, 1024} {
		r := rand.New(rand.NewPCG(uint64(dims), 3))
		const docs = 1500
		s := New(dims)
		target := unit(r, dims)
		for range 2 * docs {
			var list []Row
			for range r.IntN(5) {
				list = append(list, NewRow(near(r, target, 0.9*r.Float64())))
			}
			s.Put(uint32(r.IntN(docs)), list) // often in the place of others
		}
		odd := make([]uint64, docs/64+1)
		for i := range odd {
			odd[i] = 0xaaaaaaaaaaaaaaaa
		}
		var b Scratch
		for n := range 20 {
			q, set := NewQuery(near(r, target, r.Float64())), [][]uint64{nil, odd}[n%2]
			got, _ := s.Nearest(q, 1+n*2, set, &b)
			if want := rankPlainly(s, q, 1+n*2, set); !slices.Equal(got, want) {
				t.Errorf("%d dimensions, query %d: got %v, want %v", dims, n, got, want)
			}
		}
	}
}

// rankPlainly is Nearest without limits that are lowered on the way, chunks and buffers.
func rankPlainly(s *Store, q *Query, n int, allowed []uint64) (near []Near) {
	type row struct {
		distance int
		near     Near
	}
	var rows []row
	for doc, first := range s.first {
		if allowed != nil && !hasBit(allowed, uint32(doc)) {
			continue
		}
		for at := first; at != none; {
			c, i := s.chunks[at/chunkRows], int(at%chunkRows)
			d := 0
			for k := range q.code {
				d += bits.OnesCount64(s.codes[int(at)*s.words()+k] ^ q.code[k])
			}
			rows = append(rows, row{d, Near{uint32(doc), int(c.parts[i]), s.cosine(q, c, i)}})
			at = c.next[i]
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return a.distance - b.distance })
	best := make(map[uint32]Near)
	for i, r := range rows {
		if want := n * rankedFor; i >= want && r.distance > rows[want-1].distance {
			break
		}
		if old, ok := best[r.near.Doc]; !ok || r.near.Cosine > old.Cosine {
			best[r.near.Doc] = r.near
		}
	}
	near = slices.SortedFunc(maps.Values(best), func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Doc, b.Doc))
	})
	for i := range near {
		if i >= n && near[i].Cosine < near[n-1].Cosine {
			return near[:i]
		}
	}
	return near
}

func TestPut_LeavesOutWhatHasNoDirection(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	v := unit(r, 64)
	s := New(64)
	s.Put(7, []Row{NewRow(nil), NewRow(make([]float32, 64)), NewRow(v), NewRow(unit(r, 256))})
	if got, ok := s.Best(NewQuery(v), 7); !ok || got.Part != 2 || got.Cosine < 0.99 || s.Rows() != 1 {
		t.Errorf("%+v, %v, %d rows", got, ok, s.Rows())
	}
	if _, ok := s.Best(NewQuery(v), 8); ok || s.Has(8) {
		t.Error("a document without vectors is near")
	}
	long := make([]Row, 40)
	for i := range long {
		long[i] = NewRow(unit(r, 64))
	}
	if s.Put(9, long); s.Rows() != 1+MaxRows {
		t.Errorf("a document with 40 vectors keeps %d", s.Rows()-1)
	}
	s.Remove(9)
	s.Remove(7)
	if left, _ := s.Nearest(NewQuery(v), 5, nil, new(Scratch)); s.Rows() != 0 || len(left) != 0 {
		t.Error("vectors of removed documents stay")
	}
}

func BenchmarkNearest(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 9))
	s := New(256)
	for doc := range uint32(100_000) {
		s.Put(doc, []Row{NewRow(unit(r, 256)), NewRow(unit(r, 256)), NewRow(unit(r, 256)), NewRow(unit(r, 256))})
	}
	q := NewQuery(unit(r, 256))
	var scratch Scratch
	b.ReportAllocs()
	for b.Loop() {
		s.Nearest(q, 100, nil, &scratch)
	}
}

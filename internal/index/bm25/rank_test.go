package bm25

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// crowd is an index with terms of every share: wa is nearly everywhere, wz
// nearly nowhere. Some documents were replaced and some removed.
func crowd(n int) (*Index, map[int]string) {
	x := New(Field{Name: "a", Weight: 4, Length: 2, Norm: 0.3}, Field{Name: "b", Weight: 1, Length: 10, Norm: 0.5})
	r := rand.New(rand.NewPCG(1, 2))
	texts := make(map[int]string)
	put := func(id int) {
		var w []string
		for range 2 + r.IntN(12) {
			u := r.Float64()
			w = append(w, "w"+string(rune('a'+int(u*u*u*26))))
		}
		texts[id] = strings.Join(w, " ")
		x.Put(id, fmt.Sprintf("k%d", id*7919%n), x.Analyze(w[:1], []string{strings.Join(w[1:], " ")}))
	}
	for id := range n {
		put(id)
	}
	for range n / 3 {
		if id := r.IntN(n); r.IntN(2) == 0 {
			x.Remove(id)
			delete(texts, id)
		} else {
			put(id)
		}
	}
	return x, texts
}

// TestTop_IsTheSameEveryWay compares what skips with a plain walk over all
// matches.
func TestTop_IsTheSameEveryWay(t *testing.T) {
	x, _ := crowd(12_000)
	for _, text := range []string{"wa", "wb", "wz", "wa wb", "wa wz", "wc wd we", "wx wy", "wa wb wc wd we wf", "w", "wa -wb", `"wa wb" wc`, "wq wy wz"} {
		m := x.Match(text)
		var all []Hit
		m.Bits.Each(func(id int) bool {
			_, score := m.Explain(id)
			all = append(all, Hit{ID: id, Score: score, Matched: m.Fields(id)})
			return true
		})
		order := func(a, b Hit) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(x.Key(a.ID), x.Key(b.ID)))
		}
		slices.SortFunc(all, order)
		for _, limit := range []int{1, 20, 300} {
			if got, want := fmt.Sprint(m.Top(limit, nil)), fmt.Sprint(all[:min(limit, len(all))]); got != want {
				t.Errorf("%s: first %d\n got %.300s\nwant %.300s", text, limit, got, want)
			}
			if len(all) > 500 {
				last := all[399]
				if got, want := fmt.Sprint(m.Top(limit, &After{last.Score, x.Key(last.ID)})), fmt.Sprint(all[400:min(400+limit, len(all))]); got != want {
					t.Errorf("%s: %d behind the 400th\n got %.300s\nwant %.300s", text, limit, got, want)
				}
			}
		}
		for name, rank := range map[string]func(*top){"stretches": m.rankStretches, "few": m.rankFew} {
			postings := 0
			for _, w := range m.words {
				for _, a := range w.alts {
					postings += x.words.docFreq(a.term)
				}
			}
			if name == "few" && postings > fewPostings {
				continue
			}
			tops := &top{x: x, limit: 20}
			rank(tops)
			slices.SortFunc(tops.heap, func(a, b ranked) int {
				if tops.ranksBefore(&a, &b) {
					return -1
				}
				return 1
			})
			for i, r := range tops.heap {
				if int(r.doc) != all[i].ID || float64(r.score) != all[i].Score {
					t.Errorf("%s by %s: place %d has %d, want %d", text, name, i, r.doc, all[i].ID)
					break
				}
			}
		}
		m.Close()
	}
}

func TestMatch_FindsPhrasesOfCommonWordsLikePlainCode(t *testing.T) {
	x, texts := crowd(12_000)
	if len(x.pairs) == 0 {
		t.Fatal("no term is paired")
	}
	for _, phrase := range []string{"wa wb", "wb wa", "wa wa", "wa wb wc", "wd wa wa", "wa wz", "wz wa", "wy wz"} {
		m := x.Match(`"` + phrase + `"`)
		for id := range 12_000 {
			_, rest, _ := strings.Cut(texts[id], " ") // the first word is a field of its own
			if want := strings.Contains(" "+rest+" ", " "+phrase+" "); m.Bits.Has(id) != want {
				t.Fatalf("%s: document %d %q found: %v", phrase, id, texts[id], !want)
			}
		}
		m.Close()
	}
	for id := range texts {
		x.Remove(id)
	}
	if len(x.pairs) != 0 || x.words.byText.Len() != 0 {
		t.Errorf("%d pairs and %d words are left", len(x.pairs), x.words.byText.Len())
	}
}

func TestMatchPlan_KeepsScoresWhileDocumentsCome(t *testing.T) {
	x, _ := crowd(2_000)
	const text = "wa wz w"
	m := x.Match(text)
	plan, before := m.Plan(), m.Top(50, nil)
	m.Close()
	for id := range 3_000 {
		x.Put(5_000+id, fmt.Sprint(id), x.Analyze([]string{"other"}, []string{"wz words"}))
	}
	if !CheckPlan(plan) {
		t.Fatal("plan is refused")
	}
	m = x.MatchPlan(text, plan)
	defer m.Close()
	for _, h := range before {
		if _, score := m.Explain(h.ID); score != h.Score {
			t.Fatalf("%d had %v, has %v", h.ID, h.Score, score)
		}
	}
}

func FuzzCheckPlan(f *testing.F) {
	x, _ := crowd(500)
	m := x.Match(`wa "wb wc" wx`)
	f.Add(m.Plan())
	m.Close()
	f.Add([]byte{1, 2, 'w', 'a'})
	f.Fuzz(func(t *testing.T, plan []byte) {
		if !CheckPlan(plan) {
			return
		}
		m := x.MatchPlan("wa wb", plan)
		defer m.Close()
		m.Top(10, nil)
	})
}

func TestTable_IsLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts []string
		table := Table{Texts: textsFunc(func(id uint32) string { return texts[id] })}
		plain := make(map[string]uint32)
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			text := fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "text"))
			id, ok := table.Find(text)
			if want, in := plain[text]; ok != in || ok && id != want {
				t.Fatalf("%s: %d %v, want %d %v", text, id, ok, want, in)
			}
			if ok {
				table.Delete(id)
				delete(plain, text)
			} else {
				texts = append(texts, text)
				plain[text] = uint32(len(texts) - 1)
				table.Insert(plain[text])
			}
			if table.Len() != len(plain) {
				t.Fatalf("%d entries, want %d", table.Len(), len(plain))
			}
		}
	})
}

func TestBegins_PutsThePreferredFirst(t *testing.T) {
	x := manual()
	var prefer Bits
	prefer.Add(4)
	for text, want := range map[string]string{"we": "[4]", "re": "[0]", "text tr": "[2]", "chat wi": "[1]", "an": "[0 1]", "zz": "[]", "": "[]"} {
		if got := fmt.Sprint(x.Begins(text, []int{0}, prefer, 5)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

package main

import (
	"math"
	"testing"

	"agentsite/bench/ranking"
	"agentsite/internal/hub"
)

// TestRelevance_HeldOutIsAboveFTS5 is the bar: on the set that nothing was
// tuned on, the portal finds better than every way to ask FTS5.
func TestRelevance_HeldOutIsAboveFTS5(t *testing.T) {
	j := build(&held, &heldPlain, heldSeed)
	if len(j.agents) < 2000 || len(j.queries) < 200 {
		t.Fatalf("%d agents, %d queries", len(j.agents), len(j.queries))
	}
	db, engines, err := ranking.FTS5(j.agents)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	x, err := ranking.Index(j.agents)
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluate(j, ranking.Portal(x, hub.ModeAuto))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		other, err := evaluate(j, e)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("nDCG@10: portal %.3f, %s %.3f", got[""], e.Name, other[""])
		if other[""] == 0 || got[""] <= other[""] {
			t.Errorf("portal %.3f is not above %s with %.3f", got[""], e.Name, other[""])
		}
	}
}

func TestBuild_KeepsTheSetsApart(t *testing.T) {
	said := make(map[string]bool)
	each := func(v *vocabulary, yield func(string)) {
		for _, f := range v.functions {
			for _, s := range append(f.verbs, f.nouns...) {
				yield(s)
			}
		}
		for _, d := range v.domains {
			for _, s := range d.names {
				yield(s)
			}
		}
		for _, list := range [][]string{v.about, v.asides, v.filler, v.questions, v.brands} {
			for _, s := range list {
				yield(s)
			}
		}
	}
	eachPlain := func(p *plain, yield func(string)) {
		for _, w := range append(p.functions, p.domains...) {
			yield(w.english)
			yield(w.chinese)
		}
		for _, s := range p.unfit {
			yield(s)
		}
	}
	each(&dev, func(s string) { said[s] = true })
	eachPlain(&devPlain, func(s string) { said[s] = true })
	eachPlain(&heldPlain, func(s string) {
		if said[s] {
			t.Errorf("%q is in both sets", s)
		}
	})
	each(&held, func(s string) {
		if said[s] {
			t.Errorf("%q is in both sets", s)
		}
	})
}

func TestGrade_JudgesByWhatAnAgentDoes(t *testing.T) {
	j := &judged{vocabulary: &dev}
	q := &query{want: does{0, 0, ""}}
	for _, c := range []struct {
		is   does
		want int
	}{{does{0, 0, ""}, 3}, {does{0, -1, ""}, 2}, {does{0, 1, ""}, 1}, {does{3, 0, ""}, 1}, {does{3, 8, ""}, 0}} {
		if got := j.grade(q, "", c.is); got != c.want {
			t.Errorf("%+v: %d, want %d", c.is, got, c.want)
		}
	}
	q.want.language = "German"
	if a, b := j.grade(q, "", does{0, 0, "German"}), j.grade(q, "", does{0, 0, "Polish"}); a != 3 || b != 2 {
		t.Errorf("with a language %d and %d", a, b)
	}
}

func TestNDCG(t *testing.T) {
	if got := ndcg([]int{3, 2, 1}, []int{1, 2, 3, 0}); got != 1 {
		t.Errorf("the best order has %v", got)
	}
	// (0 + 7/log2(3)) / 7
	if got, want := ndcg([]int{0, 3}, []int{3, 0}), 1/math.Log2(3); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}
